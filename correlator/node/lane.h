/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane: one connection of one member in one direction, as its own port shows it: the slots of data in the order in
 * which they were sent, and the credits for them. Several queue pairs that serve one connection are one lane
 * (rotation.h). Receiving and sending lanes are alike; only the vantage differs.
 */
#pragma once

#include "correlator/intake/gap.h"
#include "correlator/node/rotation.h"

enum lane_direction {
    LANE_SEND,
    LANE_RECEIVE,
};

struct lane_losses { /* when frames may have been missed */
    const gap_list *gaps;
    const struct intake *intake;
    const struct timeline *timeline; /* NULL: until when is not asked for */
    uint64_t covered_from_ns;        /* the NIC side watched from here on */
};

struct credit {
    uint64_t ns; /* its (last) frame's time */
    int32_t message;
};

struct lane {
    enum lane_direction direction;
    int32_t queue_pair; /* the first of its queue pairs */
    int32_t peer_rank;  /* communicator rank at the other end, -1 = unknown */
    int32_t channel;    /* -1 = unknown */
    bool point_to_point;
    bool is_credited;       /* each slot has its credit: the n-th one */
    uint64_t watched_to_ns; /* by those who saw its slots; 0 = not known, or there are none */
    int64_t shift;          /* index of a slot's credit minus the slot's index, as last seen by lane_credit */
    slot_list slots;
    ARRAY(struct credit) credits;
    ARRAY(struct slot_message) messages;
};
typedef ARRAY(struct lane) lane_list;

/* Whether a queue pair of the member was made for sends and receives. */
bool lane_is_point_to_point(const struct naming *naming, const struct member *member, const struct queue_pair *pair);

/* The lanes of one member in one direction, by creation; queue pairs that carry nothing give none. */
void lane_build(lane_list *lanes, const struct naming *naming, int32_t member, enum lane_direction direction,
                const struct lane_losses *losses);
/*
 * Fills for each communicator how many channels its collectives have, as the set-up of all its members' connections
 * tells: also those of a member that has none of them on the wire. 0 = unknown.
 */
void lane_channels(unsigned *channels, const struct naming *naming);

/*
 * The credit for a slot: its index, or -1. Where credits or slots were lost the two are laid beside each other anew:
 * the first credit from not_before_ns on.
 */
int64_t lane_credit(struct lane *lane, size_t slot, uint64_t not_before_ns);

/*
 * Whether a call may begin with the slot. The receiving proxy gives credit for a call only when the one before it on
 * the connection is over: a slot whose credit was there before the slot in front of it began is of the same call.
 */
bool lane_may_begin(const struct lane *lane, size_t slot);

/* Whether credit was left that no slot used, for so long before those who watched it ended. */
bool lane_holds_credit(const struct lane *lane, uint64_t for_ns);

void lane_fini(lane_list *lanes);
