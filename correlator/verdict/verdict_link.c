/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slow links. A pair is slow in a step when its messages' median pace over the step's operations is SLOW_TIMES the
 * job's median pace, in a streak of steps, or once by far more than the job's spread; verdict_slower.c finds those that
 * are slower than usual by less. Where both directions of a port are slow, it is the device. Invariant: pairs over one
 * port in one direction share one verdict a step.
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

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
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
        else if (states[i] == 0 && job->steps.items[i].kind == STEP_TRAINING &&
                 (i >= WARM_STEPS || job->steps.count <= WARM_STEPS + 1))
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

/* `cost` below 0: it is not to be said. */
static void say_port(const struct judge *judge, struct verdict *verdict, const struct slow_port *port, int64_t cost)
{
    const struct pair_time *worst = port->worst;

    judge_say(verdict,
              "the step's messages of rank %d to rank %d themselves took %.1f ms for %.1f KiB in all (%.2f MB/s); the "
              "same bytes take "
              "%.1f ms on the job's median link (%.2f MB/s)",
              worst->from, worst->to, judge_ms((int64_t)worst->active_ns), (double)worst->bytes / 1024,
              (double)worst->bytes * 1e3 / (double)worst->active_ns,
              judge_ms((int64_t)pair_time_usual_ns(worst->bytes, judge->pace)), 1e6 / (double)judge->pace);
    judge_say_rate(judge, verdict, worst);
    if (worst->transit_ns > 0)
        judge_say(verdict, "; the last of them was %.3f ms on the way", judge_ms(worst->transit_ns));
    if (port->pairs > 1)
        judge_say(verdict, "; %u pairs over port %s are slow, %.1f ms too long in all", port->pairs, verdict->device,
                  judge_ms(port->excess_ns));
    if (cost < 0)
        return;
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

    if (cost <= 0 && port.excess_ns <= array_multiple(judge->share_ns, SHARES_ALONE)) /* no step is shorter without */
        return;
    struct verdict *verdict = array_add(&judge->job->verdicts);
    verdict->class = VERDICT_NETWORK_SLOW;
    verdict->step = port.worst->step;
    verdict->rank = port.worst->from;
    verdict->peer_rank = port.worst->to;
    memcpy(verdict->device, port.worst->device, sizeof port.worst->device);
    verdict->operation = port.worst->operation;
    verdict->size_ns = (uint64_t)(cost > 0 ? cost : port.excess_ns);
    verdict->confidence = judge_confidence(judge, port.excess_ns, limit, verdict->operation);
    say_port(judge, verdict, &port, larger(cost, 0));
}

/* The first slow pair of the step at the other direction of the same rank's port, or NULL. */
static const struct pair_time *other_direction(const struct judge *judge, size_t index)
{
    const struct pair_time *pairs = judge->pairs.items, *pair = &pairs[index];
    size_t from = index;

    while (from > 0 && pairs[from - 1].step == pair->step)
        from--;
    for (size_t i = from; i < judge->pairs.count && pairs[i].step == pair->step; i++)
        if (pairs[i].slow && pairs[i].at_receiver != pair->at_receiver && port_rank(&pairs[i]) == port_rank(pair))
            return &pairs[i];
    return NULL;
}

/* All that comes to the sender in the step was longer on its way than usual: it queues where its device takes it in. */
static const struct pair_time *comes_late(const struct judge *judge, size_t index)
{
    const struct pair_time *pairs = judge->pairs.items, *pair = &pairs[index], *found = NULL;
    size_t from = index;

    while (from > 0 && pairs[from - 1].step == pair->step)
        from--;
    for (size_t i = from; i < judge->pairs.count && pairs[i].step == pair->step; i++) {
        if (pairs[i].to != pair->from)
            continue;
        if (!pairs[i].delayed)
            return NULL;
        found = &pairs[i];
    }
    return pair->at_receiver ? NULL : found;
}

/*
 * Both directions of one port are slow: it is the device. Its second direction adds no verdict. `late`: instead of a
 * slow other direction, one whose messages were late.
 */
static void judge_device(struct judge *judge, size_t index, const struct pair_time *other, const struct pair_time *late,
                         int64_t limit)
{
    struct slow_port port = sum_port(judge, index), back = {0};
    int64_t cost = judge_port_cost(judge, port.worst).cost_ns;

    if (other != NULL && other < &judge->pairs.items[index])
        return;
    if (other != NULL)
        back = sum_port(judge, (size_t)(other - judge->pairs.items));
    int64_t excess = larger(port.excess_ns, back.excess_ns);
    struct verdict *verdict = array_add(&judge->job->verdicts);
    verdict->class = VERDICT_NIC_SLOW;
    verdict->step = port.worst->step;
    verdict->rank = port_rank(port.worst);
    verdict->peer_rank = -1;
    memcpy(verdict->device, port.worst->device, sizeof port.worst->device);
    verdict->operation = port.worst->operation;
    verdict->size_ns = (uint64_t)(cost > 0 ? cost : excess);
    verdict->confidence = judge_confidence(judge, excess, limit, verdict->operation);
    say_port(judge, verdict, &port, other != NULL ? -1 : larger(cost, 0));
    judge_say(verdict, "; the other way ");
    if (other != NULL)
        say_port(judge, verdict, &back, larger(cost, 0));
    else
        judge_say(verdict, "what came to it was longer on its way than usual: of rank %d the last of it %.3f ms",
                  late->from, judge_ms(late->transit_ns));
}

/* How many pairs of the same step are slow to the same rank, and from the same one; the pairs are sorted by step. */
static void count_company(const struct judge *judge, size_t index, unsigned *same_to, unsigned *same_from)
{
    const struct pair_time *pairs = judge->pairs.items, *pair = &pairs[index];
    size_t from = index, to = index;

    while (from > 0 && pairs[from - 1].step == pair->step)
        from--;
    while (to < judge->pairs.count && pairs[to].step == pair->step)
        to++;
    *same_to = *same_from = 0;
    for (size_t i = from; i < to; i++) {
        *same_to += pairs[i].slow && pairs[i].to == pair->to;
        *same_from += pairs[i].slow && pairs[i].from == pair->from;
    }
}

/* Where several ranks are slow to send to one, it is that one's port, though theirs may show it. */
static void place_at_receivers(struct judge *judge)
{
    for (size_t i = 0; i < judge->pairs.count; i++) {
        struct pair_time *pair = &judge->pairs.items[i];
        unsigned same_to, same_from;
        if (!pair->slow || pair->at_receiver)
            continue;
        count_company(judge, i, &same_to, &same_from);
        const struct rank_operation *receiver = judge_rank_in(judge->job, pair->operation, pair->to);
        if (same_to < 2 || same_from > 1 || receiver == NULL || receiver->record.device[0] == '\0')
            continue;
        pair->at_receiver = true;
        memcpy(pair->device, receiver->record.device, sizeof pair->device);
    }
}

void judge_links(struct judge *judge)
{
    int64_t limit = excess_limit(judge);

    mark_slow(judge, limit);
    judge_slower(judge);
    place_at_receivers(judge);
    for (size_t i = 0; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        bool done = false;
        for (size_t j = i; pair->slow && j-- > 0 && judge->pairs.items[j].step == pair->step && !done;)
            done = judge_same_port(pair, &judge->pairs.items[j]);
        if (!pair->slow || done)
            continue;
        const struct pair_time *other = other_direction(judge, i);
        const struct pair_time *late = other == NULL ? comes_late(judge, i) : NULL;
        if (other == NULL && late == NULL)
            judge_port(judge, i, limit);
        else
            judge_device(judge, i, other, late, limit);
    }
}
