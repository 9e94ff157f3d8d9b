/* SPDX-License-Identifier: BSD-2-Clause */
/* Which part of a collective is a channel's, by the library's version. Pure functions, any thread. */
#pragma once

#include "correlator/node/shape.h"

/* As ncclGetVersion numbers them (2.20.5: 22005); 0, unknown, and what has another numbering: SHAPE_LOOPS. */
enum shape_division division_of_version(uint32_t version);

/*
 * The turn-th division to try when `first` is the likeliest: the others come after it, since vendors' builds differ.
 * There are SHAPE_DIVISIONS turns.
 */
enum shape_division division_in_turn(enum shape_division first, unsigned turn);

/*
 * Elements of one channel, which follow those of the channel before; 0: it takes no part. Of SHAPE_LOOPS no channel has
 * a part of its own: all of them have all.
 */
uint64_t division_part(const struct shape *shape, const struct collective *collective, unsigned channel);

/* Those that take part have numbers below this. */
unsigned division_channels(const struct shape *shape, const struct collective *collective);

/* Of an all-reduce's last chunks: elements that they are multiples of. Not for SHAPE_LOOPS. */
uint64_t division_unit(const struct shape *shape, const struct collective *collective);
