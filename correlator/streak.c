/* SPDX-License-Identifier: BSD-2-Clause */
/* Streaks. Invariant: a step of a streak reaches three quarters of its median. */
#include "correlator/streak.h"

#include <stdbool.h>
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

struct streak {
    int64_t median; /* 0: it is none */
    int64_t common; /* 0: each step has its own */
};

static struct streak streak_of(const int64_t *values, size_t from, size_t to, struct streak_limits limits)
{
    int64_t *strong = array_zeroed((to - from) * sizeof *strong);
    size_t count = strong_values(values, from, to, limits.above, strong);
    struct streak streak = {0};

    if (count >= STREAK_STEPS) {
        int64_t median = array_median(strong, count);
        bool even = is_even(strong, count, median);
        streak.median = even || median > limits.sure ? median : 0;
        streak.common = even ? array_quantile(strong, count, 250) : 0;
    }
    free(strong);
    return streak;
}

size_t streak_find(const int64_t *values, size_t count, struct streak_limits limits, int64_t *common)
{
    size_t total = 0;

    memset(common, 0, count * sizeof *common);
    for (size_t from = 0; from < count; from++) {
        if (values[from] <= limits.above)
            continue;
        size_t end = stretch_end(values, count, from, limits.above);
        size_t to = end;
        trim(values, &from, &to, limits.above);
        struct streak streak = streak_of(values, from, to, limits);
        for (size_t i = from > 0 ? from - 1 : 0; streak.median > 0 && i < to + 1 && i < count; i++)
            if (values[i] > streak.median / 4 * 3 && common[i] == 0) {
                common[i] = streak.common != 0 ? streak.common : values[i];
                total++;
            }
        from = end - 1;
    }
    return total;
}
