/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call asks for, as far as the wire is concerned. Ring collectives are one piece of work; everything else is
 * made of a send or receive for each peer, which follow each other in the order of the calls. Pure functions, any
 * thread.
 */
#pragma once

#include "correlator/node/lane.h"
#include "correlator/node/shape.h"

struct work { /* one call of one member */
    uint8_t kind;
    bool ring; /* a collective that `collective` describes */
    struct collective collective;
    int32_t peer;   /* peer or root */
    uint64_t bytes; /* else: payload for each peer */
    uint64_t enqueued_ns;
    bool has_company; /* other calls of the same group are to the same communicator */
};

/* `ranks_count`: of the communicator, 0 = unknown. */
void work_of_call(struct work *work, const struct call *call, int32_t ranks_count);

/* Whether a ring collective has anything to send from one communicator rank to its next: rooted ones end somewhere. */
bool work_passes(const struct work *work, int32_t sender, int32_t receiver);

/* Whether a ring collective is so little that it may take fewer channels, the first ones, and leave this one out. */
bool work_may_leave(const struct work *work, unsigned channel);

/* Whether calls of this kind go over connections between pairs, which are made for them. */
bool work_is_between_pairs(uint8_t operation);

/* The send, or receive, that the call of rank `own` has with `peer`; false when it has none. */
bool work_towards(struct work *towards, const struct work *work, int32_t own, enum lane_direction direction,
                  int32_t peer);
