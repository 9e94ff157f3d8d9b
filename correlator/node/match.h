/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does what lies next on a member's lanes look like this call? A call is compared with the shapes that it can have on
 * the wire (shape.h; for point-to-point calls: parts that add up to its bytes); the observed slots pick one. What was
 * picked is remembered and tried first the next time. One thread.
 */
#pragma once

#include "correlator/node/work.h"

struct share { /* slots [from, to) of a lane */
    size_t lane;
    size_t from;
    size_t to;
};
typedef ARRAY(struct share) share_list;

struct learnt {
    struct collective collective;
    struct shape shape;
};

struct matcher {
    const lane_list *lanes;
    int32_t rank;
    uint64_t bound_ns; /* of times between the calls' clock and the frames' */
    int32_t *index;    /* a lane's ring position, as last seen; -1 = unknown */
    bool *used;
    unsigned ring_lanes;
    ARRAY(struct learnt) learnt;
};

enum match {
    MATCH_NONE,
    MATCH_PART, /* all that is there fits, but it ends too early */
    MATCH_FULL,
};

void matcher_init(struct matcher *matcher, const lane_list *lanes, int32_t rank, uint64_t bound_ns);
void matcher_fini(struct matcher *matcher);

/* True when the work, which is for this matcher's direction, has payload on a lane (as far as it is known). */
bool matcher_expects(const struct matcher *matcher, const struct work *work);

/* True when the call could have used this lane. */
bool matcher_may_use(const struct work *work, const struct lane *lane);

/* Compares with the slots from at[lane] on. Fills `shares` (emptied first) unless it is MATCH_NONE. */
enum match matcher_try(struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares);
