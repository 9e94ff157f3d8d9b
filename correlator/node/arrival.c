/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrivals. Invariant: an arrival is never later than the rank's first data, and rests on nothing that was not seen.
 */
#include "correlator/node/arrival.h"

#include <stdlib.h>

#include "correlator/turn.h"

#define PROMPT_TIMES 2
#define CREDIT_TIMES 8 /* times what a credit takes that sending may take at most: the same thread does both */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What so many of a thousand of a rank's data, or its first credits, stay below after it could give them; 0: unknown.
 */
static uint64_t usual_turn(const struct job *job, const struct turn *turns, size_t count, bool credit)
{
    int64_t *waits = array_zeroed(count * sizeof *waits);
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[turns[i].index];
        const struct record_rank_operation *record = &of->record;
        uint64_t cause = credit ? record->enqueued_ns : record->held_ns;
        uint64_t since = later(cause, of->before_ns);
        uint64_t done = credit ? record->host_ready_ns : record->gpu_ready_ns;
        if (cause != 0 && of->before_ns != 0 && done > since)
            waits[known++] = (int64_t)(done - since);
    }
    uint64_t usual = (uint64_t)array_quantile(waits, known, 250);
    free(waits);
    return usual;
}

/*
 * Marks the data that followed its credit as soon as it usually does. Where hosts run ahead of their GPUs, credit lies
 * there while the GPU computes, every time: that is no turn-around.
 */
static void mark_prompt(struct job *job, const struct turn *turns, size_t count)
{
    uint64_t usual = usual_turn(job, turns, count, false);
    uint64_t credit = usual_turn(job, turns, count, true);

    if (credit != 0 && usual > CREDIT_TIMES * credit)
        usual = CREDIT_TIMES * credit;
    for (size_t i = 0; i < count; i++) {
        struct record_rank_operation *record = &job->rank_operations.items[turns[i].index].record;
        if (record->held_ns == 0 || record->gpu_ready_ns <= record->held_ns + PROMPT_TIMES * usual)
            record->flags |= RANK_OPERATION_GPU_READY_LATEST;
    }
}

static void find_before(struct job *job)
{
    turn_list turns = {0};
    uint64_t end_ns = 0;

    turn_list_all(&turns, job);
    for (size_t i = 0; i < turns.count; i++) {
        struct rank_operation *of = &job->rank_operations.items[turns.items[i].index];
        if (i == 0 || turns.items[i].rank != turns.items[i - 1].rank)
            end_ns = 0;
        of->before_ns = end_ns;
        if (of->record.end_ns != 0)
            end_ns = of->record.received_ns != 0 ? of->record.received_ns : of->record.end_ns;
    }
    for (size_t from = 0, to; from < turns.count; from = to) {
        for (to = from; to < turns.count && turns.items[to].rank == turns.items[from].rank;)
            to++;
        mark_prompt(job, &turns.items[from], to - from);
    }
    array_fini(&turns);
}

static void find_arrival(struct rank_operation *of)
{
    const struct record_rank_operation *record = &of->record;
    bool latest = (record->flags & RANK_OPERATION_GPU_READY_LATEST) != 0;
    uint64_t gpu = latest ? 0 : record->gpu_ready_ns;
    uint64_t free_ns = of->before_ns;

    if (record->first_data_ns != 0 && free_ns > record->first_data_ns)
        free_ns = record->first_data_ns;
    if (record->host_ready_ns == 0 && record->gpu_ready_ns == 0)
        return;
    if (gpu != 0) {
        of->arrival_of = record->host_ready_ns > gpu ? ARRIVAL_HOST : ARRIVAL_GPU;
        of->arrival_ns = later(record->host_ready_ns, gpu);
    } else if (record->host_ready_ns != 0) {
        of->arrival_of = ARRIVAL_HOST;
        of->arrival_ns = later(record->host_ready_ns, free_ns);
    } else {
        of->arrival_of = ARRIVAL_ENQUEUE;
        of->arrival_ns = later(record->enqueued_ns, free_ns);
    }
}

static void find_late(struct job *job, struct operation *operation, size_t own)
{
    struct rank_operation *of = &job->rank_operations.items[operation->first_rank + own];
    int64_t *others = array_zeroed(operation->ranks * sizeof *others);
    size_t count = 0;

    for (size_t i = 0; i < operation->ranks; i++) {
        uint64_t arrival = job->rank_operations.items[operation->first_rank + i].arrival_ns;
        if (i != own && arrival != 0)
            others[count++] = (int64_t)arrival;
    }
    if (of->arrival_ns != 0 && count > 0) {
        of->late_known = true;
        of->late_ns = (int64_t)of->arrival_ns - array_median(others, count);
    }
    free(others);
    if (of->arrival_ns > operation->last_arrival_ns)
        operation->last_arrival_ns = of->arrival_ns;
}

void arrival_find(struct job *job)
{
    find_before(job);
    for (size_t i = 0; i < job->rank_operations.count; i++)
        find_arrival(&job->rank_operations.items[i]);
    for (size_t i = 0; i < job->operations.count; i++)
        for (size_t own = 0; own < job->operations.items[i].ranks; own++)
            find_late(job, &job->operations.items[i], own);
}
