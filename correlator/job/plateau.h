/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a series (one value a step) was at before something came to stay. A quantile of all values says so only while
 * that has not been there for most of them; a level that was held once, and clearly left, is remembered for as long as
 * its steps are. Pure functions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PLATEAU_STEPS 6 /* in a row, at least */
#define PLATEAU_NOISE 4

/*
 * Keeps only the values of the series' lowest level, in order, where that is one apart: held for PLATEAU_STEPS in a
 * row, by no more than half of the steps, and all others but one of 20 are above it, without any between, by
 * PLATEAU_NOISE times what it differs by itself from one step to the next. Single values that stand out neither make
 * nor break a level. Where none is apart all values stay. Returns how many are kept.
 */
size_t plateau_keep(int64_t *values, size_t count);
