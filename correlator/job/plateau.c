/* SPDX-License-Identifier: BSD-2-Clause */
/* Levels. Invariant: a series whose steps all are of one kind, however much they vary, loses none of its values. */
#include "correlator/job/plateau.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/array.h"

#define AROUND 2  /* values before and behind one whose median is taken */
#define STRAYS 20 /* one of so many may be as low as the level */

static void smooth(const int64_t *values, size_t count, int64_t *smoothed)
{
    for (size_t i = 0; i < count; i++) {
        int64_t near[2 * AROUND + 1];
        size_t used = 0;
        for (size_t j = i < AROUND ? 0 : i - AROUND; j < count && j <= i + AROUND; j++)
            near[used++] = values[j];
        smoothed[i] = array_median(near, used);
    }
}

struct edge {     /* of a level */
    int64_t most; /* its largest smoothed value */
    int64_t step; /* from there to the next larger one */
};

/* At the widest step up in the lower half of the smoothed values. */
static struct edge find_edge(const int64_t *smoothed, size_t count, int64_t *sorted)
{
    struct edge edge = {.step = -1};

    memcpy(sorted, smoothed, count * sizeof *sorted);
    array_sort_values(sorted, count);
    for (size_t i = PLATEAU_STEPS - 1; i < count / 2; i++)
        if (sorted[i + 1] - sorted[i] > edge.step)
            edge = (struct edge){sorted[i], sorted[i + 1] - sorted[i]};
    return edge;
}

static bool is_held(const int64_t *smoothed, size_t count, int64_t most)
{
    size_t held = 0;

    for (size_t i = 0; i < count && held < PLATEAU_STEPS; i++)
        held = smoothed[i] <= most ? held + 1 : 0;
    return held == PLATEAU_STEPS;
}

/* What the level mostly differs by from one of its steps to the next: what comes and goes with others does not count.
 */
static int64_t noise_of(const int64_t *values, const int64_t *smoothed, size_t count, int64_t most, int64_t *room)
{
    size_t used = 0;

    for (size_t i = 1; i < count; i++)
        if (smoothed[i - 1] <= most && smoothed[i] <= most)
            room[used++] = llabs(values[i] - values[i - 1]);
    return array_select(room, used, 500);
}

/* What only drifts away has no edge, and of what only varies others are as low. */
static bool is_apart(const int64_t *values, const int64_t *smoothed, size_t count, struct edge edge, int64_t noise)
{
    int64_t least = array_multiple(noise, PLATEAU_NOISE);
    size_t others = 0, strays = 0;

    for (size_t i = 0; i < count; i++) {
        others += smoothed[i] > edge.most;
        strays += smoothed[i] > edge.most && values[i] - edge.most <= least;
    }
    return edge.step > least && strays <= others / STRAYS;
}

size_t plateau_keep(int64_t *values, size_t count)
{
    size_t kept = 0;

    if (count < 2 * PLATEAU_STEPS)
        return count;
    int64_t *smoothed = array_zeroed(2 * count * sizeof *smoothed), *room = smoothed + count;
    smooth(values, count, smoothed);
    struct edge edge = find_edge(smoothed, count, room);
    bool found = is_held(smoothed, count, edge.most) &&
                 is_apart(values, smoothed, count, edge, noise_of(values, smoothed, count, edge.most, room));
    for (size_t i = 0; found && i < count; i++)
        if (smoothed[i] <= edge.most)
            values[kept++] = values[i];
    free(smoothed);
    return found ? kept : count;
}
