/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a rank's operations. Invariant: total, so that equal input gives equal output. */
#include "correlator/turn.h"

#include <stdlib.h>
#include <string.h>

static int by_turn(const void *a, const void *b)
{
    const struct turn *left = a;
    const struct turn *right = b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->enqueued_ns != right->enqueued_ns)
        return left->enqueued_ns < right->enqueued_ns ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

/* Of one rank; operations are in order of enqueue, so its turns nearly are. */
static void order_turns(struct turn *turns, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct turn turn = turns[i];
        size_t at = i;
        for (; at > 0 && by_turn(&turns[at - 1], &turn) > 0; at--)
            turns[at] = turns[at - 1];
        turns[at] = turn;
    }
}

/* By rank + 1: where its turns begin; one more at the end. To be freed. */
static size_t *find_begins(const struct job *job, int32_t last)
{
    size_t *begins = array_zeroed(((size_t)last + 3) * sizeof *begins);

    for (size_t i = 0; i < job->rank_operations.count; i++)
        begins[job->rank_operations.items[i].rank + 2]++;
    for (int32_t rank = 0; rank <= last + 1; rank++)
        begins[rank + 1] += begins[rank];
    return begins;
}

void turn_list_all(turn_list *turns, const struct job *job)
{
    int32_t last = -1;

    if (job->turns.count == job->rank_operations.count && job->turns.count > 0) {
        array_reserve(turns, job->turns.count);
        memcpy(turns->items, job->turns.items, job->turns.count * sizeof *turns->items);
        turns->count = job->turns.count;
        return;
    }
    for (size_t i = 0; i < job->rank_operations.count; i++)
        last = job->rank_operations.items[i].rank > last ? job->rank_operations.items[i].rank : last;
    size_t *begins = find_begins(job, last);
    array_reserve(turns, job->rank_operations.count);
    turns->count = job->rank_operations.count;
    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        turns->items[begins[of->rank + 1]++] =
            (struct turn){.rank = of->rank, .enqueued_ns = of->record.enqueued_ns, .index = i};
    }
    for (size_t from = 0, to; from < turns->count; from = to) {
        for (to = from; to < turns->count && turns->items[to].rank == turns->items[from].rank;)
            to++;
        order_turns(&turns->items[from], to - from);
    }
    free(begins);
}
