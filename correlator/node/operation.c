/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cutting. Invariant: at[lane] only rises; every slot before it has been given to a call or to none; the calls before
 * `next` are done.
 */
#include "correlator/node/operation.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_CALLS   4   /* that must fit in a row before a new start is believed */
#define START_TIMES  128 /* where a new start is looked for */
#define LITTLE_PARTS 4   /* calls that take a quarter longer than the shortest are as good */
#define START_CALLS  256

struct cutter {
    operation_cut_list *cuts;
    const lane_list *lanes;
    enum lane_direction direction;
    const struct lane_losses *losses;
    bool ring; /* cuts ring collectives; else what calls have for `peer`: it has lanes of its own */
    int32_t peer;
    struct work *works; /* of each call: what it has here, if it is wanted */
    bool *wanted;
    struct matcher matcher;
    size_t *at;
    size_t *trial;
    uint64_t last_ns; /* the latest frame that was given to a call */
    share_list shares;
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
static void set_state(const struct cutter *cutter, size_t call, enum part_state state)
{
    static const unsigned badness[] = {
        [PART_NONE] = 0, [PART_SILENT] = 1, [PART_WHOLE] = 2, [PART_UNKNOWN] = 3, [PART_BROKEN] = 4};
    struct part *part = part_of(cutter, call);

    if (badness[state] > badness[part->state])
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
 * How many calls from `call` on fit the slots from `trial` on, up to LOOK_CALLS; 0 when they do not fit to there, or to
 * where both end together. *span_ns is the mean time from a call's first to its last frame.
 */
static unsigned fits(struct cutter *cutter, size_t call, uint64_t *span_ns)
{
    unsigned fitted = 0;
    size_t i;

    *span_ns = 0;
    for (i = call; i < cutter->cuts->count && fitted < LOOK_CALLS; i++) {
        const struct work *work = work_of(cutter, i);
        if (!expects(cutter, i))
            continue;
        enum match match = matcher_try(&cutter->matcher, work, cutter->trial, &cutter->shares);
        if (match == MATCH_NONE && matcher_may_be_silent(&cutter->matcher, work))
            continue;
        if (match == MATCH_NONE && lanes_left(cutter, work, cutter->trial))
            return 0;
        if (match != MATCH_FULL)
            break;
        advance(&cutter->shares, cutter->trial);
        *span_ns += span_of(cutter, &cutter->shares);
        fitted++;
    }
    if (i == cutter->cuts->count && fitted < LOOK_CALLS && slots_left(cutter, cutter->trial))
        return 0;
    *span_ns /= fitted > 0 ? fitted : 1;
    return fitted;
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
    unsigned fitted;
    uint64_t span_ns;
};

/* The latest call from `call` on that was enqueued by start->ns and that the slots from there on fit. */
static void latest_call(struct cutter *cutter, size_t call, struct start *start)
{
    size_t end = call;

    while (end < cutter->cuts->count && end - call < START_CALLS &&
           work_of(cutter, end)->enqueued_ns <= start->ns + cutter->matcher.bound_ns)
        end++;
    start->fitted = 0;
    while (end-- > call && start->fitted == 0) {
        if (!expects(cutter, end))
            continue;
        trial_from(cutter, start->ns);
        start->call = end;
        start->fitted = fits(cutter, end, &start->span_ns);
    }
}

/*
 * Of all starts that explain most calls the first whose calls take little time: a cut that is off by some slots of a
 * repeating pattern makes calls that stretch over the pauses between them.
 */
static bool choose_start(const struct start *starts, size_t count, struct start *chosen)
{
    unsigned fitted = 0;
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < count; i++)
        fitted = starts[i].fitted > fitted ? starts[i].fitted : fitted;
    for (size_t i = 0; i < count; i++)
        if (starts[i].fitted == fitted && starts[i].span_ns < least)
            least = starts[i].span_ns;
    for (size_t i = 0; i < count && fitted > 0; i++)
        if (starts[i].fitted == fitted && starts[i].span_ns <= least + least / LITTLE_PARTS) {
            *chosen = starts[i];
            return true;
        }
    return false;
}

static bool find_start(struct cutter *cutter, size_t call, struct start *chosen)
{
    time_list times = {0};
    ARRAY(struct start) starts = {0};

    start_times(cutter, work_of(cutter, call), &times);
    for (size_t i = 0; i < times.count; i++) {
        if (i > 0 && times.items[i] == times.items[i - 1])
            continue;
        struct start *start = array_add(&starts);
        start->ns = times.items[i];
        latest_call(cutter, call, start);
    }
    bool found = choose_start(starts.items, starts.count, chosen);
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
    uint64_t span_ns;

    if (!matcher_may_be_silent(&cutter->matcher, work))
        return false;
    if (matcher_is_silent(&cutter->matcher, work))
        return true;
    for (size_t i = 0; i < cutter->lanes->count; i++)
        cutter->trial[i] = cutter->at[i];
    if (fits(cutter, call + 1, &span_ns) == 0)
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

static void cut_selected(struct cutter *cutter, bool ring, int32_t peer)
{
    cutter->ring = ring;
    cutter->peer = peer;
    cutter->last_ns = 0;
    select_calls(cutter);
    for (size_t call = 0; call < cutter->cuts->count;)
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

void operation_cut(operation_cut_list *cuts, const lane_list *lanes, enum lane_direction direction, int32_t rank,
                   unsigned channels, uint64_t bound_ns, const struct lane_losses *losses)
{
    struct cutter cutter = {.cuts = cuts, .lanes = lanes, .direction = direction, .losses = losses};

    if (lanes->count == 0)
        return;
    matcher_init(&cutter.matcher, lanes, rank, channels, bound_ns);
    cutter.at = array_zeroed(lanes->count * sizeof *cutter.at);
    cutter.trial = array_zeroed(lanes->count * sizeof *cutter.trial);
    cutter.works = array_zeroed(cuts->count * sizeof *cutter.works);
    cutter.wanted = array_zeroed(cuts->count * sizeof *cutter.wanted);
    cut_selected(&cutter, true, -1);
    cut_peers(&cutter);
    free(cutter.at);
    free(cutter.trial);
    free(cutter.works);
    free(cutter.wanted);
    array_fini(&cutter.shares);
    matcher_fini(&cutter.matcher);
}
