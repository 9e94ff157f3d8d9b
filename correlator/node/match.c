/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching collectives. Invariant: a match uses each lane at most once, its slots are whole, in order and none of them
 * began before the call was enqueued.
 */
#include "correlator/node/match.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/node/match_point.h"
#include "wire/record.h"

#define INDICES_MAX 1024 /* positions in a ring that are tried: a liar may claim any number of ranks */

void matcher_init(struct matcher *matcher, const lane_list *lanes, int32_t rank, uint64_t bound_ns)
{
    *matcher = (struct matcher){.lanes = lanes, .rank = rank, .bound_ns = bound_ns};
    matcher->index = array_zeroed(lanes->count * sizeof *matcher->index);
    matcher->used = array_zeroed(lanes->count * sizeof *matcher->used);
    for (size_t i = 0; i < lanes->count; i++) {
        matcher->index[i] = -1;
        matcher->ring_lanes += !lanes->items[i].point_to_point && lanes->items[i].slots.count > 0;
    }
}

void matcher_fini(struct matcher *matcher)
{
    free(matcher->index);
    free(matcher->used);
    array_fini(&matcher->learnt);
}

/* Whether the rank at this end, `own`, passes data of a rooted collective to (or takes it from) the other, `peer`. */
static bool carries(const struct work *work, int32_t own, const struct lane *lane)
{
    int32_t sender = lane->direction == LANE_SEND ? own : lane->peer_rank;
    int32_t receiver = lane->direction == LANE_SEND ? lane->peer_rank : own;

    if (work->kind == OPERATION_BROADCAST)
        return receiver != work->peer;
    if (work->kind == OPERATION_REDUCE)
        return sender != work->peer;
    return true;
}

bool matcher_may_use(const struct work *work, const struct lane *lane)
{
    if (work->ring)
        return !lane->point_to_point;
    return lane->point_to_point && (lane->peer_rank == work->peer || lane->peer_rank < 0);
}

bool matcher_expects(const struct matcher *matcher, const struct work *work)
{
    for (size_t i = 0; i < matcher->lanes->count; i++) {
        const struct lane *lane = &matcher->lanes->items[i];
        if (matcher_may_use(work, lane) && (!work->ring || carries(work, matcher->rank, lane)))
            return true;
    }
    return false;
}

struct comparison {
    const struct lane *lane;
    size_t at;
    bool ended;
};

static bool compare_slot(void *context, uint64_t slot_bytes)
{
    struct comparison *comparison = context;

    if (comparison->at >= comparison->lane->slots.count) {
        comparison->ended = true;
        return false;
    }
    const struct slot *slot = &comparison->lane->slots.items[comparison->at];
    if (!slot->whole || slot->bytes != slot_bytes)
        return false;
    comparison->at++;
    return true;
}

static enum match compare_index(const struct work *work, const struct shape *shape, unsigned block, int32_t index,
                                const struct lane *lane, size_t from, size_t *to)
{
    struct comparison comparison = {.lane = lane, .at = from};

    if (shape_walk(shape, &work->collective, index, block, compare_slot, &comparison)) {
        *to = comparison.at;
        return MATCH_FULL;
    }
    if (!comparison.ended)
        return MATCH_NONE;
    *to = comparison.at;
    return MATCH_PART;
}

/* One block on one lane: the position in the ring that was last seen there first, then all others. */
static enum match compare_block(struct matcher *matcher, const struct work *work, const struct shape *shape,
                                unsigned block, size_t lane_index, size_t from, size_t *to)
{
    const struct lane *lane = &matcher->lanes->items[lane_index];
    int32_t known = matcher->index[lane_index] < 0 ? 0 : matcher->index[lane_index];
    int32_t indices = work->kind == OPERATION_ALL_REDUCE ? work->collective.ranks : 1;
    indices = indices > INDICES_MAX ? INDICES_MAX : indices;
    enum match best = MATCH_NONE;

    *to = from;
    if (from >= lane->slots.count)
        return MATCH_PART;
    if (lane->slots.items[from].first_ns + matcher->bound_ns < work->enqueued_ns)
        return MATCH_NONE;
    for (int32_t i = 0; i < indices; i++) {
        size_t end = from;
        enum match match = compare_index(work, shape, block, (known + i) % indices, lane, from, &end);
        if (match > best || (match == best && match == MATCH_PART && end > *to)) {
            best = match;
            *to = end;
        }
        if (match == MATCH_FULL) {
            if (indices > 1)
                matcher->index[lane_index] = (known + i) % indices;
            break;
        }
    }
    return best;
}

static bool earlier(const struct lane *lane, size_t at, const struct lane *best, size_t best_at)
{
    if (at >= lane->slots.count)
        return false;
    return best_at >= best->slots.count || lane->slots.items[at].first_ns < best->slots.items[best_at].first_ns;
}

/* The lane for one block: of those that fit best, the one whose slots come first. */
static enum match place_block(struct matcher *matcher, const struct work *work, const struct shape *shape,
                              unsigned block, const size_t *at, struct share *share)
{
    const lane_list *lanes = matcher->lanes;
    enum match best = MATCH_NONE;

    for (size_t i = 0; i < lanes->count; i++) {
        const struct lane *lane = &lanes->items[i];
        size_t to = at[i];
        if (matcher->used[i] || !matcher_may_use(work, lane))
            continue;
        bool silent = !carries(work, matcher->rank, lane);
        enum match match = silent ? MATCH_FULL : compare_block(matcher, work, shape, block, i, at[i], &to);
        bool sooner = match == best && match != MATCH_NONE && shape->channels < matcher->ring_lanes &&
                      earlier(lane, at[i], &lanes->items[share->lane], at[share->lane]);
        if (match > best || sooner) {
            best = match;
            *share = (struct share){.lane = i, .from = at[i], .to = to};
        }
        if (best == MATCH_FULL && shape->channels >= matcher->ring_lanes)
            break;
    }
    return best;
}

/*
 * True when a lane that the shape does not use began to send before the first half of the match was over: since calls
 * run one after the other, that lane is this call's too, and the shape is not.
 */
static bool leaves_lane(const struct matcher *matcher, const struct work *work, const size_t *at,
                        const share_list *shares)
{
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;

    for (size_t i = 0; i < shares->count; i++) {
        const struct slot *slots = matcher->lanes->items[shares->items[i].lane].slots.items;
        if (shares->items[i].from == shares->items[i].to)
            continue;
        first = slots[shares->items[i].from].first_ns < first ? slots[shares->items[i].from].first_ns : first;
        last = slots[shares->items[i].to - 1].last_ns > last ? slots[shares->items[i].to - 1].last_ns : last;
    }
    for (size_t i = 0; i < matcher->lanes->count; i++) {
        const struct lane *lane = &matcher->lanes->items[i];
        if (!matcher->used[i] && matcher_may_use(work, lane) && at[i] < lane->slots.count &&
            lane->slots.items[at[i]].first_ns < first + (last - first) / 2)
            return true;
    }
    return false;
}

static enum match try_shape(struct matcher *matcher, const struct work *work, const struct shape *shape,
                            const size_t *at, share_list *shares)
{
    enum match all = MATCH_FULL;
    size_t slots = 0;

    shares->count = 0;
    memset(matcher->used, 0, matcher->lanes->count * sizeof *matcher->used);
    for (unsigned block = 0; block < shape->channels; block++) {
        struct share share = {0};
        enum match match = place_block(matcher, work, shape, block, at, &share);
        if (match == MATCH_NONE)
            return MATCH_NONE;
        all = match < all ? match : all;
        matcher->used[share.lane] = true;
        slots += share.to - share.from;
        *(struct share *)array_add(shares) = share;
    }
    return slots == 0 ? MATCH_NONE : all;
}

static bool same_collective(const struct collective *a, const struct collective *b)
{
    return a->kind == b->kind && a->elements == b->elements && a->element_bytes == b->element_bytes &&
           a->ranks == b->ranks;
}

static struct learnt *learnt_of(const struct matcher *matcher, const struct collective *collective)
{
    for (size_t i = 0; i < matcher->learnt.count; i++) {
        struct learnt *learnt = &matcher->learnt.items[i];
        if (same_collective(&learnt->collective, collective))
            return learnt;
    }
    return NULL;
}

static void learn(struct matcher *matcher, const struct collective *collective, const struct shape *shape)
{
    struct learnt *learnt = learnt_of(matcher, collective);

    if (learnt == NULL)
        learnt = array_add(&matcher->learnt);
    learnt->collective = *collective;
    learnt->shape = *shape;
}

static bool anything_left(const struct matcher *matcher, const struct work *work, const size_t *at)
{
    for (size_t i = 0; i < matcher->lanes->count; i++)
        if (matcher_may_use(work, &matcher->lanes->items[i]) && at[i] < matcher->lanes->items[i].slots.count)
            return true;
    return false;
}

static enum match try_ring(struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares)
{
    const struct learnt *known = learnt_of(matcher, &work->collective);
    struct shape shape, best_shape;
    enum match best = MATCH_NONE;

    if (!anything_left(matcher, work, at))
        return MATCH_NONE;
    if (known != NULL && try_shape(matcher, work, &known->shape, at, shares) == MATCH_FULL)
        return MATCH_FULL;
    for (unsigned number = 0; shape_candidate(&shape, number, matcher->ring_lanes); number++) {
        enum match match = try_shape(matcher, work, &shape, at, shares);
        if (match == MATCH_FULL && !leaves_lane(matcher, work, at, shares)) {
            learn(matcher, &work->collective, &shape);
            return MATCH_FULL;
        }
        if (match > best) {
            best = match;
            best_shape = shape;
        }
    }
    return best == MATCH_NONE ? MATCH_NONE : try_shape(matcher, work, &best_shape, at, shares);
}

enum match matcher_try(struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares)
{
    return work->ring ? try_ring(matcher, work, at, shares) : match_point(matcher, work, at, shares);
}
