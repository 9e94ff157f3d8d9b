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

#define INDICES_MAX    1024 /* positions in a ring that are tried: a liar may claim any number of ranks */
#define LITTLE_THREADS 640u /* of a channel at most; with 64 bytes each, LL 8 for each rank, another one is taken */

static bool has_lane(const struct matcher *matcher, unsigned channel)
{
    for (size_t i = 0; i < matcher->lanes->count; i++)
        if (!matcher->lanes->items[i].point_to_point && matcher->lanes->items[i].channel == (int32_t)channel)
            return true;
    return false;
}

static bool all_named(const struct matcher *matcher, unsigned channels)
{
    for (size_t i = 0; i < matcher->lanes->count; i++)
        if (!matcher->lanes->items[i].point_to_point &&
            (matcher->lanes->items[i].channel < 0 || matcher->lanes->items[i].channel >= (int32_t)channels))
            return false;
    return true;
}

void matcher_init(struct matcher *matcher, const lane_list *lanes, int32_t rank, unsigned channels, uint64_t bound_ns)
{
    *matcher = (struct matcher){.lanes = lanes, .rank = rank, .bound_ns = bound_ns};
    matcher->index = array_zeroed(lanes->count * sizeof *matcher->index);
    matcher->used = array_zeroed(lanes->count * sizeof *matcher->used);
    for (size_t i = 0; i < lanes->count; i++) {
        matcher->index[i] = -1;
        matcher->ring_lanes += !lanes->items[i].point_to_point && lanes->items[i].slots.count > 0;
    }
    matcher->is_named = all_named(matcher, channels);
    matcher->channels = matcher->is_named ? channels : matcher->ring_lanes;
    for (unsigned channel = 0; matcher->is_named && channel < channels; channel++)
        matcher->silent += !has_lane(matcher, channel);
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
    int32_t indices = work->kind == OPERATION_ALL_REDUCE && !shape->tree ? work->collective.ranks : 1;
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
static enum match place_block(struct matcher *matcher, const struct work *work, const struct layout *layout,
                              unsigned block, const size_t *at, struct share *share)
{
    const lane_list *lanes = matcher->lanes;
    bool leaves = layout->by_channel || layout->shape.channels < matcher->ring_lanes;
    enum match best = MATCH_NONE;

    for (size_t i = 0; i < lanes->count; i++) {
        const struct lane *lane = &lanes->items[i];
        size_t to = at[i];
        if (matcher->used[i] || !matcher_may_use(work, lane) || (layout->by_channel && lane->channel != (int32_t)block))
            continue;
        bool silent = !carries(work, matcher->rank, lane);
        enum match match = silent ? MATCH_FULL : compare_block(matcher, work, &layout->shape, block, i, at[i], &to);
        bool sooner = leaves && match == best && match != MATCH_NONE &&
                      earlier(lane, at[i], &lanes->items[share->lane], at[share->lane]);
        if (match > best || sooner) {
            best = match;
            *share = (struct share){.lane = i, .from = at[i], .to = to};
        }
        if (best == MATCH_FULL && !leaves)
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

/* Several edges of a channel's tree may be lanes here; lanes that do not fit are a ring's. */
static enum match try_tree(struct matcher *matcher, const struct work *work, const struct shape *shape,
                           const size_t *at, share_list *shares)
{
    enum match all = MATCH_FULL;

    for (size_t i = 0; i < matcher->lanes->count; i++) {
        const struct lane *lane = &matcher->lanes->items[i];
        struct share share = {i, at[i], at[i]};
        if (!matcher_may_use(work, lane) || at[i] >= lane->slots.count || lane->channel >= (int32_t)shape->channels)
            continue;
        enum match match = compare_block(matcher, work, shape, (unsigned)lane->channel, i, at[i], &share.to);
        if (match == MATCH_NONE)
            continue;
        all = match < all ? match : all;
        matcher->used[i] = true;
        *(struct share *)array_add(shares) = share;
    }
    return shares->count == 0 ? MATCH_NONE : all;
}

static enum match try_layout(struct matcher *matcher, const struct work *work, const struct layout *layout,
                             const size_t *at, share_list *shares)
{
    enum match all = MATCH_FULL;
    size_t slots = 0;

    shares->count = 0;
    memset(matcher->used, 0, matcher->lanes->count * sizeof *matcher->used);
    matcher->is_tree = layout->shape.tree;
    if (layout->shape.tree)
        return try_tree(matcher, work, &layout->shape, at, shares);
    for (unsigned block = 0; block < layout->shape.channels; block++) {
        struct share share = {0};
        if (layout->by_channel && !has_lane(matcher, block))
            continue;
        enum match match = place_block(matcher, work, layout, block, at, &share);
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

static void learn(struct matcher *matcher, const struct collective *collective, const struct layout *layout)
{
    struct learnt *learnt = learnt_of(matcher, collective);

    if (learnt == NULL)
        learnt = array_add(&matcher->learnt);
    *learnt = (struct learnt){*collective, *layout, layout->shape.channels == 0};
}

void matcher_learn_silent(struct matcher *matcher, const struct work *work)
{
    learn(matcher, &work->collective, &(struct layout){.by_channel = true});
}

bool matcher_is_silent(const struct matcher *matcher, const struct work *work)
{
    const struct learnt *known = work->ring ? learnt_of(matcher, &work->collective) : NULL;

    return known != NULL && known->is_silent;
}

bool matcher_may_be_silent(const struct matcher *matcher, const struct work *work)
{
    if (!work->ring || matcher->silent == 0)
        return false;
    uint64_t share = LITTLE_THREADS * (work->collective.ranks > 8 ? 8 * (uint64_t)work->collective.ranks : 64);
    unsigned channel = 0;

    while (channel < matcher->channels && !has_lane(matcher, channel))
        channel++;
    return channel > 0 && work->bytes < (channel + 1) * share;
}

static bool anything_left(const struct matcher *matcher, const struct work *work, const size_t *at)
{
    for (size_t i = 0; i < matcher->lanes->count; i++)
        if (matcher_may_use(work, &matcher->lanes->items[i]) && at[i] < matcher->lanes->items[i].slots.count)
            return true;
    return false;
}

typedef bool shape_source(struct shape *shape, unsigned number, unsigned channels);

/* The first shape that fits on all lanes, else the one that fits best. */
static enum match try_layouts(struct matcher *matcher, const struct work *work, shape_source *next, bool by_channel,
                              const size_t *at, share_list *shares)
{
    struct layout layout = {.by_channel = by_channel}, best_layout = layout;
    bool fewer = !by_channel && matcher->ring_lanes < matcher->channels;
    unsigned channels = fewer ? matcher->ring_lanes : matcher->channels;
    enum match best = MATCH_NONE;

    for (unsigned number = 0; next(&layout.shape, number, channels); number++) {
        enum match match = try_layout(matcher, work, &layout, at, shares);
        if (match == MATCH_FULL && !leaves_lane(matcher, work, at, shares)) {
            learn(matcher, &work->collective, &layout);
            matcher->is_confirmed |= by_channel && matcher->silent > 0;
            return MATCH_FULL;
        }
        if (match > best) {
            best = match;
            best_layout = layout;
        }
    }
    return best == MATCH_NONE ? MATCH_NONE : try_layout(matcher, work, &best_layout, at, shares);
}

static enum match try_ring(struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares)
{
    const struct learnt *known = learnt_of(matcher, &work->collective);
    enum match match = MATCH_NONE;

    if (!anything_left(matcher, work, at) || (known != NULL && known->is_silent))
        return MATCH_NONE;
    if (known != NULL && try_layout(matcher, work, &known->layout, at, shares) == MATCH_FULL)
        return MATCH_FULL;
    if (matcher->silent > 0)
        match = try_layouts(matcher, work, shape_candidate, true, at, shares);
    if (match == MATCH_NONE && !matcher->is_confirmed)
        match = try_layouts(matcher, work, shape_candidate, false, at, shares);
    if (match == MATCH_NONE && matcher->is_named && work->kind == OPERATION_ALL_REDUCE)
        match = try_layouts(matcher, work, shape_tree_candidate, true, at, shares);
    return match;
}

enum match matcher_try(struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares)
{
    return work->ring ? try_ring(matcher, work, at, shares) : match_point(matcher, work, at, shares);
}
