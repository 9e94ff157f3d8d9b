/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kinds. Invariant: only training steps become something else; limits are the job's own median and spread, and never
 * below a share of a step, which chance alone may take.
 */
#include "correlator/job/step_kind.h"

#include <stdlib.h>

#include "correlator/turn.h"

#define WARM_MAX        10 /* steps at most are warm-up */
#define WARM_SHARE      3  /* and a third of all */
#define SPREADS         6
#define SHARE_PER_MILLE 50
#define PAUSE_PER_MILLE 100 /* a single pause */
#define AGAIN_PER_MILLE 30  /* pauses that come back like clockwork */
#define AGAIN_TIMES     3

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct usual { /* of training steps' durations */
    int64_t median;
    int64_t spread;
};

/* Of the second half of the training steps. */
static struct usual find_usual(const struct job *job)
{
    int64_t *durations = array_zeroed(job->steps.count * sizeof *durations);
    size_t count = 0;

    for (size_t i = job->steps.count / 2; i < job->steps.count; i++)
        if (job->steps.items[i].kind == STEP_TRAINING)
            durations[count++] = (int64_t)job->steps.items[i].duration_ns;
    struct usual usual = {.median = array_median(durations, count)};
    usual.spread = array_spread(durations, count);
    free(durations);
    return usual;
}

static void mark_warm_up(struct job *job, const struct usual *usual)
{
    int64_t limit = usual->median + larger(SPREADS * usual->spread, usual->median * SHARE_PER_MILLE / 1000);
    size_t first = 0;

    while (first < job->steps.count && (int64_t)job->steps.items[first].duration_ns > limit)
        first++;
    if (first > WARM_MAX || first > job->steps.count / WARM_SHARE)
        return;
    for (size_t i = 0; i < first; i++)
        if (job->steps.items[i].kind == STEP_TRAINING)
            job->steps.items[i].kind = STEP_WARM_UP;
}

/* When each rank enqueued its first operation of each step, by step and then as rank steps are; 0 = unknown. */
static uint64_t *first_enqueues(const struct job *job)
{
    uint64_t *first_ns = array_zeroed(job->rank_steps.count * sizeof *first_ns);

    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        int32_t number = job->operations.items[of->operation].step;
        if (number < 0 || of->rank < 0)
            continue;
        const struct step *step = &job->steps.items[number];
        size_t low = step->first_rank, high = step->first_rank + step->ranks;
        while (low < high) { /* rank steps of a step are sorted by rank */
            size_t middle = low + (high - low) / 2;
            if (job->rank_steps.items[middle].rank < of->rank)
                low = middle + 1;
            else
                high = middle;
        }
        uint64_t *own = &first_ns[low];
        if (*own == 0 || of->record.enqueued_ns < *own)
            *own = of->record.enqueued_ns;
    }
    return first_ns;
}

/* Of the step: how long the rank that paused least paused before it; INT64_MIN of the first step. */
static int64_t least_pause(const struct job *job, const struct step *step, const uint64_t *first_ns)
{
    int64_t least = INT64_MAX;

    for (size_t i = step->first_rank; i < step->first_rank + step->ranks; i++) {
        int64_t pause = (int64_t)(first_ns[i] - job->rank_steps.items[i].start_ns);
        least = pause < least ? pause : least;
    }
    return step->fresh || step->ranks == 0 ? INT64_MIN : least;
}

/* What is longer than the limit comes so many times, as many steps apart each time as the two nearest are, or a
 * multiple.
 */
static bool comes_back(const int64_t *pauses, size_t count, int64_t limit)
{
    size_t *at = array_zeroed((count + 1) * sizeof *at);
    size_t times = 0, nearest = SIZE_MAX;
    bool even = true;

    for (size_t i = 0; i < count; i++)
        if (pauses[i] > limit)
            at[times++] = i;
    for (size_t i = 1; i < times; i++)
        nearest = at[i] - at[i - 1] < nearest ? at[i] - at[i - 1] : nearest;
    for (size_t i = 1; i < times; i++)
        even = even && (at[i] - at[i - 1]) % nearest == 0;
    free(at);
    return times >= AGAIN_TIMES && nearest > 1 && even;
}

static void mark_checkpoints(struct job *job, const struct usual *usual)
{
    uint64_t *first_ns = first_enqueues(job);
    int64_t *pauses = array_zeroed(2 * job->steps.count * sizeof *pauses);
    int64_t *known = &pauses[job->steps.count];
    size_t count = 0;

    for (size_t i = 0; i < job->steps.count; i++) {
        pauses[i] = least_pause(job, &job->steps.items[i], first_ns);
        if (pauses[i] != INT64_MIN)
            known[count++] = pauses[i];
    }
    int64_t median = array_median(known, count);
    int64_t spread = array_spread(known, count);
    int64_t limit = median + larger(SPREADS * spread, usual->median * PAUSE_PER_MILLE / 1000);
    int64_t again = median + larger(SPREADS * spread, usual->median * AGAIN_PER_MILLE / 1000);
    if (comes_back(pauses, job->steps.count, again))
        limit = again;
    for (size_t i = 0; i < job->steps.count; i++)
        if (pauses[i] > limit && job->steps.items[i].kind == STEP_TRAINING)
            job->steps.items[i].kind = STEP_CHECKPOINT;
    free(pauses);
    free(first_ns);
}

void step_kind_find(struct job *job)
{
    struct usual usual = find_usual(job);

    if (job->steps.count == 0)
        return;
    mark_checkpoints(job, &usual);
    mark_warm_up(job, &usual);
}
