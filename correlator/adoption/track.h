/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a collective can leave on one lane: the sizes of its slots in order, for each shape that it can have and each of
 * the shape's blocks, each such row once. Owns its rows. One thread.
 */
#pragma once

#include "correlator/array.h"
#include "correlator/node/shape.h"

struct track { /* `count` of the set's sizes, from `first` on */
    unsigned block;
    size_t first;
    size_t count;
};

struct track_set {
    struct collective collective;
    enum shape_division division;
    unsigned channels;
    ARRAY(struct track) tracks;
    ARRAY(uint64_t) sizes;
};

/* `range`: channels at most; the division is beside SHAPE_LOOPS. Rows of more than some thousand slots are left out. */
void track_set_init(struct track_set *set, const struct collective *collective, const struct shape_range *range);
void track_set_fini(struct track_set *set);
