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
    uint64_t covered_from_ns; /* the NIC side watched from here on */
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
    int64_t shift; /* index of a slot's credit minus the slot's index, as last seen by lane_credit */
    slot_list slots;
    ARRAY(struct credit) credits;
    ARRAY(struct slot_message) messages;
};
typedef ARRAY(struct lane) lane_list;

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

void lane_fini(lane_list *lanes);
