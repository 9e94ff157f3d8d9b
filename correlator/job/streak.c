/* SPDX-License-Identifier: BSD-2-Clause */
/* Streaks. Invariant: a step of a streak is above the limit, and so are its neighbours in the streak. */
#include "correlator/job/streak.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/array.h"

#define PART_STEPS_MAX 64 /* longer runs are even as a whole, or not */

static bool is_even(const int64_t *values, size_t count, int64_t median)
{
    size_t near = 0;

    for (size_t i = 0; i < count; i++)
        near += llabs(values[i] - median) <= median / 4;
    return near * 5 >= count * 4;
}

struct run {
    size_t from;
    size_t count;
    int64_t median;
    int64_t quartile;
    bool even;
};

static struct run run_of(const int64_t *values, size_t from, size_t count)
{
    int64_t *sorted = array_zeroed(count * sizeof *sorted);
    struct run run = {.from = from, .count = count};

    memcpy(sorted, values + from, count * sizeof *sorted);
    run.median = array_median(sorted, count);
    run.quartile = array_quantile(sorted, count, 250);
    run.even = is_even(sorted, count, run.median);
    free(sorted);
    return run;
}

/* The longest even part of a run, the earliest of several: something else may have gone before. */
static struct run even_part(const int64_t *values, size_t count)
{
    for (size_t length = count; length >= STREAK_STEPS && count <= PART_STEPS_MAX; length--)
        for (size_t from = 0; from + length <= count; from++) {
            struct run run = run_of(values, from, length);
            if (run.even)
                return run;
        }
    return (struct run){0};
}

/*
 * Chance only adds: what is too small at the edge of an even part came before or after its cause, what is larger beside
 * it has the same cause and something else.
 */
static struct run settled(const int64_t *values, size_t count, struct run run)
{
    int64_t least = run.median - run.median / 4;

    if (!run.even)
        return run;
    while (run.count > STREAK_STEPS && values[run.from] < least) {
        run.from++;
        run.count--;
    }
    while (run.count > STREAK_STEPS && values[run.from + run.count - 1] < least)
        run.count--;
    for (; run.from > 0 && values[run.from - 1] >= least; run.count++)
        run.from--;
    while (run.from + run.count < count && values[run.from + run.count] >= least)
        run.count++;
    return run;
}

/* Fills `common` for one run of values above the limit; leaves it where there is no streak. Returns how many it filled.
 */
static size_t judge_run(const int64_t *values, size_t count, struct streak_limits limits, int64_t *common)
{
    if (count < STREAK_STEPS)
        return 0;
    struct run run = run_of(values, 0, count);
    if (!run.even && run.median <= limits.sure)
        run = even_part(values, count);
    run = settled(values, count, run);
    for (size_t i = run.from; i < run.from + run.count; i++)
        common[i] = run.even ? run.quartile : values[i];
    return run.count;
}

size_t streak_find(const int64_t *values, size_t count, struct streak_limits limits, int64_t *common)
{
    size_t found = 0;

    memset(common, 0, count * sizeof *common);
    for (size_t from = 0, to; from < count; from = to + 1) {
        for (to = from; to < count && values[to] > limits.above;)
            to++;
        found += judge_run(values + from, to - from, limits, common + from);
    }
    return found;
}
