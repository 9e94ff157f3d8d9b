/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching sends and receives. NCCL cuts the bytes into equal parts, rounded up to some unit (from 2.22 on 4096; parts
 * that are empty then are not sent), and deals them out to channels; the last part is smaller. Slots are a quarter,
 * half or all of NCCL_P2P_NET_CHUNKSIZE, by the size of the call from 2.22 on, or a registered buffer's part as a
 * whole. Where no such split fits, slots are taken in order of time until they add up. Invariant: the slots of a full
 * match add up to the call's bytes exactly.
 */
#include "correlator/node/match_point.h"

#include <stdlib.h>

#include "wire/record.h"

/* Slots from `from` on that add up to `bytes`; nothing at all is sent as one empty slot. */
static enum match take(const struct lane *lane, size_t from, uint64_t bytes, size_t *to)
{
    uint64_t sum = 0;

    for (size_t i = from; i < lane->slots.count; i++) {
        const struct slot *slot = &lane->slots.items[i];
        sum += slot->bytes;
        *to = i + 1;
        if (!slot->whole || sum > bytes)
            return MATCH_NONE;
        if (sum == bytes)
            return MATCH_FULL;
    }
    return *to > from ? MATCH_PART : MATCH_NONE;
}

static bool usable(const struct matcher *matcher, const struct work *work, size_t lane_index, size_t at)
{
    const struct lane *lane = &matcher->lanes->items[lane_index];

    return matcher_may_use(work, lane) && at < lane->slots.count &&
           lane->slots.items[at].first_ns + matcher->bound_ns >= work->enqueued_ns;
}

static bool taken(const share_list *shares, size_t lane)
{
    for (size_t i = 0; i < shares->count; i++)
        if (shares->items[i].lane == lane)
            return true;
    return false;
}

static enum match place_part(const struct matcher *matcher, const struct work *work, const size_t *at, uint64_t bytes,
                             share_list *shares)
{
    struct share best_share = {0};
    enum match best = MATCH_NONE;

    for (size_t i = 0; i < matcher->lanes->count; i++) {
        size_t to = at[i];
        if (!usable(matcher, work, i, at[i]) || taken(shares, i))
            continue;
        enum match match = take(&matcher->lanes->items[i], at[i], bytes, &to);
        uint64_t first = matcher->lanes->items[i].slots.items[at[i]].first_ns;
        bool sooner = match == best && match != MATCH_NONE &&
                      first < matcher->lanes->items[best_share.lane].slots.items[best_share.from].first_ns;
        if (match > best || sooner) {
            best = match;
            best_share = (struct share){.lane = i, .from = at[i], .to = to};
        }
    }
    if (best != MATCH_NONE)
        *(struct share *)array_add(shares) = best_share;
    return best;
}

static enum match try_parts(const struct matcher *matcher, const struct work *work, const size_t *at, uint64_t part,
                            share_list *shares)
{
    uint64_t left = work->bytes;
    enum match all = MATCH_FULL;

    shares->count = 0;
    do {
        uint64_t now = left < part ? left : part;
        enum match match = place_part(matcher, work, at, now, shares);
        if (match == MATCH_NONE)
            return MATCH_NONE;
        all = match < all ? match : all;
        left -= now;
    } while (left > 0);
    return all;
}

/* The usable lane whose next slot, behind what `shares` has of it already, comes first; lanes->count of none. */
static size_t next_lane(const struct matcher *matcher, const struct work *work, const size_t *at, const size_t *next)
{
    size_t best = matcher->lanes->count;

    for (size_t i = 0; i < matcher->lanes->count; i++) {
        const struct lane *lane = &matcher->lanes->items[i];
        if (!usable(matcher, work, i, at[i]) || next[i] >= lane->slots.count)
            continue;
        if (best == matcher->lanes->count ||
            lane->slots.items[next[i]].first_ns < matcher->lanes->items[best].slots.items[next[best]].first_ns)
            best = i;
    }
    return best;
}

static enum match try_time(const struct matcher *matcher, const struct work *work, const size_t *at, size_t *next,
                           share_list *shares)
{
    uint64_t sum = 0;

    shares->count = 0;
    do {
        size_t lane = next_lane(matcher, work, at, next);
        if (lane == matcher->lanes->count)
            return MATCH_NONE;
        const struct slot *slot = &matcher->lanes->items[lane].slots.items[next[lane]++];
        sum += slot->bytes;
        if (!slot->whole || sum > work->bytes)
            return MATCH_NONE;
    } while (sum < work->bytes);
    for (size_t i = 0; i < matcher->lanes->count; i++)
        if (next[i] > at[i])
            *(struct share *)array_add(shares) = (struct share){.lane = i, .from = at[i], .to = next[i]};
    return MATCH_FULL;
}

static uint64_t rounded_part(uint64_t bytes, unsigned parts, uint64_t unit)
{
    uint64_t part = (bytes + parts - 1) / parts;
    return (part + unit - 1) / unit * unit;
}

struct split {
    enum match match;
    uint64_t part;      /* size of its parts but the last */
    uint64_t latest_ns; /* when its last slot began */
    bool first;         /* all its slots began before all that it leaves */
};

static size_t behind(const share_list *shares, size_t lane, size_t at)
{
    for (size_t i = 0; i < shares->count; i++)
        if (shares->items[i].lane == lane)
            return shares->items[i].to;
    return at;
}

static void look_at_times(const struct matcher *matcher, const struct work *work, const size_t *at,
                          const share_list *shares, struct split *split)
{
    split->first = true;
    for (size_t i = 0; i < shares->count; i++) {
        const struct share *share = &shares->items[i];
        uint64_t begun = matcher->lanes->items[share->lane].slots.items[share->to - 1].first_ns;
        split->latest_ns = begun > split->latest_ns ? begun : split->latest_ns;
    }
    for (size_t i = 0; i < matcher->lanes->count; i++) {
        const struct lane *lane = &matcher->lanes->items[i];
        size_t next = behind(shares, i, at[i]);
        if (usable(matcher, work, i, at[i]) && next < lane->slots.count)
            split->first &= lane->slots.items[next].first_ns >= split->latest_ns;
    }
}

static bool is_better(const struct split *split, const struct split *best)
{
    if (split->match != best->match)
        return split->match > best->match;
    return split->match == MATCH_FULL && split->latest_ns < best->latest_ns;
}

/* Of the splits that fit the one that is over first: calls run one after the other. */
static struct split find_split(const struct matcher *matcher, const struct work *work, const size_t *at,
                               share_list *shares)
{
    static const uint32_t units[] = {65536, 131072, 32768, 1, 16, 128, 512, 4096};
    struct split best = {.match = MATCH_NONE};
    unsigned lanes = 0;

    for (size_t i = 0; i < matcher->lanes->count; i++)
        lanes += usable(matcher, work, i, at[i]);
    for (unsigned parts = lanes; parts > 0 && !best.first; parts--)
        for (size_t i = 0; i < sizeof units / sizeof units[0] && !best.first; i++) {
            struct split split = {.part = rounded_part(work->bytes, parts, units[i])};
            split.match = try_parts(matcher, work, at, split.part, shares);
            if (split.match == MATCH_FULL)
                look_at_times(matcher, work, at, shares, &split);
            if (is_better(&split, &best))
                best = split;
        }
    return best;
}

enum match match_point(const struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares)
{
    struct split split = find_split(matcher, work, at, shares);

    if (split.match == MATCH_FULL)
        return try_parts(matcher, work, at, split.part, shares);
    size_t *next = array_zeroed(matcher->lanes->count * sizeof *next);
    for (size_t i = 0; i < matcher->lanes->count; i++)
        next[i] = at[i];
    enum match by_time = try_time(matcher, work, at, next, shares);
    free(next);
    return by_time == MATCH_FULL || split.match == MATCH_NONE ? by_time
                                                              : try_parts(matcher, work, at, split.part, shares);
}
