/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What keeps coming back: picks out of a series (one value a step) the stretches in which a value stays above a limit,
 * step after step. One value above the limit may be chance; STREAK_STEPS of them nearly in a row are not. Pure
 * functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAK_STEPS 4

/*
 * Marks the steps of every stretch with at least STREAK_STEPS values above `limit` and never two in a row below it; a
 * step at its edge or within it that reaches half of the stretch's median belongs to it. Returns how many are marked.
 */
size_t streak_mark(const int64_t *values, size_t count, int64_t limit, bool *marked);
