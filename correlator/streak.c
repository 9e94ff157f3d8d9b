/* SPDX-License-Identifier: BSD-2-Clause */
/* Streaks. Invariant: a marked step reaches half of the median of a stretch that is long enough. */
#include "correlator/streak.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/array.h"

/* The end of the stretch that begins at `from`: behind its last value above the limit. */
static size_t stretch_end(const int64_t *values, size_t count, size_t from, int64_t limit)
{
    size_t end = from;

    for (size_t i = from; i < count && i <= end + 1; i++) {
        if (values[i] > limit)
            end = i + 1;
    }
    return end;
}

/* A single value at an edge, with a gap behind it, may be chance. */
static void trim(const int64_t *values, size_t *from, size_t *to, int64_t limit)
{
    while (*to - *from >= 2 && values[*from + 1] <= limit)
        *from += 2;
    while (*to - *from >= 2 && values[*to - 2] <= limit)
        *to -= 2;
}

static size_t strong_values(const int64_t *values, size_t from, size_t to, int64_t limit, int64_t *strong)
{
    size_t count = 0;

    for (size_t i = from; i < to; i++)
        if (values[i] > limit)
            strong[count++] = values[i];
    return count;
}

static bool is_even(const int64_t *strong, size_t count, int64_t median)
{
    size_t near = 0;

    for (size_t i = 0; i < count; i++)
        near += llabs(strong[i] - median) <= median / 4;
    return near * 5 >= count * 4;
}

/* The median of the stretch [from, to), or 0 when it is no streak. */
static int64_t streak_median(const int64_t *values, size_t from, size_t to, struct streak_limits limits)
{
    int64_t *strong = array_zeroed((to - from) * sizeof *strong);
    size_t count = strong_values(values, from, to, limits.above, strong);
    int64_t median = array_median(strong, count);
    bool streak = count >= STREAK_STEPS && (median > limits.sure || is_even(strong, count, median));

    free(strong);
    return streak ? median : 0;
}

size_t streak_mark(const int64_t *values, size_t count, struct streak_limits limits, bool *marked)
{
    size_t total = 0;

    memset(marked, 0, count * sizeof *marked);
    for (size_t from = 0; from < count; from++) {
        if (values[from] <= limits.above)
            continue;
        size_t end = stretch_end(values, count, from, limits.above);
        size_t to = end;
        trim(values, &from, &to, limits.above);
        int64_t median = streak_median(values, from, to, limits);
        for (size_t i = from > 0 ? from - 1 : 0; median > 0 && i < to + 1 && i < count; i++)
            if (values[i] > median / 2 && !marked[i]) {
                marked[i] = true;
                total++;
            }
        from = end - 1;
    }
    return total;
}
