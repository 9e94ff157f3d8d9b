/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The period of a sequence of signatures: the shortest repeat that, after a warm-up, holds to the end or explains
 * nearly as much as any other repeat does. Pure functions, any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Looks for a period in signatures[0..count). Returns it and sets [*from, *to) to the longest stretch that repeats with
 * it (at least two whole periods); 0 when nothing repeats.
 */
size_t period_find(const uint64_t *signatures, size_t count, size_t *from, size_t *to);
