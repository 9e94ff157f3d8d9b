/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks by their own past. Invariant: each rank's waits are looked at once, however many ask. */
#include "correlator/job/own_usual.h"

#include <stdlib.h>

#define QUIET_STEPS 5 /* fewer do not tell what is usual */

static int by_rank(const void *a, const void *b)
{
    int32_t left = ((const struct own_wait *)a)->rank, right = ((const struct own_wait *)b)->rank;

    return (left > right) - (left < right);
}

static int64_t usual_of(const struct own_wait *waits, size_t count)
{
    int64_t *values = array_zeroed(2 * count * sizeof *values);
    size_t quiet = 0;

    for (size_t i = 0; i < count; i++) {
        values[i] = waits[i].took_ns;
        if (waits[i].is_quiet)
            values[count + quiet++] = waits[i].took_ns;
    }
    int64_t usual = quiet < QUIET_STEPS ? array_select(values, count, 500) : array_select(values + count, quiet, 500);
    free(values);
    return usual;
}

void own_usual_find(own_usual_list *usuals, own_wait_list *waits)
{
    array_sort(waits, by_rank);
    for (size_t from = 0, to; from < waits->count; from = to) {
        for (to = from; to < waits->count && waits->items[to].rank == waits->items[from].rank; to++)
            ;
        *(struct own_usual *)array_add(usuals) =
            (struct own_usual){waits->items[from].rank, usual_of(waits->items + from, to - from)};
    }
}

int64_t own_usual_of(const own_usual_list *usuals, int32_t rank)
{
    size_t low = 0, high = usuals->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (usuals->items[middle].rank <= rank)
            low = middle;
        else
            high = middle;
    }
    return usuals->items[low].usual_ns;
}
