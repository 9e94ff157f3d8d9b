/* SPDX-License-Identifier: BSD-2-Clause */
/* Streaks. Invariant: a marked step reaches half of the median of a stretch that is long enough. */
#include "correlator/streak.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/array.h"

/* The end of the stretch that begins at `from`: behind its last value above the limit. */
static size_t stretch_end(const int64_t *values, size_t count, size_t from, int64_t limit, size_t *strong)
{
    size_t end = from;

    *strong = 0;
    for (size_t i = from; i < count && i <= end + 1; i++) {
        if (values[i] <= limit)
            continue;
        (*strong)++;
        end = i + 1;
    }
    return end;
}

static int64_t strong_median(const int64_t *values, size_t from, size_t to, int64_t limit)
{
    int64_t *strong = array_zeroed((to - from) * sizeof *strong);
    size_t count = 0;

    for (size_t i = from; i < to; i++)
        if (values[i] > limit)
            strong[count++] = values[i];
    int64_t median = array_median(strong, count);
    free(strong);
    return median;
}

size_t streak_mark(const int64_t *values, size_t count, int64_t limit, bool *marked)
{
    size_t total = 0;

    memset(marked, 0, count * sizeof *marked);
    for (size_t from = 0; from < count; from++) {
        size_t strong;
        if (values[from] <= limit)
            continue;
        size_t to = stretch_end(values, count, from, limit, &strong);
        if (strong >= STREAK_STEPS) {
            int64_t half = strong_median(values, from, to, limit) / 2;
            for (size_t i = from > 0 ? from - 1 : 0; i < to + 1 && i < count; i++)
                if (values[i] > half && !marked[i]) {
                    marked[i] = true;
                    total++;
                }
        }
        from = to - 1;
    }
    return total;
}
