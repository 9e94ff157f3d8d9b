/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can what a lane carried be read as these calls, one after the other, to the byte? From some slot and one of the first
 * calls on, every slot has to belong to a call, in order, none of them before the call was enqueued.
 * One thread.
 */
#pragma once

#include "correlator/adoption/track.h"
#include "correlator/node/rotation.h"
#include "correlator/node/work.h"

enum decoding_kind { /* bits */
                     DECODING_NONE = 0,
                     DECODING_RING = 1,  /* its ring collectives, all on one channel */
                     DECODING_PAIRS = 2, /* its sends and receives, all-to-alls, gathers and scatters */
};

struct book { /* a member's calls in order of enqueue, and of ring collectives which set of tracks they have */
    ARRAY(struct work) works;
    ARRAY(int32_t) sets; /* -1: none */
};

struct decoding {
    const struct book *book;
    const struct track_set *sets;
    size_t sets_count;
    const slot_list *slots;
    enum lane_direction direction;
    int32_t own; /* communicator ranks: of whose calls they are, and at the other end */
    int32_t peer;
    unsigned channels; /* at most */
    uint64_t bound_ns;
};

/* In which ways (enum decoding_kind) the lane can be read, by more than a few calls. */
unsigned decoding_try(const struct decoding *decoding);
