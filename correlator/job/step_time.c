/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of steps. Invariant: a rank's steps follow each other, none ends before it starts. */
#include "correlator/job/step_time.h"

#include <stdlib.h>

#include "correlator/job/beat.h"

#define TAIL_TIMES 2

/* How long the rank usually goes on sending after the last data it received, in operations that end a step. */
static uint64_t usual_tail(const struct job *job, const struct rank_step *steps, const size_t *last, size_t count)
{
    int64_t *tails = array_zeroed(count * sizeof *tails);
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        const struct record_rank_operation *record = &job->rank_operations.items[last[i]].record;
        if (steps[i].start_ns != 0 && record->received_ns != 0)
            tails[known++] = (int64_t)(record->end_ns - record->received_ns);
    }
    uint64_t usual = (uint64_t)array_median(tails, known);
    free(tails);
    return usual;
}

static uint64_t step_end(const struct record_rank_operation *record, uint64_t usual_ns)
{
    uint64_t longest = record->received_ns + TAIL_TIMES * usual_ns;

    return record->received_ns != 0 && record->end_ns > longest ? longest : record->end_ns;
}

/*
 * What no frame shows the end of was over when the host's next wait for its GPU was, if that was before `until_ns`;
 * else all that is known is that it was not over before its enqueue.
 */
static uint64_t waited_end(const wait_list *waits, uint64_t enqueued_ns, uint64_t until_ns)
{
    size_t low = 0, high = waits->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (waits->items[middle] < enqueued_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < waits->count && waits->items[low] <= until_ns ? waits->items[low] : enqueued_ns;
}

static void add_operation(struct rank_step *rank_step, const struct rank_operation *of)
{
    if (rank_step->start_ns == 0)
        rank_step->start_ns = of->record.enqueued_ns;
    if (of->late_known && (!rank_step->late_known || of->late_ns > rank_step->late_ns)) {
        rank_step->late_known = true;
        rank_step->late_ns = of->late_ns;
    }
}

/* Sets the ends of one rank's steps, which have their first enqueue as start; last: each one's last rank operation. */
static void end_steps(const struct job *job, struct rank_step *steps, const size_t *last, int32_t rank)
{
    uint64_t usual_ns = usual_tail(job, steps, last, job->steps.count);
    uint64_t until_ns = UINT64_MAX; /* the first enqueue of the step behind */
    wait_list waits = {0};

    beat_waits(&waits, job, rank);
    for (size_t i = job->steps.count; i-- > 0;) {
        if (steps[i].start_ns == 0)
            continue;
        const struct record_rank_operation *record = &job->rank_operations.items[last[i]].record;
        steps[i].end_ns =
            record->end_ns == 0 ? waited_end(&waits, record->enqueued_ns, until_ns) : step_end(record, usual_ns);
        until_ns = steps[i].start_ns;
    }
    array_fini(&waits);
}

/* Adds the rank's steps; each starts at the end of the one before, where that is known. */
static void add_steps(struct job *job, struct rank_step *steps, int32_t rank)
{
    uint64_t before_ns = 0;

    for (size_t i = 0; i < job->steps.count; i++) {
        struct rank_step *own = &steps[i];
        if (own->start_ns == 0)
            continue;
        own->step = (int32_t)i;
        own->rank = rank;
        if (before_ns != 0 && !job->steps.items[i].fresh)
            own->start_ns = before_ns;
        if (own->end_ns < own->start_ns)
            own->end_ns = own->start_ns;
        own->duration_ns = own->end_ns - own->start_ns;
        before_ns = own->end_ns;
        *(struct rank_step *)array_add(&job->rank_steps) = *own;
    }
}

static void add_rank_steps(struct job *job, const struct turn *turns, size_t count)
{
    struct rank_step *own = array_zeroed(job->steps.count * sizeof *own);
    size_t *last = array_zeroed(job->steps.count * sizeof *last);

    for (size_t i = 0; i < count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[turns[i].index];
        int32_t step = job->operations.items[of->operation].step;
        if (step < 0)
            continue;
        bool later =
            own[step].start_ns == 0 || of->record.end_ns >= job->rank_operations.items[last[step]].record.end_ns;
        add_operation(&own[step], of);
        last[step] = later ? turns[i].index : last[step];
    }
    end_steps(job, own, last, turns[0].rank);
    add_steps(job, own, turns[0].rank);
    free(own);
    free(last);
}

static int by_step(const void *a, const void *b)
{
    const struct rank_step *left = a;
    const struct rank_step *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static void sum_ranks(struct job *job, struct step *step)
{
    int64_t *durations = array_zeroed(step->ranks * sizeof *durations);

    for (size_t i = 0; i < step->ranks; i++) {
        const struct rank_step *rank = &job->rank_steps.items[step->first_rank + i];
        durations[i] = (int64_t)rank->duration_ns;
        if (step->start_ns == 0 || rank->start_ns < step->start_ns)
            step->start_ns = rank->start_ns;
        if (rank->end_ns > step->end_ns)
            step->end_ns = rank->end_ns;
    }
    step->duration_ns = (uint64_t)array_middle(durations, step->ranks);
    free(durations);
}

static void sum_operations(struct job *job)
{
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (operation->step < 0)
            continue;
        struct step *step = &job->steps.items[operation->step];
        step->operations++;
        step->incomplete += (operation->flags & RANK_OPERATION_INCOMPLETE) != 0;
        if (2 * operation->bound_ns > step->bound_ns)
            step->bound_ns = 2 * operation->bound_ns;
        for (size_t j = 0; j < operation->ranks; j++) {
            const struct rank_operation *of = &job->rank_operations.items[operation->first_rank + j];
            if (!of->late_known || of->rank < 0 || (step->slowest_rank >= 0 && of->late_ns <= step->late_ns))
                continue;
            step->slowest_rank = of->rank;
            step->late_ns = of->late_ns;
            step->late_bound_ns = of->late_bound_ns;
            step->late_operation = (int32_t)i;
        }
    }
}

void step_time(struct job *job)
{
    turn_list turns = {0};

    turn_list_all(&turns, job);
    for (size_t from = 0, to; from < turns.count; from = to) {
        for (to = from; to < turns.count && turns.items[to].rank == turns.items[from].rank;)
            to++;
        if (turns.items[from].rank >= 0)
            add_rank_steps(job, &turns.items[from], to - from);
    }
    array_fini(&turns);
    array_sort(&job->rank_steps, by_step);
    for (size_t i = 0; i < job->rank_steps.count; i++) {
        struct step *step = &job->steps.items[job->rank_steps.items[i].step];
        if (step->ranks++ == 0)
            step->first_rank = i;
    }
    for (size_t i = 0; i < job->steps.count; i++)
        sum_ranks(job, &job->steps.items[i]);
    sum_operations(job);
}
