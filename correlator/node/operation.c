/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cutting. Invariant: at[lane] only rises; every slot before it has been given to a call or to none; the calls before
 * `next` are done.
 */
#include "correlator/node/operation.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/node/division.h"

#define LOOK_CALLS    4   /* that must fit in a row before a new start is believed */
#define START_TIMES   128 /* where a new start is looked for */
#define LITTLE_PARTS  4   /* calls that take a quarter longer than the shortest are as good */
#define START_CALLS   256
#define START_AGAIN   64 /* calls further on, a start that was looked for in vain is looked for again */
#define SOON_PARTS    4
#define CROSSED_TIMES 2 /* beside its part of the time that the call takes */
#define FEWER_TIMES   4 /* fewer calls are left over, or another division is not believed */

struct cutter {
    operation_cut_list *cuts;
    const lane_list *lanes;
    enum lane_direction direction;
    const struct lane_losses *losses;
    uint64_t bound_ns;
    bool ring; /* cuts ring collectives; else what calls have for `peer`: it has lanes of its own */
    int32_t peer;
    struct work *works; /* of each call: what it has here, if it is wanted */
    bool *wanted;
    struct matcher matcher;
    size_t *at;
    size_t *trial;
    uint64_t last_ns; /* the latest frame that was given to a call */
    size_t vain_at;   /* where the lanes were when no new start was found, all together, plus 1 */
    size_t vain_to;   /* the call up to which it was looked for then */
    share_list shares;
    size_t unknown;  /* parts that are */
    size_t bad;      /* these, and those that are broken */
    size_t bad_most; /* once any are unknown */
};

static struct part *part_of(const struct cutter *cutter, size_t call)
{
    return &cutter->cuts->items[call].parts[cutter->direction];
}

static const struct work *work_of(const struct cutter *cutter, size_t call)
{
    return &cutter->works[call];
}

/* True when the call is one of those being cut and has payload in this direction. */
static bool expects(const struct cutter *cutter, size_t call)
{
    return cutter->wanted[call];
}

/* A call with several peers is as good as the worst of its parts. */
static void set_state(struct cutter *cutter, size_t call, enum part_state state)
{
    static const unsigned badness[] = {
        [PART_NONE] = 0, [PART_SILENT] = 1, [PART_WHOLE] = 2, [PART_UNKNOWN] = 3, [PART_BROKEN] = 4};
    struct part *part = part_of(cutter, call);

    if (badness[state] <= badness[part->state])
        return;
    cutter->bad += badness[state] > badness[PART_WHOLE] && badness[part->state] <= badness[PART_WHOLE];
    cutter->unknown += (state == PART_UNKNOWN) - (size_t)(part->state == PART_UNKNOWN);
    part->state = state;
}

static bool is_selected(const struct cutter *cutter, const struct lane *lane)
{
    return lane->point_to_point != cutter->ring &&
           (cutter->ring || lane->peer_rank == cutter->peer || lane->peer_rank < 0);
}

static bool lanes_left(const struct cutter *cutter, const struct work *work, const size_t *at)
{
    for (size_t i = 0; i < cutter->lanes->count; i++)
        if (at[i] < cutter->lanes->items[i].slots.count && matcher_may_use(work, &cutter->lanes->items[i]))
            return true;
    return false;
}

static void commit(struct cutter *cutter, size_t call, enum part_state state)
{
    struct part *part = part_of(cutter, call);

    set_state(cutter, call, state);
    part->is_tree = cutter->ring && cutter->matcher.is_tree;
    for (size_t i = 0; i < cutter->shares.count; i++) {
        const struct share *share = &cutter->shares.items[i];
        const struct lane *lane = &cutter->lanes->items[share->lane];
        *(struct share *)array_add(&part->shares) = *share;
        cutter->at[share->lane] = share->to;
        if (share->to > share->from && lane->slots.items[share->to - 1].last_ns > cutter->last_ns)
            cutter->last_ns = lane->slots.items[share->to - 1].last_ns;
    }
}

static void advance(const share_list *shares, size_t *at)
{
    for (size_t i = 0; i < shares->count; i++)
        at[shares->items[i].lane] = shares->items[i].to;
}

static uint64_t span_of(const struct cutter *cutter, const share_list *shares)
{
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;

    for (size_t i = 0; i < shares->count; i++) {
        const struct share *share = &shares->items[i];
        const struct slot *slots = cutter->lanes->items[share->lane].slots.items;
        if (share->from == share->to)
            continue;
        first = slots[share->from].first_ns < first ? slots[share->from].first_ns : first;
        last = slots[share->to - 1].last_ns > last ? slots[share->to - 1].last_ns : last;
    }
    return last > first ? last - first : 0;
}

/* True when slots are left that calls of this selection could have used. */
static bool slots_left(const struct cutter *cutter, const size_t *at)
{
    for (size_t i = 0; i < cutter->lanes->count; i++)
        if (is_selected(cutter, &cutter->lanes->items[i]) && at[i] < cutter->lanes->items[i].slots.count)
            return true;
    return false;
}

/*
 * Whether a call behind this one was asked for in (from_ns, to_ns), near its end: what came then may well be that
 * one's. Calls are in order of their enqueues.
 */
static bool asked_within(const struct cutter *cutter, size_t call, uint64_t from_ns, uint64_t to_ns)
{
    size_t low = call + 1, high = cutter->cuts->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work_of(cutter, middle)->enqueued_ns < to_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == call + 1)
        return false;
    uint64_t asked_ns = work_of(cutter, low - 1)->enqueued_ns;
    return asked_ns > from_ns && (to_ns - asked_ns) * SOON_PARTS < to_ns - from_ns;
}

/*
 * For how long nothing came within the call until a later one was asked for: where hosts wait for their steps, such a
 * pause is one between two steps. Of several lanes the longest.
 */
static uint64_t crossed_by(const struct cutter *cutter, size_t call, const share_list *shares)
{
    uint64_t longest_ns = 0;

    for (size_t i = 0; i < shares->count; i++) {
        const struct share *share = &shares->items[i];
        const struct slot *slots = cutter->lanes->items[share->lane].slots.items;
        uint64_t crossed_ns = 0;
        for (size_t slot = share->from + 1; slot < share->to; slot++)
            if (slots[slot].first_ns > slots[slot - 1].last_ns &&
                asked_within(cutter, call, slots[slot - 1].last_ns, slots[slot].first_ns))
                crossed_ns += slots[slot].first_ns - slots[slot - 1].last_ns;
        longest_ns = crossed_ns > longest_ns ? crossed_ns : longest_ns;
    }
    return longest_ns;
}

struct fit { /* of calls and slots from some place on */
    unsigned calls;
    uint64_t cost_ns; /* the mean time from a call's first to its last frame, pauses that were crossed thrice */
};

/*
 * How many calls from `call` on fit the slots from `trial` on, up to LOOK_CALLS; none when they do not fit to there, or
 * to where both end together.
 */
static struct fit fits(struct cutter *cutter, size_t call)
{
    struct fit fit = {0};
    size_t i;

    for (i = call; i < cutter->cuts->count && fit.calls < LOOK_CALLS; i++) {
        const struct work *work = work_of(cutter, i);
        if (!expects(cutter, i))
            continue;
        enum match match = matcher_try(&cutter->matcher, work, cutter->trial, &cutter->shares);
        if (match == MATCH_NONE && matcher_may_be_silent(&cutter->matcher, work))
            continue;
        if (match == MATCH_NONE && lanes_left(cutter, work, cutter->trial))
            return (struct fit){0};
        if (match != MATCH_FULL)
            break;
        advance(&cutter->shares, cutter->trial);
        fit.cost_ns += span_of(cutter, &cutter->shares) + CROSSED_TIMES * crossed_by(cutter, i, &cutter->shares);
        fit.calls++;
    }
    if (i == cutter->cuts->count && fit.calls < LOOK_CALLS && slots_left(cutter, cutter->trial))
        return (struct fit){0};
    fit.cost_ns /= fit.calls > 0 ? fit.calls : 1;
    return fit;
}

static void trial_from(struct cutter *cutter, uint64_t start_ns)
{
    for (size_t i = 0; i < cutter->lanes->count; i++) {
        const struct lane *lane = &cutter->lanes->items[i];
        size_t slot = cutter->at[i];
        while (is_selected(cutter, lane) && slot < lane->slots.count && lane->slots.items[slot].first_ns < start_ns)
            slot++;
        cutter->trial[i] = slot;
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

typedef ARRAY(uint64_t) time_list;

static void start_times(const struct cutter *cutter, const struct work *work, time_list *times)
{
    for (size_t i = 0; i < cutter->lanes->count; i++) {
        const struct lane *lane = &cutter->lanes->items[i];
        size_t end = cutter->at[i] + START_TIMES < lane->slots.count ? cutter->at[i] + START_TIMES : lane->slots.count;
        for (size_t slot = cutter->at[i]; slot < end && matcher_may_use(work, lane); slot++)
            *(uint64_t *)array_add(times) = lane->slots.items[slot].first_ns;
    }
    array_sort(times, by_value);
    if (times->count > START_TIMES)
        times->count = START_TIMES;
}

struct start { /* where the cut may start anew */
    uint64_t ns;
    size_t call;
    struct fit fit;
};

/* The latest call from `call` on that was enqueued by start->ns and that the slots from there on fit. */
static void latest_call(struct cutter *cutter, size_t call, struct start *start)
{
    size_t end = call;

    while (end < cutter->cuts->count && end - call < START_CALLS &&
           work_of(cutter, end)->enqueued_ns <= start->ns + cutter->matcher.bound_ns)
        end++;
    start->fit.calls = 0;
    while (end-- > call && start->fit.calls == 0) {
        if (!expects(cutter, end))
            continue;
        trial_from(cutter, start->ns);
        start->call = end;
        cutter->matcher.is_searching = true;
        start->fit = fits(cutter, end);
        cutter->matcher.is_searching = false;
    }
}

/*
 * Of all starts that explain most calls the first whose calls take little time: a cut that is off by some slots of a
 * repeating pattern makes calls that stretch over the pauses between them. A late rank makes pauses within calls, too:
 * those in which later calls were asked for count more.
 */
static bool choose_start(const struct start *starts, size_t count, struct start *chosen)
{
    unsigned fitted = 0;
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < count; i++)
        fitted = starts[i].fit.calls > fitted ? starts[i].fit.calls : fitted;
    for (size_t i = 0; i < count; i++)
        if (starts[i].fit.calls == fitted && starts[i].fit.cost_ns < least)
            least = starts[i].fit.cost_ns;
    for (size_t i = 0; i < count && fitted > 0; i++)
        if (starts[i].fit.calls == fitted && starts[i].fit.cost_ns <= least + least / LITTLE_PARTS) {
            *chosen = starts[i];
            return true;
        }
    return false;
}

/* Nothing was found from an earlier call on, and nothing has been given to a call since: few later calls are new. */
static bool is_vain(const struct cutter *cutter, size_t call, size_t at)
{
    return cutter->vain_at == at && call + START_CALLS < cutter->vain_to + START_AGAIN;
}

static size_t all_at(const struct cutter *cutter)
{
    size_t sum = 1;

    for (size_t i = 0; i < cutter->lanes->count; i++)
        sum += cutter->at[i];
    return sum;
}

static bool find_start(struct cutter *cutter, size_t call, struct start *chosen)
{
    size_t at = all_at(cutter);
    time_list times = {0};
    ARRAY(struct start) starts = {0};

    if (is_vain(cutter, call, at))
        return false;
    start_times(cutter, work_of(cutter, call), &times);
    for (size_t i = 0; i < times.count; i++) {
        if (i > 0 && times.items[i] == times.items[i - 1])
            continue;
        struct start *start = array_add(&starts);
        start->ns = times.items[i];
        latest_call(cutter, call, start);
    }
    bool found = choose_start(starts.items, starts.count, chosen);
    cutter->vain_at = found ? 0 : at;
    cutter->vain_to = call + START_CALLS;
    array_fini(&times);
    array_fini(&starts);
    return found;
}

/* The call among [from, to) that a left-over slot most likely belongs to, `to` of none. */
static size_t owner_of_rest(const struct cutter *cutter, const struct lane *lane, uint64_t first_ns, size_t from,
                            size_t to)
{
    for (size_t call = to; call-- > from;) {
        const struct work *work = work_of(cutter, call);
        if (matcher_may_use(work, lane) && expects(cutter, call) &&
            work->enqueued_ns <= first_ns + cutter->matcher.bound_ns)
            return call;
    }
    return to;
}

/* Gives what lies before the new start to the calls that it can belong to: their parts are in `state`. */
static void leave_rest(struct cutter *cutter, size_t from, size_t to, uint64_t start_ns, enum part_state state)
{
    trial_from(cutter, start_ns);
    for (size_t i = 0; i < cutter->lanes->count; i++) {
        const struct lane *lane = &cutter->lanes->items[i];
        for (size_t slot = cutter->at[i]; slot < cutter->trial[i]; slot++) {
            size_t call = owner_of_rest(cutter, lane, lane->slots.items[slot].first_ns, from, to);
            if (call == to)
                continue;
            share_list *shares = &part_of(cutter, call)->shares;
            struct share *last = shares->count == 0 ? NULL : &shares->items[shares->count - 1];
            if (last != NULL && last->lane == i && last->to == slot)
                last->to++;
            else
                *(struct share *)array_add(shares) = (struct share){.lane = i, .from = slot, .to = slot + 1};
        }
        cutter->at[i] = cutter->trial[i];
    }
    for (size_t call = from; call < to; call++)
        if (expects(cutter, call))
            set_state(cutter, call, state);
}

static uint64_t next_slot_ns(const struct cutter *cutter, const struct work *work)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < cutter->lanes->count; i++) {
        const struct lane *lane = &cutter->lanes->items[i];
        if (matcher_may_use(work, lane) && cutter->at[i] < lane->slots.count &&
            lane->slots.items[cutter->at[i]].first_ns < first)
            first = lane->slots.items[cutter->at[i]].first_ns;
    }
    return first;
}

/* Frames may have been missed between what was last given to a call and what comes next. */
static bool doubtful(const struct cutter *cutter, const struct work *work)
{
    uint64_t next = next_slot_ns(cutter, work);
    uint64_t since = cutter->last_ns > work->enqueued_ns ? cutter->last_ns : work->enqueued_ns;

    if (cutter->last_ns == 0 && work->enqueued_ns < cutter->losses->covered_from_ns)
        return true;
    return gap_touches(cutter->losses->gaps, cutter->losses->intake, EMITTER_NIC,
                       cutter->last_ns != 0 ? cutter->last_ns : since, next == UINT64_MAX ? since : next);
}

static bool damaged_ahead(const struct cutter *cutter, const struct work *work)
{
    for (size_t i = 0; i < cutter->lanes->count; i++) {
        const struct lane *lane = &cutter->lanes->items[i];
        for (size_t slot = cutter->at[i]; slot < lane->slots.count && slot < cutter->at[i] + 64; slot++)
            if (matcher_may_use(work, lane) && !lane->slots.items[slot].whole)
                return true;
    }
    return false;
}

/* Nothing fits from here on: says why. */
static enum part_state failure(const struct cutter *cutter, const struct work *work, bool doubt)
{
    bool lost = doubt || damaged_ahead(cutter, work) || !lanes_left(cutter, work, cutter->at);
    return lost ? PART_BROKEN : PART_UNKNOWN;
}

/* True when the call has nothing here: what lies next is the calls' behind it. */
static bool is_silent(struct cutter *cutter, size_t call)
{
    const struct work *work = work_of(cutter, call);

    if (!matcher_may_be_silent(&cutter->matcher, work))
        return false;
    if (matcher_is_silent(&cutter->matcher, work))
        return true;
    for (size_t i = 0; i < cutter->lanes->count; i++)
        cutter->trial[i] = cutter->at[i];
    if (fits(cutter, call + 1).calls == 0)
        return false;
    matcher_learn_silent(&cutter->matcher, work);
    return true;
}

/* Does one call, or several when some of them were lost. Returns the next call. */
static size_t cut_call(struct cutter *cutter, size_t call)
{
    const struct work *work = work_of(cutter, call);
    struct start start = {0};

    if (!expects(cutter, call))
        return call + 1;
    bool doubt = doubtful(cutter, work);
    enum match match = matcher_try(&cutter->matcher, work, cutter->at, &cutter->shares);
    if (match == MATCH_FULL && !doubt) {
        commit(cutter, call, PART_WHOLE);
        return call + 1;
    }
    if (match == MATCH_NONE && !doubt && is_silent(cutter, call)) {
        set_state(cutter, call, PART_SILENT);
        return call + 1;
    }
    if (lanes_left(cutter, work, cutter->at) && find_start(cutter, call, &start)) {
        leave_rest(cutter, call, start.call, start.ns, failure(cutter, work, doubt));
        if (matcher_try(&cutter->matcher, work_of(cutter, start.call), cutter->at, &cutter->shares) == MATCH_FULL)
            commit(cutter, start.call, PART_WHOLE);
        return start.call + 1;
    }
    match = matcher_try(&cutter->matcher, work, cutter->at, &cutter->shares);
    if (match == MATCH_NONE)
        set_state(cutter, call, failure(cutter, work, doubt));
    else
        commit(cutter, call, match == MATCH_FULL ? PART_WHOLE : PART_BROKEN);
    return call + 1;
}

static void select_calls(struct cutter *cutter)
{
    for (size_t call = 0; call < cutter->cuts->count; call++) {
        const struct work *whole = &cutter->cuts->items[call].work;
        struct work *work = &cutter->works[call];
        *work = *whole;
        bool here = cutter->ring ? whole->ring
                                 : work_towards(work, whole, cutter->matcher.rank, cutter->direction, cutter->peer);
        cutter->wanted[call] = here && matcher_expects(&cutter->matcher, work);
        if (cutter->wanted[call])
            part_of(cutter, call)->bytes += work->bytes;
    }
}

/* What lies before the first call was asked for before anybody looked. */
static void skip_earlier(struct cutter *cutter)
{
    size_t call = 0;

    while (call < cutter->cuts->count && !expects(cutter, call))
        call++;
    if (call == cutter->cuts->count || work_of(cutter, call)->enqueued_ns <= cutter->matcher.bound_ns)
        return;
    trial_from(cutter, work_of(cutter, call)->enqueued_ns - cutter->matcher.bound_ns);
    for (size_t i = 0; i < cutter->lanes->count; i++)
        cutter->at[i] = cutter->trial[i];
}

/* Whether a division that leaves so many is not believed. */
static bool is_hopeless(const struct cutter *cutter, size_t bad_most)
{
    return cutter->unknown > 0 && cutter->bad > bad_most;
}

static void cut_selected(struct cutter *cutter, bool ring, int32_t peer)
{
    cutter->ring = ring;
    cutter->peer = peer;
    cutter->last_ns = 0;
    cutter->vain_at = 0;
    select_calls(cutter);
    skip_earlier(cutter);
    for (size_t call = 0; call < cutter->cuts->count && !is_hopeless(cutter, cutter->bad_most);)
        call = cut_call(cutter, call);
}

static int by_rank(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a;
    int32_t right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* Every peer that a call names or a lane leads to, once. */
static void cut_peers(struct cutter *cutter)
{
    ARRAY(int32_t) peers = {0};

    for (size_t call = 0; call < cutter->cuts->count; call++)
        if (!cutter->cuts->items[call].work.ring)
            *(int32_t *)array_add(&peers) = cutter->cuts->items[call].work.peer;
    for (size_t i = 0; i < cutter->lanes->count; i++)
        if (cutter->lanes->items[i].point_to_point)
            *(int32_t *)array_add(&peers) = cutter->lanes->items[i].peer_rank;
    array_sort(&peers, by_rank);
    for (size_t i = 0; i < peers.count; i++)
        if (peers.items[i] >= 0 && (i == 0 || peers.items[i] != peers.items[i - 1]))
            cut_selected(cutter, false, peers.items[i]);
    array_fini(&peers);
}

/* Cuts the ring collectives anew, until some are unknown and more than so many bad. */
static void cut_divided(struct cutter *cutter, const struct matched *of, enum shape_division division, size_t bad_most)
{
    struct matched as = *of;

    as.division = division;
    matcher_fini(&cutter->matcher);
    matcher_init(&cutter->matcher, cutter->lanes, &as, cutter->bound_ns);
    memset(cutter->at, 0, cutter->lanes->count * sizeof *cutter->at);
    for (size_t call = 0; call < cutter->cuts->count; call++) {
        struct part *part = part_of(cutter, call);
        part->shares.count = 0;
        *part = (struct part){.shares = part->shares};
    }
    cutter->unknown = cutter->bad = 0;
    cutter->bad_most = bad_most;
    cut_selected(cutter, true, -1);
    cutter->bad_most = SIZE_MAX;
}

/*
 * Vendors' builds may divide otherwise than their version says, and some versions are not told: where calls are
 * unknown, another division is believed that leaves none unknown, or few bad.
 */
static void cut_rings(struct cutter *cutter, const struct matched *of)
{
    enum shape_division best = of->division;

    cut_divided(cutter, of, best, SIZE_MAX);
    if (cutter->unknown == 0)
        return;
    size_t most = cutter->bad / FEWER_TIMES, fewest = cutter->bad;
    for (unsigned turn = 1; turn < SHAPE_DIVISIONS; turn++) {
        enum shape_division division = division_in_turn(of->division, turn);
        cut_divided(cutter, of, division, most);
        if (cutter->bad == 0)
            return;
        if (is_hopeless(cutter, most) || cutter->bad >= fewest)
            continue;
        fewest = cutter->bad;
        most = most < fewest ? most : fewest - 1;
        best = division;
    }
    cut_divided(cutter, of, best, SIZE_MAX);
}

void operation_cut(operation_cut_list *cuts, const lane_list *lanes, enum lane_direction direction,
                   const struct matched *of, uint64_t bound_ns, const struct lane_losses *losses)
{
    struct cutter cutter = {
        .cuts = cuts, .lanes = lanes, .direction = direction, .losses = losses, .bound_ns = bound_ns};

    if (lanes->count == 0)
        return;
    cutter.at = array_zeroed(lanes->count * sizeof *cutter.at);
    cutter.trial = array_zeroed(lanes->count * sizeof *cutter.trial);
    cutter.works = array_zeroed(cuts->count * sizeof *cutter.works);
    cutter.wanted = array_zeroed(cuts->count * sizeof *cutter.wanted);
    cut_rings(&cutter, of);
    cut_peers(&cutter);
    free(cutter.at);
    free(cutter.trial);
    free(cutter.works);
    free(cutter.wanted);
    array_fini(&cutter.shares);
    matcher_fini(&cutter.matcher);
}
