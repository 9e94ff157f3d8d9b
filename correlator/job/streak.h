/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What keeps coming back: picks out of a series (one value a step) the runs in which a value stays above a limit, step
 * after step. One value above the limit may be chance, STREAK_STEPS of them in a row and alike are not. Pure functions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STREAK_STEPS 5

struct streak_limits {
    int64_t above; /* a value of a streak exceeds this */
    int64_t sure;  /* a streak whose median exceeds this needs not be even */
};

/*
 * Finds every run of at least STREAK_STEPS values above the limit, if it is even: four fifths of its values lie within
 * a quarter of their median, as what has one cause does. common[i] becomes, for a step of a streak, what the streak's
 * steps have in common: the lower quartile of an even streak (chance only adds to it), the step's own value of an
 * uneven one; 0 for all others. Returns how many are not 0.
 */
size_t streak_find(const int64_t *values, size_t count, struct streak_limits limits, int64_t *common);
