/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a rank's operations. Invariant: total, so that equal input gives equal output. */
#include "correlator/turn.h"

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

void turn_list_all(turn_list *turns, const struct job *job)
{
    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        *(struct turn *)array_add(turns) =
            (struct turn){.rank = of->rank, .enqueued_ns = of->record.enqueued_ns, .index = i};
    }
    array_sort(turns, by_turn);
}
