/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cutting: which slots of a member's lanes belong to which of its calls. Calls run in the order in which they were
 * enqueued, so their slots follow each other on every lane; each call is compared with what lies next (match.h). After
 * a loss, or where nothing fits, the cut starts anew at the latest call that what follows can belong to; only what
 * lies between is marked. A slot never goes to a call that was enqueued after the slot's first frame.
 */
#pragma once

#include "correlator/node/match.h"

enum part_state {
    PART_NONE,    /* nothing is expected in this direction */
    PART_SILENT,  /* it took only channels that this rank does not have on the wire */
    PART_WHOLE,   /* all of it was found */
    PART_BROKEN,  /* some of it was lost, or has not come yet */
    PART_UNKNOWN, /* what was found fits no shape of the call, and nothing was lost */
};

struct part { /* one call in one direction */
    enum part_state state;
    uint64_t bytes; /* of what is not a ring collective: payload for all peers that are connected */
    bool is_tree;
    share_list shares;
};

struct operation_cut {
    struct work work;
    struct part parts[2]; /* by enum lane_direction */
};
typedef ARRAY(struct operation_cut) operation_cut_list;

/* Cuts one direction of the calls in `cuts` (their `work` is filled). */
void operation_cut(operation_cut_list *cuts, const lane_list *lanes, enum lane_direction direction,
                   const struct matched *of, uint64_t bound_ns, const struct lane_losses *losses);
