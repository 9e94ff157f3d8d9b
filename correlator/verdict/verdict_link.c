/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slow links. A pair is slow in a step when its messages' median pace over the step's operations is SLOW_TIMES the
 * job's median pace, in a streak of steps, or once by far more than the job's spread; verdict_slower.c finds those that
 * are slower than usual by less. Invariant: pairs over one port in
 * one direction share one verdict a step.
 */
#include <stdlib.h>
#include <string.h>

#include "correlator/job/streak.h"
#include "correlator/verdict/verdict_private.h"

#define SLOW_TIMES  3
#define ONCE_SPREAD 20 /* times the spread that a single slow step must exceed */
#define WARM_STEPS  2  /* steps at the start that still make connections: no measure for the others */

struct series { /* one pair's place in the list of pairs */
    int32_t from;
    int32_t to;
    size_t pair;
};

static int by_pair(const void *a, const void *b)
{
    const struct series *left = a;
    const struct series *right = b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->to != right->to)
        return left->to < right->to ? -1 : 1;
    return (left->pair > right->pair) - (left->pair < right->pair);
}

static int64_t excess_limit(const struct judge *judge)
{
    int64_t *values = array_zeroed(judge->pairs.count * sizeof *values);

    for (size_t i = 0; i < judge->pairs.count; i++)
        values[i] = judge->pairs.items[i].excess_ns;
    int64_t limit = array_multiple(array_spread(values, judge->pairs.count), ONCE_SPREAD);
    free(values);
    return limit > judge->share_ns ? limit : judge->share_ns;
}

static void mark_series(struct judge *judge, const struct series *series, size_t count, int64_t limit)
{
    int64_t *times = array_zeroed(count * sizeof *times);
    int64_t *common = array_zeroed(count * sizeof *common);

    for (size_t i = 0; i < count; i++)
        times[i] = (int64_t)(judge->pairs.items[series[i].pair].pace * 1000 / (judge->pace + 1));
    streak_find(times, count, (struct streak_limits){SLOW_TIMES * 1000, SLOW_TIMES * 1000}, common);
    for (size_t i = 0; i < count; i++) {
        struct pair_time *pair = &judge->pairs.items[series[i].pair];
        bool once = times[i] > SLOW_TIMES * 1000 && pair->excess_ns > limit;
        pair->slow = once || (common[i] != 0 && pair->excess_ns > judge->share_ns);
    }
    free(times);
    free(common);
}

static void mark_slow(struct judge *judge, int64_t limit)
{
    ARRAY(struct series) series = {0};

    for (size_t i = 0; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        *(struct series *)array_add(&series) = (struct series){.from = pair->from, .to = pair->to, .pair = i};
    }
    array_sort(&series, by_pair);
    for (size_t from = 0, to; from < series.count; from = to) {
        for (to = from; to < series.count && series.items[to].from == series.items[from].from &&
                        series.items[to].to == series.items[from].to;)
            to++;
        mark_series(judge, &series.items[from], to - from, limit);
    }
    array_fini(&series);
}

static int32_t port_rank(const struct pair_time *pair)
{
    return pair->at_receiver ? pair->to : pair->from;
}

bool judge_same_port(const struct pair_time *a, const struct pair_time *b)
{
    return a->slow && b->slow && a->at_receiver == b->at_receiver && port_rank(a) == port_rank(b);
}

/* True when the port is slow in two steps in a row: the first of those may have begun before it was slow. */
static bool is_lasting(const uint8_t *states, size_t steps)
{
    for (size_t i = 1; i < steps; i++)
        if ((states[i] & states[i - 1] & 2) != 0)
            return true;
    return false;
}

/*
 * What the slow port costs a step: by how much the steps with it are longer than those without any slow link, median to
 * median.
 */
struct port_cost judge_port_cost(const struct judge *judge, const struct pair_time *slow)
{
    const struct job *job = judge->job;
    int64_t *with = array_zeroed(job->steps.count * sizeof *with);
    int64_t *without = array_zeroed(job->steps.count * sizeof *without);
    uint8_t *states = array_zeroed(job->steps.count); /* 1: some link is slow, 2: this one is */
    size_t with_count = 0;
    size_t without_count = 0;

    for (size_t i = 0; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        states[pair->step] |= (uint8_t)((pair->slow ? 1 : 0) | (judge_same_port(pair, slow) ? 2 : 0));
    }
    bool lasting = is_lasting(states, job->steps.count);
    for (size_t i = 1; i < job->steps.count; i++) {
        int64_t duration = (int64_t)job->steps.items[i].duration_ns;
        if ((states[i] & 2) != 0 && ((states[i - 1] & 2) != 0 || !lasting))
            with[with_count++] = duration;
        else if (states[i] == 0 && (i >= WARM_STEPS || job->steps.count <= WARM_STEPS + 1))
            without[without_count++] = duration;
    }
    struct port_cost cost = {.known = without_count != 0};
    if (cost.known)
        cost.cost_ns = array_middle(with, with_count) - array_middle(without, without_count);
    cost.spread_ns = array_spread(without, without_count);
    free(with);
    free(without);
    free(states);
    return cost;
}

struct slow_port { /* the slow pairs over one port in one step */
    const struct pair_time *worst;
    unsigned pairs;
    int64_t excess_ns;
};

static struct slow_port sum_port(const struct judge *judge, size_t from)
{
    struct slow_port port = {0};

    for (size_t i = from; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        if (pair->step != judge->pairs.items[from].step)
            break;
        if (!judge_same_port(pair, &judge->pairs.items[from]))
            continue;
        port.pairs++;
        port.excess_ns += pair->excess_ns;
        if (port.worst == NULL || pair->excess_ns > port.worst->excess_ns)
            port.worst = pair;
    }
    return port;
}

static void say_port(const struct judge *judge, struct verdict *verdict, const struct slow_port *port, int64_t cost)
{
    const struct pair_time *worst = port->worst;

    judge_say(
        verdict,
        "the messages of rank %d to rank %d themselves took %.1f ms for %.1f KiB (%.2f MB/s); the same bytes take "
        "%.1f ms on the job's median link (%.2f MB/s)",
        worst->from, worst->to, judge_ms((int64_t)worst->active_ns), (double)worst->bytes / 1024,
        (double)worst->bytes * 1e3 / (double)worst->active_ns,
        judge_ms((int64_t)blame_usual_ns(worst->bytes, judge->pace)), 1e6 / (double)judge->pace);
    if (worst->transit_ns > 0)
        judge_say(verdict, "; the last of them was %.3f ms on the way", judge_ms(worst->transit_ns));
    if (port->pairs > 1)
        judge_say(verdict, "; %u pairs over port %s are slow, %.1f ms too long in all", port->pairs, verdict->device,
                  judge_ms(port->excess_ns));
    if (cost > 0)
        judge_say(verdict, "; steps with this slow link are %.1f ms longer than those without (medians)",
                  judge_ms(cost));
    else
        judge_say(verdict,
                  "; no steps without it are known to be shorter: the size is what its messages took too long");
}

static void judge_port(struct judge *judge, size_t from, int64_t limit)
{
    struct slow_port port = sum_port(judge, from);
    int64_t cost = judge_port_cost(judge, port.worst).cost_ns;
    struct verdict *verdict = array_add(&judge->job->verdicts);

    verdict->class = VERDICT_NETWORK_SLOW;
    verdict->step = port.worst->step;
    verdict->rank = port.worst->from;
    verdict->peer_rank = port.worst->to;
    memcpy(verdict->device, port.worst->device, sizeof port.worst->device);
    verdict->operation = port.worst->operation;
    verdict->size_ns = (uint64_t)(cost > 0 ? cost : port.excess_ns);
    verdict->confidence = judge_confidence(judge, port.excess_ns, limit, verdict->operation);
    say_port(judge, verdict, &port, cost);
}

void judge_links(struct judge *judge)
{
    int64_t limit = excess_limit(judge);

    mark_slow(judge, limit);
    judge_slower(judge);
    for (size_t i = 0; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        bool done = false;
        for (size_t j = i; j-- > 0 && judge->pairs.items[j].step == pair->step && !done;)
            done = judge_same_port(pair, &judge->pairs.items[j]);
        if (pair->slow && !done)
            judge_port(judge, i, limit);
    }
}
