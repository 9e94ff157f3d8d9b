/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What keeps coming back: picks out of a series (one value a step) the stretches in which a value stays above a limit,
 * step after step. One value above the limit may be chance, STREAK_STEPS of them nearly in a row and alike are not.
 * Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAK_STEPS 5

struct streak_limits {
    int64_t above; /* a value of a streak exceeds this */
    int64_t sure;  /* a streak whose median exceeds this needs not be even */
};

/*
 * Finds the steps of every stretch with at least STREAK_STEPS values above the limit and never two in a row below it,
 * if the stretch is even: four fifths of its values lie within a quarter of their median, as what has one cause does. A
 * step within it or beside it that reaches three quarters of that median belongs to it. common[i] becomes, for a step
 * of a streak, what the streak's steps have in common: the lower quartile of an even streak (chance only adds to it),
 * the step's own value of an uneven one; 0 for all others. Returns how many are not 0.
 */
size_t streak_find(const int64_t *values, size_t count, struct streak_limits limits, int64_t *common);
