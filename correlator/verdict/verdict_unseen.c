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

#define FIRST_STEP 2 /* those before still make connections */
#define SPREADS    6 /* times the spread of the job's steps */

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

/* rank -1: of fewer than two ranks the time is known. */
static struct laggard find_laggard(const struct job *job, size_t index, time_of *time)
{
    const struct operation *operation = &job->operations.items[index];
    struct laggard laggard = {.operation = (int32_t)index, .rank = -1};
    uint64_t last_ns = 0, others_ns = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        uint64_t first_ns = time(&of->record);
        if (first_ns > last_ns) {
            others_ns = last_ns;
            last_ns = first_ns;
            laggard.rank = of->rank;
        } else if (first_ns > others_ns) {
            others_ns = first_ns;
        }
    }
    if (others_ns == 0)
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
            return laggard;
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

static void judge_unseen_step(struct judge *judge, size_t index, int64_t usual_ns, int64_t limit_ns)
{
    struct job *job = judge->job;
    const struct step *step = &job->steps.items[index];
    int64_t excess_ns = (int64_t)step->duration_ns - usual_ns;
    size_t unseen = excess_ns > limit_ns ? count_unseen(job, index) : 0;
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

void judge_unseen(struct judge *judge)
{
    struct job *job = judge->job;
    int64_t *durations = array_zeroed((job->steps.count + 1) * sizeof *durations);
    bool *taken = judge_taken(job);

    for (size_t i = 0; i < job->steps.count; i++)
        durations[i] = (int64_t)job->steps.items[i].duration_ns;
    int64_t usual_ns = array_median(durations, job->steps.count);
    int64_t limit_ns = array_multiple(array_spread(durations, job->steps.count), SPREADS);
    int64_t least_ns = array_multiple(judge->share_ns, SHARES_ALONE);
    for (size_t i = FIRST_STEP; job->evidence != NULL && i < job->steps.count; i++)
        if (!taken[i])
            judge_unseen_step(judge, i, usual_ns, limit_ns > least_ns ? limit_ns : least_ns);
    free(taken);
    free(durations);
}
