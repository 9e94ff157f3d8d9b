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

#define BUFFER_SLOTS 8    /* of a connection */
#define INDICES_MAX  1024 /* positions in a ring that are tried: a liar may claim any number of ranks */

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

/* Whether a channel has several lanes: edges of trees beside the ring's. */
static bool has_several(const struct matcher *matcher)
{
    for (size_t i = 0; i < matcher->lanes->count; i++)
        for (size_t j = 0; j < i; j++)
            if (!matcher->lanes->items[i].point_to_point && !matcher->lanes->items[j].point_to_point &&
                matcher->lanes->items[i].channel == matcher->lanes->items[j].channel)
                return true;
    return false;
}

void matcher_init(struct matcher *matcher, const lane_list *lanes, const struct matched *of, uint64_t bound_ns)
{
    unsigned channels = of->channels;

    *matcher =
        (struct matcher){.lanes = lanes, .rank = of->rank, .has_neighbour = of->has_neighbour, .bound_ns = bound_ns};
    matcher->index = array_zeroed(lanes->count * sizeof *matcher->index);
    matcher->used = array_zeroed(lanes->count * sizeof *matcher->used);
    for (size_t i = 0; i < lanes->count; i++) {
        matcher->index[i] = -1;
        matcher->ring_lanes += !lanes->items[i].point_to_point && lanes->items[i].slots.count > 0;
    }
    matcher->is_named = all_named(matcher, channels);
    matcher->has_edges = matcher->is_named && has_several(matcher);
    matcher->range = (struct shape_range){
        .channels = matcher->is_named ? channels : matcher->ring_lanes,
        .division = of->division,
    };
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
    bool sends = lane->direction == LANE_SEND;

    return work_passes(work, sends ? own : lane->peer_rank, sends ? lane->peer_rank : own);
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
    bool leaves =
        layout->by_channel || layout->shape.channels < matcher->ring_lanes || layout->shape.division != SHAPE_LOOPS;
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

/* Until when the call was surely not over, if the match is it: what a connection's buffer holds may leave after its
 * end.
 */
static uint64_t surely_until(const struct matcher *matcher, const share_list *shares)
{
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    uint64_t until = 0;

    for (size_t i = 0; i < shares->count; i++) {
        const struct share *share = &shares->items[i];
        const struct slot *slots = matcher->lanes->items[share->lane].slots.items;
        if (share->from == share->to)
            continue;
        first = slots[share->from].first_ns < first ? slots[share->from].first_ns : first;
        last = slots[share->to - 1].last_ns > last ? slots[share->to - 1].last_ns : last;
        if (share->to - share->from > BUFFER_SLOTS && slots[share->to - 1 - BUFFER_SLOTS].first_ns > until)
            until = slots[share->to - 1 - BUFFER_SLOTS].first_ns;
    }
    return last > first && first + (last - first) / 2 > until ? first + (last - first) / 2 : until;
}

/*
 * True when a lane that the shape does not use began to send while the call was under way: since calls run one after
 * the other, that lane is this call's too, and the shape is not.
 */
static bool leaves_lane(const struct matcher *matcher, const struct work *work, const size_t *at,
                        const share_list *shares)
{
    uint64_t until = surely_until(matcher, shares);

    for (size_t i = 0; i < matcher->lanes->count; i++) {
        const struct lane *lane = &matcher->lanes->items[i];
        if (!matcher->used[i] && matcher_may_use(work, lane) && at[i] < lane->slots.count &&
            lane->slots.items[at[i]].first_ns < until)
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
        if (!matcher_may_use(work, lane) || at[i] >= lane->slots.count ||
            !shape_takes(shape, &work->collective, (unsigned)lane->channel))
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
    unsigned blocks = shape_blocks(&layout->shape, &work->collective);
    for (unsigned block = 0; block < blocks; block++) {
        struct share share = {0};
        if ((layout->by_channel && !has_lane(matcher, block)) || !shape_takes(&layout->shape, &work->collective, block))
            continue;
        enum match match = place_block(matcher, work, layout, block, at, &share);
        if (match != MATCH_FULL && layout->may_skip)
            continue;
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
    if (!work->ring)
        return false;
    if (work->kind == OPERATION_ALL_REDUCE && matcher->has_neighbour && matcher->is_named)
        return learnt_of(matcher, &work->collective) == NULL || matcher_is_silent(matcher, work);
    if (matcher->silent == 0)
        return false;
    unsigned channel = 0;

    while (channel < matcher->range.channels && !has_lane(matcher, channel))
        channel++;
    return work_may_leave(work, channel) ||
           shape_may_leave(&work->collective, channel, matcher->range.channels, matcher->range.division);
}

static bool anything_left(const struct matcher *matcher, const struct work *work, const size_t *at)
{
    for (size_t i = 0; i < matcher->lanes->count; i++)
        if (matcher_may_use(work, &matcher->lanes->items[i]) && at[i] < matcher->lanes->items[i].slots.count)
            return true;
    return false;
}

/* False when what follows the match on one of its lanes is of the same call. */
static bool ends_there(const struct matcher *matcher, const share_list *shares)
{
    for (size_t i = 0; i < shares->count; i++)
        if (shares->items[i].to > shares->items[i].from &&
            !lane_may_begin(&matcher->lanes->items[shares->items[i].lane], shares->items[i].to))
            return false;
    return true;
}

typedef bool shape_source(struct shape *shape, unsigned number, const struct shape_range *range);

struct choice { /* the best layout so far */
    enum match match;
    struct layout layout;
};

struct family { /* of layouts, those that are tried one after the other */
    shape_source *next;
    bool by_channel;
    bool may_skip;
};

/*
 * Looks for the first layout that fits on all lanes and ends with them: then true. Else the one that fits best becomes
 * the choice, if there was none before.
 */
static bool try_family(struct matcher *matcher, const struct work *work, const struct family *family, const size_t *at,
                       share_list *shares, struct choice *choice)
{
    struct layout layout = {.by_channel = family->by_channel, .may_skip = family->may_skip};
    struct shape_range range = matcher->range;
    bool settled = choice->match != MATCH_NONE;

    if (!family->by_channel && matcher->ring_lanes < range.channels)
        range.channels = matcher->ring_lanes;
    for (unsigned number = 0; family->next(&layout.shape, number, &range); number++) {
        enum match match = try_layout(matcher, work, &layout, at, shares);
        if (match == MATCH_FULL && ends_there(matcher, shares) && !leaves_lane(matcher, work, at, shares)) {
            learn(matcher, &work->collective, &layout);
            matcher->is_confirmed |= family->by_channel && matcher->silent > 0;
            return true;
        }
        if (!settled && match > choice->match)
            *choice = (struct choice){match, layout};
    }
    return false;
}

/* A channel's part of a call that is alone in its group is on that channel. */
static bool is_placed(const struct matcher *matcher, const struct work *work)
{
    return matcher->is_named && matcher->range.division != SHAPE_LOOPS && !work->has_company;
}

static enum match try_ring(struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares)
{
    static const struct family named = {shape_candidate, true, false}, any = {shape_candidate, false, false},
                               tree = {shape_tree_candidate, true, false}, some = {shape_candidate, true, true};
    const struct learnt *known = learnt_of(matcher, &work->collective);
    struct choice choice = {MATCH_NONE, {.by_channel = false}};
    enum match match = MATCH_NONE;

    if (!anything_left(matcher, work, at) || (known != NULL && known->is_silent))
        return MATCH_NONE;
    if (known != NULL)
        match = try_layout(matcher, work, &known->layout, at, shares);
    if ((match == MATCH_FULL && ends_there(matcher, shares)) || (known != NULL && matcher->is_searching))
        return match;
    bool is_free = !is_placed(matcher, work) && !matcher->is_confirmed;
    if ((matcher->silent > 0 || !is_free) && try_family(matcher, work, &named, at, shares, &choice))
        return MATCH_FULL;
    if (choice.match != MATCH_PART && is_free && try_family(matcher, work, &any, at, shares, &choice))
        return MATCH_FULL;
    if (choice.match != MATCH_PART && matcher->is_named && work->kind == OPERATION_ALL_REDUCE &&
        try_family(matcher, work, &tree, at, shares, &choice))
        return MATCH_FULL;
    if (choice.match != MATCH_PART && matcher->has_edges && try_family(matcher, work, &some, at, shares, &choice))
        return MATCH_FULL;
    return choice.match == MATCH_NONE ? MATCH_NONE : try_layout(matcher, work, &choice.layout, at, shares);
}

enum match matcher_try(struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares)
{
    return work->ring ? try_ring(matcher, work, at, shares) : match_point(matcher, work, at, shares);
}
