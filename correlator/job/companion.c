/* SPDX-License-Identifier: BSD-2-Clause */
/* Companions. Invariant: a rank is listed once, by the last operation that is shared with it. */
#include "correlator/job/companion.h"

#include <stdlib.h>

#include "correlator/turn.h"

struct companions {
    const struct job *job;
    turn_list turns;
    size_t *turn_of; /* by rank operation */
};

struct companions *companions_create(const struct job *job)
{
    struct companions *companions = array_zeroed(sizeof *companions);

    companions->job = job;
    turn_list_all(&companions->turns, job);
    companions->turn_of = array_zeroed((job->rank_operations.count + 1) * sizeof *companions->turn_of);
    for (size_t i = 0; i < companions->turns.count; i++)
        companions->turn_of[companions->turns.items[i].index] = i;
    return companions;
}

void companions_destroy(struct companions *companions)
{
    array_fini(&companions->turns);
    free(companions->turn_of);
    free(companions);
}

static const struct operation *operation_at(const struct companions *companions, size_t turn)
{
    const struct job *job = companions->job;

    return &job->operations.items[job->rank_operations.items[companions->turns.items[turn].index].operation];
}

static bool is_hidden(const struct companions *companions, size_t turn)
{
    return (operation_at(companions, turn)->flags & RANK_OPERATION_NO_WIRE) != 0;
}

/* The same rank's first operation on the wire behind a turn. */
static size_t next_on_wire(const struct companions *companions, size_t turn)
{
    int32_t rank = companions->turns.items[turn].rank;

    for (turn++; turn < companions->turns.count && companions->turns.items[turn].rank == rank; turn++)
        if (!is_hidden(companions, turn))
            return companions->turns.items[turn].index;
    return COMPANION_NONE;
}

static bool is_listed(const companion_list *list, int32_t rank)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].rank == rank)
            return true;
    return false;
}

static void add_ranks(const struct companions *companions, size_t turn, companion_list *list)
{
    const struct job *job = companions->job;
    const struct operation *operation = operation_at(companions, turn);

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        int32_t rank = job->rank_operations.items[i].rank;
        if (rank < 0 || rank == companions->turns.items[turn].rank || is_listed(list, rank))
            continue;
        *(struct companion *)array_add(list) =
            (struct companion){rank, next_on_wire(companions, companions->turn_of[i])};
    }
}

static int by_rank(const void *a, const void *b)
{
    int32_t left = ((const struct companion *)a)->rank, right = ((const struct companion *)b)->rank;

    return (left > right) - (left < right);
}

void companions_find(const struct companions *companions, size_t rank_operation, companion_list *list)
{
    size_t turn = companions->turn_of[rank_operation];
    int32_t rank = companions->turns.items[turn].rank;

    while (turn > 0 && companions->turns.items[turn - 1].rank == rank && is_hidden(companions, turn - 1))
        add_ranks(companions, --turn, list);
    array_sort(list, by_rank);
}
