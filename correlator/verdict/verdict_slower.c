/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links slower than they usually are. What is usual of a link is the lower quartile of its own steps, or of a level
 * that it once had (plateau.h), and, of one that is slow all along, that of the slowest of the others; what stands out
 * from it does so by SPREADS times the spread of its steps, or of those of the job's median link. Such a link is slow
 * in the steps of a streak if these are longer for it than those without, by more than their spread. Invariant: of
 * links that are slower in one step only those are marked that lost most, for they are what the others wait for.
 */
#include <stdlib.h>
#include <string.h>

#include "correlator/job/plateau.h"
#include "correlator/job/streak.h"
#include "correlator/verdict/verdict_private.h"

#define SPREADS     4
#define LOWER_TIMES 2  /* an even scatter's spread to that of its lower half */
#define LOWER_STEPS 12 /* of fewer the lower half says nothing */
#define LIKE_LINKS  3  /* fewer do not tell what is usual of links */
#define AROUND      2  /* steps before and after one whose median is taken: what is slow is so in most steps */
#define MOST_PARTS  2  /* of what the slowest link lost, another must have lost this part */
#define LATE_PARTS  2  /* of what the steps are longer: a sender that is itself late by that part explains them */
#define COST_TIMES  2  /* times what a link lost: a longer step has another cause */

enum measure { MEASURE_PACE, MEASURE_TRANSIT, MEASURES };

struct link {
    struct pair_time **steps;
    size_t count;
    int64_t usual[MEASURES];
    int64_t spread[MEASURES];
};
typedef ARRAY(struct link) link_list;

static int by_link(const void *a, const void *b)
{
    const struct pair_time *left = *(struct pair_time *const *)a;
    const struct pair_time *right = *(struct pair_time *const *)b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->to != right->to)
        return left->to < right->to ? -1 : 1;
    return (left->step > right->step) - (left->step < right->step);
}

static int64_t value_of(const struct pair_time *pair, enum measure measure)
{
    return measure == MEASURE_PACE ? (int64_t)pair->pace : pair->transit_ns;
}

/* Those that are known, of its lowest lasting level: what came to stay is not usual. */
static size_t fill_values(const struct link *link, enum measure measure, int64_t *values)
{
    size_t count = 0;

    for (size_t i = 0; i < link->count; i++)
        if (value_of(link->steps[i], measure) != 0)
            values[count++] = value_of(link->steps[i], measure);
    return plateau_keep(values, count);
}

/* The lower half's says as much of steps that scatter evenly, and is not moved by slow steps that scatter. */
static void measure_link(struct link *link, enum measure measure, int64_t *values)
{
    size_t count = fill_values(link, measure, values);
    int64_t *half = values + count;

    link->usual[measure] = array_quantile(values, count, 250);
    memcpy(half, values, (count + 1) / 2 * sizeof *half);
    int64_t lower = array_multiple(array_spread(half, (count + 1) / 2), LOWER_TIMES);
    link->spread[measure] = array_spread(values, count);
    if (count >= LOWER_STEPS && lower < link->spread[measure])
        link->spread[measure] = lower;
}

static struct pair_time **list_links(struct judge *judge, link_list *links)
{
    struct pair_time **pairs = array_zeroed((judge->pairs.count + 1) * sizeof(struct pair_time *));
    int64_t *values = array_zeroed(2 * (judge->job->steps.count + 1) * sizeof *values);

    for (size_t i = 0; i < judge->pairs.count; i++)
        pairs[i] = &judge->pairs.items[i];
    qsort(pairs, judge->pairs.count, sizeof(struct pair_time *), by_link);
    for (size_t from = 0, to; from < judge->pairs.count; from = to) {
        for (to = from;
             to < judge->pairs.count && pairs[to]->from == pairs[from]->from && pairs[to]->to == pairs[from]->to;)
            to++;
        struct link *link = array_add(links);
        *link = (struct link){.steps = &pairs[from], .count = to - from};
        for (enum measure measure = MEASURE_PACE; measure < MEASURES; measure++)
            measure_link(link, measure, values);
    }
    free(values);
    return pairs;
}

/* A link that is slow all along is measured by the slowest of the others, if it stands out from their spread. */
static void use_like(link_list *links)
{
    int64_t *values = array_zeroed((links->count + 1) * sizeof *values);
    struct link *slowest = NULL;

    for (size_t i = 0; i < links->count; i++) {
        values[i] = links->items[i].usual[MEASURE_PACE];
        if (slowest == NULL || values[i] > slowest->usual[MEASURE_PACE])
            slowest = &links->items[i];
    }
    if (links->count >= LIKE_LINKS) {
        array_median(values, links->count); /* sorts them */
        int64_t next = values[links->count - 2];
        if (slowest->usual[MEASURE_PACE] > next + array_multiple(array_spread(values, links->count), SPREADS))
            slowest->usual[MEASURE_PACE] = next;
    }
    free(values);
}

static int64_t median_spread(const link_list *links, enum measure measure)
{
    int64_t *values = array_zeroed((links->count + 1) * sizeof *values);

    for (size_t i = 0; i < links->count; i++)
        values[i] = links->items[i].spread[measure];
    int64_t median = array_median(values, links->count);
    free(values);
    return median;
}

/* What the link lost in a step beyond its usual. */
static int64_t lost_ns(const struct link *link, const struct pair_time *pair, enum measure measure)
{
    return measure == MEASURE_PACE
               ? (int64_t)pair->active_ns - (int64_t)pair_time_usual_ns(pair->bytes, (uint64_t)link->usual[measure])
               : pair->transit_ns - link->usual[measure];
}

/* The median of a step's and its neighbours' values. */
static int64_t around(const struct link *link, size_t index, enum measure measure)
{
    int64_t values[2 * AROUND + 1];
    size_t count = 0;

    for (size_t i = index < AROUND ? 0 : index - AROUND; i < link->count && i <= index + AROUND; i++)
        values[count++] = value_of(link->steps[i], measure);
    return array_median(values, count);
}

static void mark_link(const struct judge *judge, struct link *link, enum measure measure, int64_t spread)
{
    int64_t *values = array_zeroed(link->count * sizeof *values);
    int64_t *common = array_zeroed(link->count * sizeof *common);
    int64_t bound_ns = measure == MEASURE_TRANSIT ? (int64_t)link->steps[0]->transit_bound_ns : 0;

    spread = link->spread[measure] > spread ? link->spread[measure] : spread;
    int64_t limit = link->usual[measure] + array_multiple(spread, SPREADS) + bound_ns;
    for (size_t i = 0; i < link->count; i++)
        values[i] = around(link, i, measure);
    streak_find(values, link->count, (struct streak_limits){limit, limit}, common);
    for (size_t i = 0; i < link->count; i++) {
        struct pair_time *pair = link->steps[i];
        int64_t lost = lost_ns(link, pair, measure);
        if (common[i] == 0 || pair->slow || (measure == MEASURE_PACE && lost <= judge->share_ns))
            continue;
        pair->excess_ns = pair->slower && pair->excess_ns > lost ? pair->excess_ns : lost;
        pair->slower = true;
        pair->delayed |= measure == MEASURE_TRANSIT;
    }
    free(values);
    free(common);
}

/* Of one step's links those stay slower that lost most. */
static void keep_most(struct pair_time *pairs, size_t count)
{
    int64_t most = 0;

    for (size_t i = 0; i < count; i++)
        if ((pairs[i].slow || pairs[i].slower) && pairs[i].excess_ns > most)
            most = pairs[i].excess_ns;
    for (size_t i = 0; i < count; i++) {
        pairs[i].slower = pairs[i].slower && pairs[i].excess_ns >= most / MOST_PARTS;
        pairs[i].slow |= pairs[i].slower;
    }
}

/* By how much the link's sender was itself late with its data in the link's slower steps: the lower median. */
static int64_t sender_late_ns(const struct judge *judge, const struct link *link)
{
    int64_t *late = array_zeroed((link->count + 1) * sizeof *late);
    size_t count = 0;

    for (size_t i = 0; i < link->count; i++)
        if (link->steps[i]->slower)
            late[count++] = judge_late_ns(judge, link->steps[i]->step, link->steps[i]->from);
    int64_t median = array_median(late, count);
    free(late);
    return median;
}

static bool is_delayed(const struct link *link)
{
    for (size_t i = 0; i < link->count; i++)
        if (link->steps[i]->slower && link->steps[i]->delayed)
            return true;
    return false;
}

/*
 * The steps are longer for it, and not by so much more than it lost that something else must have lengthened them: what
 * each message waits on its way adds up from one to the next, and shows in no pace.
 */
static bool costs_steps(const struct judge *judge, const struct link *link, const struct pair_time *pair,
                        struct port_cost cost)
{
    int64_t lost = lost_ns(link, pair, MEASURE_PACE);

    if (!cost.known)
        return true;
    if (!is_delayed(link) && lost > judge->share_ns && cost.cost_ns > array_multiple(lost, COST_TIMES))
        return false;
    if (sender_late_ns(judge, link) > cost.cost_ns / LATE_PARTS) /* that is what the others wait for */
        return false;
    return cost.cost_ns > judge->share_ns && cost.cost_ns > cost.spread_ns;
}

/* Takes the mark off those whose steps are not longer for it. */
static void drop_free(struct judge *judge, struct link *link)
{
    const struct pair_time *first = NULL;

    for (size_t i = 0; i < link->count && first == NULL; i++)
        first = link->steps[i]->slower ? link->steps[i] : NULL;
    if (first == NULL)
        return;
    struct port_cost cost = judge_port_cost(judge, first);
    bool costs = costs_steps(judge, link, first, cost);
    for (size_t i = 0; i < link->count; i++) {
        struct pair_time *pair = link->steps[i];
        pair->slow = pair->slow && (costs || !pair->slower);
        pair->slower = pair->slower && costs;
        pair->cost_ns = pair->slower && pair->delayed && cost.cost_ns > 0 ? cost.cost_ns : 0;
    }
}

void judge_slower(struct judge *judge)
{
    link_list links = {0};
    struct pair_time **pairs = list_links(judge, &links);

    use_like(&links);
    for (enum measure measure = MEASURE_PACE; measure < MEASURES; measure++) {
        int64_t spread = median_spread(&links, measure);
        for (size_t i = 0; i < links.count; i++)
            mark_link(judge, &links.items[i], measure, spread);
    }
    for (size_t from = 0, to; from < judge->pairs.count; from = to) {
        for (to = from; to < judge->pairs.count && judge->pairs.items[to].step == judge->pairs.items[from].step;)
            to++;
        keep_most(&judge->pairs.items[from], to - from);
    }
    for (size_t i = 0; i < links.count; i++)
        drop_free(judge, &links.items[i]);
    free(pairs);
    array_fini(&links);
}
