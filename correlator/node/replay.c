/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replays. Invariant: at[direction][lane] only rises; each slot before it is of a call that was captured, or of one
 * that was told.
 */
#include "correlator/node/replay.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/node/division.h"
#include "correlator/node/match.h"

typedef ARRAY(int32_t) call_list;

struct player {
    struct naming *naming;
    int32_t member;
    const call_list *captured;
    size_t told; /* the next of the member's calls that were told */
    lane_list lanes[2];
    struct matcher matchers[2];
    size_t *at[2];
    size_t *trial[2];
    share_list shares[2];
    uint64_t last_ns; /* when the last call that was found had begun */
};

static const struct member *member_of(const struct player *player)
{
    return &player->naming->members.items[player->member];
}

static void work_of(const struct player *player, int32_t call, struct work *work)
{
    work_of_call(work, &player->naming->calls.items[call], member_of(player)->record.ranks_count);
    work->enqueued_ns = 0;
}

static void begin_trial(struct player *player)
{
    for (int direction = 0; direction < 2; direction++)
        if (player->lanes[direction].count > 0)
            memcpy(player->trial[direction], player->at[direction],
                   player->lanes[direction].count * sizeof *player->trial[direction]);
}

static void keep_trial(struct player *player)
{
    for (int direction = 0; direction < 2; direction++)
        if (player->lanes[direction].count > 0)
            memcpy(player->at[direction], player->trial[direction],
                   player->lanes[direction].count * sizeof *player->at[direction]);
}

/* Whether all of the call lies next in one direction, or it has nothing there. */
static bool fits(struct player *player, int direction, const struct work *work)
{
    struct matcher *matcher = &player->matchers[direction];
    share_list *shares = &player->shares[direction];

    shares->count = 0;
    if (player->lanes[direction].count == 0 || !matcher_expects(matcher, work))
        return true;
    enum match match = matcher_try(matcher, work, player->trial[direction], shares);
    if (match == MATCH_FULL) {
        for (size_t i = 0; i < shares->count; i++)
            player->trial[direction][shares->items[i].lane] = shares->items[i].to;
        return true;
    }
    shares->count = 0;
    return match == MATCH_NONE && matcher_may_be_silent(matcher, work);
}

/* When the first credit was given or the first data seen of what fitted last; 0: it has nothing. */
static uint64_t begun_ns(struct player *player)
{
    uint64_t first_ns = UINT64_MAX;

    for (int direction = 0; direction < 2; direction++)
        for (size_t i = 0; i < player->shares[direction].count; i++) {
            const struct share *share = &player->shares[direction].items[i];
            struct lane *lane = &player->lanes[direction].items[share->lane];
            if (share->from == share->to)
                continue;
            int64_t credit = direction == LANE_RECEIVE ? lane_credit(lane, share->from, player->last_ns) : -1;
            uint64_t seen_ns = credit >= 0 ? lane->credits.items[credit].ns : lane->slots.items[share->from].first_ns;
            first_ns = seen_ns < first_ns ? seen_ns : first_ns;
        }
    return first_ns == UINT64_MAX ? 0 : first_ns;
}

/* Whether the call lies next; `begun` as begun_ns. */
static bool try_call(struct player *player, int32_t call, uint64_t *begun)
{
    struct work work;

    work_of(player, call, &work);
    if (!work.ring || !fits(player, LANE_SEND, &work) || !fits(player, LANE_RECEIVE, &work))
        return false;
    *begun = begun_ns(player);
    return true;
}

static void add_call(struct player *player, int32_t captured, uint64_t begun_at_ns)
{
    struct naming *naming = player->naming;
    struct call *call = array_add(&naming->calls);

    *call = naming->calls.items[captured];
    call->record.flags = (uint8_t)((call->record.flags & ~CALL_CAPTURED) | CALL_REPLAYED);
    call->is_inferred = true;
    call->entered_ns = call->enqueued_ns = begun_at_ns;
    *(int32_t *)array_add(&naming->members.items[player->member].calls) = (int32_t)naming->calls.count - 1;
}

/* All the captured calls once, from where the lanes are: asked for together, when the first of them was seen to begin.
 */
static bool play_graph(struct player *player)
{
    uint64_t first_ns = 0, since_ns = player->last_ns;
    bool whole = true;

    begin_trial(player);
    for (size_t i = 0; i < player->captured->count && whole; i++) {
        uint64_t begun = 0;
        whole = try_call(player, player->captured->items[i], &begun);
        if (first_ns == 0)
            first_ns = begun;
        player->last_ns = begun > player->last_ns ? begun : player->last_ns;
    }
    if (!whole || first_ns == 0) {
        player->last_ns = since_ns;
        return false;
    }
    first_ns = first_ns > since_ns ? first_ns : since_ns + 1;
    for (size_t i = 0; i < player->captured->count; i++)
        add_call(player, player->captured->items[i], first_ns + i);
    keep_trial(player);
    return true;
}

static uint64_t next_ns(const struct player *player)
{
    uint64_t next = UINT64_MAX;

    for (int direction = 0; direction < 2; direction++)
        for (size_t i = 0; i < player->lanes[direction].count; i++) {
            const struct lane *lane = &player->lanes[direction].items[i];
            size_t slot = player->at[direction][i];
            if (!lane->point_to_point && slot < lane->slots.count && lane->slots.items[slot].first_ns < next)
                next = lane->slots.items[slot].first_ns;
        }
    return next;
}

/* The next call that was told, if what lies next is its: it was asked for by then. */
static bool play_told(struct player *player, size_t told_count)
{
    const struct member *member = member_of(player);
    uint64_t begun;

    if (player->told == told_count)
        return false;
    int32_t call = member->calls.items[player->told];
    if (player->naming->calls.items[call].enqueued_ns > next_ns(player) + player->naming->bound_ns)
        return false;
    begin_trial(player);
    if (!try_call(player, call, &begun))
        return false;
    keep_trial(player);
    player->last_ns = begun > player->last_ns ? begun : player->last_ns;
    player->told++;
    return true;
}

/* What came before the calls were captured is of calls that were told. */
static void skip_earlier(struct player *player, uint64_t captured_ns)
{
    const struct member *member = member_of(player);

    for (int direction = 0; direction < 2; direction++)
        for (size_t i = 0; i < player->lanes[direction].count; i++) {
            const struct lane *lane = &player->lanes[direction].items[i];
            size_t *at = &player->at[direction][i];
            while (*at < lane->slots.count && lane->slots.items[*at].first_ns < captured_ns)
                ++*at;
        }
    while (player->told < member->calls.count &&
           player->naming->calls.items[member->calls.items[player->told]].enqueued_ns < captured_ns)
        player->told++;
    player->last_ns = captured_ns;
}

struct dated_call {
    uint64_t ns;
    int32_t call;
};

static int by_date(const void *a, const void *b)
{
    const struct dated_call *left = a;
    const struct dated_call *right = b;

    if (left->ns != right->ns)
        return left->ns < right->ns ? -1 : 1;
    return (left->call > right->call) - (left->call < right->call);
}

/* The member's calls in order again, its collectives numbered on from the first one's number. */
static void number_calls(struct player *player)
{
    struct member *member = &player->naming->members.items[player->member];
    struct dated_call *dated = array_zeroed(member->calls.count * sizeof *dated);
    uint32_t sequence = 0;

    for (size_t i = 0; i < member->calls.count; i++)
        dated[i] = (struct dated_call){player->naming->calls.items[member->calls.items[i]].enqueued_ns,
                                       member->calls.items[i]};
    array_order(dated, member->calls.count, sizeof *dated, by_date);
    for (size_t i = 0; i < member->calls.count; i++) {
        struct call *call = &player->naming->calls.items[dated[i].call];
        member->calls.items[i] = dated[i].call;
        if (i == 0 && !call->is_inferred)
            sequence = call->record.sequence;
        call->record.sequence = sequence++;
    }
    free(dated);
}

/* False when nothing was found that was launched. */
static bool play(struct player *player, const struct lane_losses *losses, const struct matched *of)
{
    size_t told_count = member_of(player)->calls.count;
    size_t calls_count = player->naming->calls.count;

    for (int direction = 0; direction < 2; direction++) {
        lane_build(&player->lanes[direction], player->naming, player->member, (enum lane_direction)direction, losses);
        size_t count = player->lanes[direction].count;
        matcher_init(&player->matchers[direction], &player->lanes[direction], of, player->naming->bound_ns);
        player->at[direction] = array_zeroed(count * sizeof *player->at[direction]);
        player->trial[direction] = array_zeroed(count * sizeof *player->trial[direction]);
    }
    skip_earlier(player, player->naming->calls.items[player->captured->items[0]].enqueued_ns);
    while (play_told(player, told_count) || play_graph(player))
        continue;
    bool found = player->naming->calls.count > calls_count;
    if (found)
        number_calls(player);
    for (int direction = 0; direction < 2; direction++) {
        free(player->at[direction]);
        free(player->trial[direction]);
        array_fini(&player->shares[direction]);
        matcher_fini(&player->matchers[direction]);
        lane_fini(&player->lanes[direction]);
    }
    return found;
}

/* Of each member the calls that were captured, in order; none where its host tells what launches run. */
static call_list *list_captured(const struct naming *naming)
{
    call_list *captured = array_zeroed(naming->members.count * sizeof *captured);
    bool *replayed = array_zeroed(naming->members.count * sizeof *replayed);

    for (size_t i = 0; i < naming->calls.count; i++) {
        const struct call *call = &naming->calls.items[i];
        replayed[call->member] |= (call->record.flags & CALL_REPLAYED) != 0;
        if ((call->record.flags & CALL_CAPTURED) != 0)
            *(int32_t *)array_add(&captured[call->member]) = (int32_t)i;
    }
    for (size_t i = 0; i < naming->members.count; i++)
        if (replayed[i])
            array_fini(&captured[i]);
    free(replayed);
    return captured;
}

void replay_find(struct naming *naming, const struct lane_losses *losses, const unsigned *channels)
{
    call_list *captured = list_captured(naming);

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        struct matched of = {.rank = member->record.rank,
                             .channels = member->communicator < 0 ? 0 : channels[member->communicator],
                             .has_neighbour = naming_has_neighbour(naming, (int32_t)i),
                             .division = division_of_version(member->record.library_version)};
        enum shape_division likely = of.division;
        for (unsigned turn = 0; turn < SHAPE_DIVISIONS && captured[i].count > 0; turn++) {
            struct player player = {.naming = naming, .member = (int32_t)i, .captured = &captured[i]};
            of.division = division_in_turn(likely, turn);
            if (play(&player, losses, &of))
                break;
        }
        array_fini(&captured[i]);
    }
    free(captured);
}
