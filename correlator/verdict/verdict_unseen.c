/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps that are longer than usual, in which nobody is to blame who is seen, while of some ranks no messages are: that
 * something held them back is known, what did is not. But a rank that sends nothing over the wire and whose host gave
 * an operation by as much after all others is told by that. Invariant: none where all is seen, for then a step that is
 * longer with nobody late is longer for all alike; and one verdict at most a step, where it has no other.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

#define FIRST_STEP    2 /* those before still make connections */
#define SPREADS       6 /* times the spread of the job's steps */
#define SENDERS_LEAST 3 /* of fewer nobody stands out */
#define UNLIKE_PART   4 /* ranks that send more than others by this part of it */
#define LAGS_MAX      8 /* if more are behind the first by much, nobody is so alone */
#define PATTERN_STEPS 8 /* what is longer once in so many steps of traffic, or more often, is no fault */

/* Ranks of the step that use the wire, and of which no messages are seen. */
static size_t count_unseen(const struct job *job, size_t step)
{
    size_t unseen = 0;

    for (size_t i = job->steps.items[step].first_rank;
         i < job->steps.items[step].first_rank + job->steps.items[step].ranks; i++)
        unseen += (evidence_sight(job->evidence, job->rank_steps.items[i].rank) & SOURCE_MESSAGES) == 0;
    return unseen;
}

static int32_t last_on_wire(const struct job *job, size_t step)
{
    for (size_t i = job->operations.count; i-- > 0;)
        if (job->operations.items[i].step == (int32_t)step &&
            (job->operations.items[i].flags & RANK_OPERATION_NO_WIRE) == 0)
            return (int32_t)i;
    return -1;
}

typedef uint64_t time_of(const struct record_rank_operation *record);

static uint64_t first_data_of(const struct record_rank_operation *record)
{
    return record->first_data_ns;
}

static uint64_t enqueue_of(const struct record_rank_operation *record)
{
    return (record->flags & RANK_OPERATION_ENQUEUE_UNKNOWN) != 0 ? 0 : record->enqueued_ns;
}

struct laggard { /* who sent its first data of an operation, or gave it, last */
    int32_t operation;
    int32_t rank;
    int64_t behind_ns; /* after all others */
    int64_t usual_ns;  /* the same of this rank in steps that are not longer */
};

/*
 * rank -1: nobody can be told to be late by itself. Where ranks of traffic send unlike amounts they are no ring: who is
 * last may have waited for what it passes on, as of two ranks either may.
 */
static struct laggard find_laggard(const struct job *job, size_t index, time_of *time)
{
    const struct operation *operation = &job->operations.items[index];
    struct laggard laggard = {.operation = (int32_t)index, .rank = -1};
    uint64_t last_ns = 0, others_ns = 0, least_bytes = UINT64_MAX, most_bytes = 0;
    size_t senders = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        uint64_t first_ns = time(&of->record), bytes = of->record.observed_bytes;
        if (first_ns == 0)
            continue;
        senders++;
        least_bytes = bytes < least_bytes ? bytes : least_bytes;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
        if (first_ns > last_ns) {
            others_ns = last_ns;
            last_ns = first_ns;
            laggard.rank = of->rank;
        } else if (first_ns > others_ns) {
            others_ns = first_ns;
        }
    }
    bool is_ring = senders >= SENDERS_LEAST && most_bytes - least_bytes <= least_bytes / UNLIKE_PART;
    if (others_ns == 0 || (operation->kind == OPERATION_TRAFFIC && !is_ring))
        laggard.rank = -1;
    laggard.behind_ns = (int64_t)(last_ns - others_ns);
    return laggard;
}

static int64_t usually_behind(const struct job *job, const struct laggard *laggard, uint64_t longest_ns, time_of *time)
{
    int64_t *values = array_zeroed((job->operations.count + 1) * sizeof *values);
    size_t count = 0;

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (operation->step < 0 || operation->place != job->operations.items[laggard->operation].place ||
            job->steps.items[operation->step].duration_ns > longest_ns)
            continue;
        struct laggard other = find_laggard(job, i, time);
        values[count++] = other.rank == laggard->rank ? other.behind_ns : 0;
    }
    int64_t usual_ns = array_median(values, count);
    free(values);
    return usual_ns;
}

static uint64_t earliest_ns(const struct job *job, const struct operation *operation)
{
    uint64_t first_ns = UINT64_MAX;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        uint64_t at_ns = job->rank_operations.items[i].record.first_data_ns;
        first_ns = at_ns != 0 && at_ns < first_ns ? at_ns : first_ns;
    }
    return first_ns;
}

/* By how much a rank's first data is usually behind the first of all, in the operations that have this place. */
static int64_t usual_lag(const struct job *job, int32_t place, int32_t rank, uint64_t longest_ns)
{
    int64_t *values = array_zeroed((job->operations.count + 1) * sizeof *values);
    size_t count = 0;

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (operation->step < 0 || operation->place != place ||
            job->steps.items[operation->step].duration_ns > longest_ns)
            continue;
        const struct rank_operation *of = judge_rank_in(job, (int32_t)i, rank);
        if (of != NULL && of->record.first_data_ns != 0)
            values[count++] = (int64_t)(of->record.first_data_ns - earliest_ns(job, operation));
    }
    int64_t usual_ns = array_median(values, count);
    free(values);
    return usual_ns;
}

/* Where others are later than usual, too, the last one may have waited for them, as in a pipeline. */
static bool is_alone(const struct job *job, const struct laggard *laggard, int64_t least_ns, uint64_t longest_ns)
{
    const struct operation *operation = &job->operations.items[laggard->operation];
    int64_t first_ns = (int64_t)earliest_ns(job, operation);
    size_t looked_at = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        int64_t lag_ns = (int64_t)of->record.first_data_ns - first_ns;
        if (of->rank == laggard->rank || lag_ns < least_ns)
            continue;
        if (++looked_at > LAGS_MAX || lag_ns - usual_lag(job, operation->place, of->rank, longest_ns) >= least_ns)
            return false;
    }
    return true;
}

/* Who was behind all others by most of what the step took longer, and is not so else; rank -1: nobody. */
static struct laggard find_culprit(const struct judge *judge, size_t step, int64_t excess_ns, uint64_t longest_ns,
                                   time_of *time)
{
    const struct job *job = judge->job;

    for (int32_t i = judge->spans[step].first; i < judge->spans[step].end; i++) {
        if (job->operations.items[i].step != (int32_t)step)
            continue;
        struct laggard laggard = find_laggard(job, (size_t)i, time);
        if (laggard.rank < 0 || laggard.behind_ns < excess_ns / 2)
            continue;
        laggard.usual_ns = usually_behind(job, &laggard, longest_ns, time);
        if (laggard.behind_ns - laggard.usual_ns >= excess_ns / 2)
            return job->operations.items[i].kind != OPERATION_TRAFFIC ||
                           is_alone(job, &laggard, excess_ns / 2, longest_ns)
                       ? laggard
                       : (struct laggard){.rank = -1};
    }
    return (struct laggard){.rank = -1};
}

static void say_traffic(const struct judge *judge, struct verdict *verdict, int64_t usual_ns)
{
    const struct step *step = &judge->job->steps.items[verdict->step];
    struct laggard culprit = find_culprit(judge, (size_t)verdict->step, (int64_t)verdict->size_ns,
                                          (uint64_t)usual_ns + verdict->limit_ns, first_data_of);

    judge_say(verdict, "the step took %.1f ms, where %.1f ms are usual (median); ",
              judge_ms((int64_t)step->duration_ns), judge_ms(usual_ns));
    if (culprit.rank >= 0) {
        verdict->rank = culprit.rank;
        verdict->operation = culprit.operation;
        judge_say(verdict,
                  "rank %" PRId32
                  " sent its first data %.1f ms after all others, where %.1f ms are usual: it was late, or "
                  "whom it sends to had given it no buffer; ",
                  culprit.rank, judge_ms(culprit.behind_ns), judge_ms(culprit.usual_ns));
    }
    judge_say(verdict,
              "what the %zu ranks asked for and when is not told, so that hosts, GPUs and links cannot be told apart: "
              "with an agent on the hosts they can",
              step->ranks);
}

/* What all ranks are needed for, and whose host gave it by most of what the step took longer after all others. */
static bool say_late_host(const struct judge *judge, struct verdict *verdict, int64_t usual_ns)
{
    const struct job *job = judge->job;
    struct laggard culprit = find_culprit(judge, (size_t)verdict->step, (int64_t)verdict->size_ns,
                                          (uint64_t)usual_ns + verdict->limit_ns, enqueue_of);

    if (culprit.rank < 0 || (evidence_sight(job->evidence, culprit.rank) & SOURCE_MESSAGES) != 0)
        return false;
    const struct operation *operation = &job->operations.items[culprit.operation];
    int64_t own_ns = culprit.behind_ns - culprit.usual_ns;
    if (operation->kind == OPERATION_GROUP || operation->ranks != (size_t)operation->ranks_count ||
        (uint64_t)own_ns <= 2 * operation->bound_ns)
        return false;
    verdict->class = VERDICT_HOST_LATE;
    verdict->rank = culprit.rank;
    verdict->operation = culprit.operation;
    verdict->bound_ns = operation->bound_ns;
    verdict->size_ns = (uint64_t)own_ns < verdict->size_ns ? (uint64_t)own_ns : verdict->size_ns;
    judge_say(
        verdict,
        "rank %" PRId32 " gave the operation %.1f ms after all others, where %.1f ms are usual, and the step took "
        "%.1f ms, where %.1f ms are usual (medians); of the rank no messages are seen, and nobody of whom they are "
        "was late",
        culprit.rank, judge_ms(culprit.behind_ns), judge_ms(culprit.usual_ns),
        judge_ms((int64_t)job->steps.items[verdict->step].duration_ns), judge_ms(usual_ns));
    return true;
}

/*
 * Where traffic lies between a step and the one before that belongs to neither, or the next one is over no later, what
 * the step took is not known.
 */
static bool is_measured(const struct judge *judge, size_t step)
{
    const struct job *job = judge->job;
    int32_t first = judge->spans[step].first;

    if (job->operations.items[first].kind != OPERATION_TRAFFIC)
        return true;
    bool is_over = step + 1 == job->steps.count || job->steps.items[step].end_ns < job->steps.items[step + 1].end_ns;
    return is_over && first == judge->spans[step - 1].end;
}

static void judge_unseen_step(struct judge *judge, size_t index, int64_t usual_ns, int64_t limit_ns)
{
    struct job *job = judge->job;
    const struct step *step = &job->steps.items[index];
    int64_t excess_ns = (int64_t)step->duration_ns - usual_ns;
    size_t unseen = excess_ns > limit_ns && is_measured(judge, index) ? count_unseen(job, index) : 0;
    int32_t operation = unseen == 0 ? -1 : last_on_wire(job, index);

    if (operation < 0)
        return;
    struct verdict *verdict = array_add(&job->verdicts);
    verdict->class = VERDICT_LATE_UNSEEN;
    verdict->step = (int32_t)index;
    verdict->rank = -1;
    verdict->peer_rank = -1;
    verdict->operation = operation;
    verdict->size_ns = (uint64_t)excess_ns;
    verdict->limit_ns = (uint64_t)limit_ns;
    verdict->bound_ns = step->bound_ns;
    verdict->confidence = judge_confidence(judge, excess_ns, limit_ns, operation);
    if (job->operations.items[operation].kind == OPERATION_TRAFFIC) {
        say_traffic(judge, verdict, usual_ns);
        return;
    }
    if (say_late_host(judge, verdict, usual_ns))
        return;
    judge_say(
        verdict,
        "the step took %.1f ms, where %.1f ms are usual (median); of %zu of its %zu ranks no messages are seen, so "
        "their GPUs and their links cannot be told apart: with a NIC side that sees frames they can",
        judge_ms((int64_t)step->duration_ns), judge_ms(usual_ns), unseen, step->ranks);
}

/*
 * Of traffic it is not told what a step is: what is longer again and again, and not in a row, is the job's own pattern.
 */
static bool is_pattern(const struct job *job, const int64_t *durations, int64_t limit_ns)
{
    size_t runs = 0;

    for (size_t i = FIRST_STEP; i < job->steps.count; i++)
        runs += durations[i] > limit_ns && durations[i - 1] <= limit_ns;
    return job->operations.items[0].kind == OPERATION_TRAFFIC && runs * PATTERN_STEPS > job->steps.count;
}

static void judge_unseen_steps(struct judge *judge, const int64_t *durations, int64_t usual_ns, int64_t limit_ns)
{
    struct job *job = judge->job;
    bool *taken = judge_taken(job);
    bool say = job->evidence != NULL && !is_pattern(job, durations, usual_ns + limit_ns);

    for (size_t i = FIRST_STEP; say && i < job->steps.count; i++)
        if (!taken[i])
            judge_unseen_step(judge, i, usual_ns, limit_ns);
    free(taken);
}

void judge_unseen(struct judge *judge)
{
    struct job *job = judge->job;
    int64_t *durations = array_zeroed((job->steps.count + 1) * sizeof *durations);
    int64_t *sorted = array_zeroed((job->steps.count + 1) * sizeof *sorted);

    for (size_t i = 0; i < job->steps.count; i++)
        sorted[i] = durations[i] = (int64_t)job->steps.items[i].duration_ns;
    int64_t usual_ns = array_median(sorted, job->steps.count);
    int64_t limit_ns = array_multiple(array_spread(sorted, job->steps.count), SPREADS);
    int64_t least_ns = array_multiple(judge->share_ns, SHARES_ALONE);
    judge_unseen_steps(judge, durations, usual_ns, limit_ns > least_ns ? limit_ns : least_ns);
    free(durations);
    free(sorted);
}
