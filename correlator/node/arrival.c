/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrivals. Invariant: an arrival is never later than the rank's first data, and rests on nothing that was not seen.
 */
#include "correlator/node/arrival.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/job/beat.h"
#include "correlator/turn.h"

#define PART         8 /* of a ring's bytes, that may be missing of what is seen to come */
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
    uint64_t usual = (uint64_t)array_select(waits, known, 250);
    free(waits);
    return usual;
}

/*
 * Marks the data that followed its credit as soon as it usually does. Where hosts run ahead of their GPUs, credit lies
 * there while the GPU computes, every time: that is no turn-around.
 */
static void mark_prompt(struct job *job, const struct turn *turns, size_t count, uint64_t credit)
{
    uint64_t usual = usual_turn(job, turns, count, false);

    if (credit != 0 && usual > CREDIT_TIMES * credit)
        usual = CREDIT_TIMES * credit;
    for (size_t i = 0; i < count; i++) {
        struct record_rank_operation *record = &job->rank_operations.items[turns[i].index].record;
        if (record->held_ns == 0 || record->gpu_ready_ns <= record->held_ns + PROMPT_TIMES * usual)
            record->flags |= RANK_OPERATION_GPU_READY_LATEST;
    }
}

static size_t turns_of_rank(const turn_list *turns, size_t from)
{
    size_t to = from;

    while (to < turns->count && turns->items[to].rank == turns->items[from].rank)
        to++;
    return to - from;
}

/*
 * Few of a rank's credits may tell how long one takes, where most are given before its operation before is over: no
 * rank's host takes longer than is usual among them.
 */
static void mark_prompt_ranks(struct job *job, const turn_list *turns)
{
    ARRAY(int64_t) credits = {0};

    for (size_t from = 0, count; from < turns->count; from += count) {
        count = turns_of_rank(turns, from);
        uint64_t credit = usual_turn(job, &turns->items[from], count, true);
        if (credit != 0)
            *(int64_t *)array_add(&credits) = (int64_t)credit;
    }
    uint64_t median = (uint64_t)array_median(credits.items, credits.count);
    for (size_t from = 0, count; from < turns->count; from += count) {
        count = turns_of_rank(turns, from);
        uint64_t credit = usual_turn(job, &turns->items[from], count, true);
        mark_prompt(job, &turns->items[from], count, credit == 0 || credit > median ? median : credit);
    }
    array_fini(&credits);
}

/* What each rank receives in a ring; 0: of what not all receive alike. */
static uint64_t ring_bytes(const struct record_rank_operation *record)
{
    uint64_t others = record->ranks_count < 2 ? 0 : (uint64_t)record->ranks_count - 1;

    switch (record->operation) {
    case OPERATION_ALL_REDUCE:
        return 2 * (record->buffer_bytes / (others + 1)) * others;
    case OPERATION_ALL_GATHER:
    case OPERATION_REDUCE_SCATTER:
        return record->buffer_bytes * others;
    default:
        return 0;
    }
}

/*
 * When it was over for the rank: with the last data received, where that needs something of the rank itself. What comes
 * to it over NVLink, on all channels or some, is not seen, but comes no later than the end of what all receive. 0:
 * unknown.
 */
static uint64_t over_ns(const struct job *job, const struct rank_operation *of)
{
    uint64_t whole = ring_bytes(&of->record);

    if (whole != 0 && of->record.algorithm == ALGORITHM_RING && of->record.received_bytes < whole - whole / PART)
        return job->operations.items[of->operation].end_ns;
    if (arrival_passes_on(&of->record))
        return of->record.end_ns;
    return of->record.received_ns != 0 ? of->record.received_ns : of->record.end_ns;
}

struct lane_end { /* of a rank's operations on one communicator so far */
    const uint8_t *communicator;
    uint64_t end_ns;
    bool open; /* it may have been later */
    uint64_t unseen_ns;
};
typedef ARRAY(struct lane_end) lane_end_list;

static struct lane_end *lane_end_of(lane_end_list *lanes, const uint8_t *communicator)
{
    for (size_t i = 0; i < lanes->count; i++)
        if (memcmp(lanes->items[i].communicator, communicator, IDENTITY_BYTES) == 0)
            return &lanes->items[i];
    struct lane_end *lane = array_add(lanes);
    lane->communicator = communicator;
    return lane;
}

/* The host waited for its GPU behind what nobody sees the end of: then that was over. */
static void take_waited(struct rank_operation *of, const wait_list *waits)
{
    for (size_t i = waits->count; of->unseen_ns != 0 && i-- > 0 && waits->items[i] >= of->unseen_ns;)
        if (waits->items[i] <= of->record.enqueued_ns) {
            of->before_ns = later(of->before_ns, waits->items[i]);
            of->unseen_ns = 0;
        }
}

/*
 * A rank's operation before is over when it is, and not before those of the same communicator before it: what comes to
 * the rank for one may come early. What only comes to it says nothing of when its GPU took it.
 */
static void find_before(struct job *job)
{
    lane_end_list lanes = {0};
    turn_list turns = {0};
    struct lane_end last = {0};
    wait_list waits = {0};

    turn_list_all(&turns, job);
    for (size_t i = 0; i < turns.count; i++) {
        struct rank_operation *of = &job->rank_operations.items[turns.items[i].index];
        if (i == 0 || turns.items[i].rank != turns.items[i - 1].rank) {
            last = (struct lane_end){0};
            lanes.count = waits.count = 0;
            beat_waits(&waits, job, turns.items[i].rank);
        }
        struct lane_end *lane = lane_end_of(&lanes, of->record.communicator);
        of->before_open = last.open;
        of->before_ns = later(last.end_ns, lane->end_ns);
        of->unseen_ns = last.unseen_ns;
        take_waited(of, &waits);
        if (of->record.end_ns == 0) {
            last.unseen_ns = last.unseen_ns != 0 ? last.unseen_ns : of->record.enqueued_ns;
            continue;
        }
        last.unseen_ns = 0;
        lane->end_ns = later(lane->end_ns, over_ns(job, of));
        last.end_ns = lane->end_ns;
        last.open = arrival_passes_on(&of->record) && of->record.observed_bytes == 0;
    }
    array_fini(&lanes);
    array_fini(&waits);
    mark_prompt_ranks(job, &turns);
    array_fini(&turns);
}

/* The latest first data of a collective; 0 = none was seen, or it is a group, in which others' data asks for nobody. */
static uint64_t last_first_data(const struct job *job, const struct operation *operation)
{
    uint64_t latest_ns = 0;

    for (size_t i = 0; i < operation->ranks && operation->kind != OPERATION_GROUP; i++)
        latest_ns = later(latest_ns, job->rank_operations.items[operation->first_rank + i].record.first_data_ns);
    return latest_ns;
}

/* `shown_ns`: who sends nothing had arrived when the others' data flowed, though one before it may go on beside it. */
static void find_arrival(struct rank_operation *of, uint64_t shown_ns)
{
    const struct record_rank_operation *record = &of->record;
    bool latest = (record->flags & RANK_OPERATION_GPU_READY_LATEST) != 0;
    uint64_t gpu = latest ? 0 : record->gpu_ready_ns;
    uint64_t free_ns = of->before_ns;

    if (record->first_data_ns != 0)
        shown_ns = record->first_data_ns;
    if (shown_ns != 0 && free_ns > shown_ns)
        free_ns = shown_ns;
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

/* Frames are beside frames of other ranks, and calls beside anything. */
static uint64_t late_bound(const struct rank_operation *of, bool framed)
{
    return 2 * (framed ? job_frames_bound_ns(&of->record) : of->record.bound_ns);
}

static void find_late(struct job *job, struct operation *operation, int64_t *arrivals)
{
    struct rank_operation *ranks = &job->rank_operations.items[operation->first_rank];
    size_t count = 0;
    bool framed = true;

    for (size_t i = 0; i < operation->ranks; i++) {
        if (ranks[i].arrival_ns == 0)
            continue;
        arrivals[count++] = (int64_t)ranks[i].arrival_ns;
        framed &= ranks[i].arrival_of != ARRIVAL_ENQUEUE;
    }
    struct array_middles middles = array_middles(arrivals, count);
    for (size_t i = 0; i < operation->ranks; i++) {
        if (ranks[i].arrival_ns > operation->last_arrival_ns)
            operation->last_arrival_ns = ranks[i].arrival_ns;
        if (ranks[i].arrival_ns == 0 || count < 2)
            continue;
        int64_t own = (int64_t)ranks[i].arrival_ns;
        ranks[i].late_known = true;
        ranks[i].late_ns = own - array_median_without(middles, own);
        ranks[i].late_bound_ns = late_bound(&ranks[i], framed);
    }
}

void arrival_find(struct job *job)
{
    int64_t *arrivals = array_zeroed(job->rank_operations.count * sizeof *arrivals);

    find_before(job);
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        uint64_t shown_ns = last_first_data(job, operation);
        for (size_t j = 0; j < operation->ranks; j++)
            find_arrival(&job->rank_operations.items[operation->first_rank + j], shown_ns);
    }
    for (size_t i = 0; i < job->operations.count; i++)
        find_late(job, &job->operations.items[i], arrivals);
    free(arrivals);
}
