/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does what lies next on a member's lanes look like this call? A call is compared with the shapes that it can have on
 * the wire (shape.h; for point-to-point calls: parts that add up to its bytes); the observed slots pick one. What was
 * picked is remembered and tried first the next time.
 *
 * A member may have only some of its communicator's channels on the wire: on the others its neighbour in the ring is
 * reached within the node. What a call sends there is silent: it is part of the shape, and not seen. One thread.
 */
#pragma once

#include "correlator/node/work.h"

struct share { /* slots [from, to) of a lane */
    size_t lane;
    size_t from;
    size_t to;
};
typedef ARRAY(struct share) share_list;

struct layout {
    struct shape shape;
    bool by_channel; /* block n is channel n's, on a lane or silent; else any lane may have it, and all blocks are seen
                      */
    bool may_skip;   /* what is not on a channel's lanes is silent, too: they may be a tree's */
};

struct learnt {
    struct collective collective;
    struct layout layout;
    bool is_silent; /* no lane has any of it */
};

struct matcher {
    const lane_list *lanes;
    int32_t rank;
    uint64_t bound_ns; /* of times between the calls' clock and the frames' */
    int32_t *index;    /* a lane's ring position, as last seen; -1 = unknown */
    bool *used;
    unsigned ring_lanes;
    struct shape_range range; /* of a ring collective */
    unsigned silent;          /* of these, channels on which the member has no lane */
    bool has_neighbour;
    bool has_edges;    /* and some channel has several lanes: a tree's beside the ring's */
    bool is_named;     /* every lane's channel is known */
    bool is_tree;      /* what matched last is one */
    bool is_searching; /* where a collective has fitted before, it is tried in that way alone */
    bool is_confirmed; /* a call fitted with silent channels: no fewer are tried any more */
    ARRAY(struct learnt) learnt;
};

enum match {
    MATCH_NONE,
    MATCH_PART, /* all that is there fits, but it ends too early */
    MATCH_FULL,
};

struct matched {        /* whose lanes they are */
    int32_t rank;       /* of the communicator */
    unsigned channels;  /* of the communicator, 0 = unknown */
    bool has_neighbour; /* other ranks of it are in the same machine */
    enum shape_division division;
};

void matcher_init(struct matcher *matcher, const lane_list *lanes, const struct matched *of, uint64_t bound_ns);
void matcher_fini(struct matcher *matcher);

/* True when the work, which is for this matcher's direction, has payload on a lane (as far as it is known). */
bool matcher_expects(const struct matcher *matcher, const struct work *work);

/* True when the call could have used this lane. */
bool matcher_may_use(const struct work *work, const struct lane *lane);

/*
 * True when the call may be silent altogether: little calls take fewer channels, the first ones, and the member has
 * none of these; in a tree a rank may hang on its neighbours alone. Once that was seen to be so (matcher_learn_silent)
 * such a call is compared with nothing any more.
 */
bool matcher_may_be_silent(const struct matcher *matcher, const struct work *work);
void matcher_learn_silent(struct matcher *matcher, const struct work *work);
bool matcher_is_silent(const struct matcher *matcher, const struct work *work);

/* Compares with the slots from at[lane] on. Fills `shares` (emptied first) unless it is MATCH_NONE. */
enum match matcher_try(struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares);
