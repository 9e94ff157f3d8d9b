/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each request goes through the phases in order; a step of a phase is a bounded amount of work. Flows are chosen by a
 * threshold that is found by halving, so that no step has to sort them.
 * Invariant: records + left_out of the trigger_end is all that was held of the interval when it was read.
 */
#include "nic/window/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS                  1000000ull
#define REQUESTS_MAX        32
#define DELAY_NS            (50u * MS)    /* until all frames of the interval have surely been read */
#define WAIT_MAX_NS         (10000u * MS) /* for an interval that ends in the future */
#define LINK_WAIT_MAX_NS    (10000u * MS) /* then nobody is there to take it, though it may be recorded */
#define SLICE_NS            20000u
#define IDLE_SLICE_NS       500000u
#define PAUSE_RATIO         7u /* of the time that a slice took, before the next */
#define STEP_RECORDS        64
#define STEP_BUDGET         256
#define STEP_FLOWS          64
#define RANK_RETRANSMIT_BIT 40

enum phase {
    PHASE_WAIT = 0,
    PHASE_SETTLE,
    PHASE_ADD_UP,
    PHASE_CHOOSE,
    PHASE_SEND,
};

struct request {
    struct record_trigger trigger;
    uint64_t due_ns;
};

/* What one flow has of the interval. */
struct share {
    uint64_t bytes;
    uint32_t retransmitted;
    uint32_t records;
};

struct walks {
    struct window_walk windows;
    struct history_walk messages;
};

struct fetch {
    struct meter *meter;
    struct emitter *emitter;
    struct request requests[REQUESTS_MAX];
    unsigned first;
    unsigned count;
    uint64_t next_ns; /* when the next slice may begin */
    /* of the first request */
    enum phase phase;
    struct walks walk;
    uint32_t settled;
    uint32_t flows_count;
    uint64_t limit;
    uint64_t records; /* all that were added up */
    uint64_t low;     /* the threshold lies in low .. high */
    uint64_t high;
    uint64_t held_from_ns;
    uint64_t held_to_ns;
    struct record_trigger_end end;
    struct share *shares; /* by flow number - 1 */
    bool *is_chosen;
    union {
        struct record_window windows[STEP_RECORDS];
        struct record_message messages[STEP_RECORDS];
    };
};

int fetch_create(struct fetch **fetch, struct meter *meter, struct emitter *emitter)
{
    uint32_t flows_max = flow_capacity(meter->flows);
    struct fetch *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->meter = meter;
    made->emitter = emitter;
    made->shares = calloc(flows_max, sizeof *made->shares);
    made->is_chosen = calloc(flows_max, sizeof *made->is_chosen);
    if (made->shares == NULL || made->is_chosen == NULL) {
        fetch_destroy(&made);
        return -ENOMEM;
    }
    *fetch = made;
    return 0;
}

void fetch_destroy(struct fetch **fetch)
{
    if (*fetch == NULL)
        return;
    free((*fetch)->shares);
    free((*fetch)->is_chosen);
    free(*fetch);
    *fetch = NULL;
}

void fetch_ask(struct fetch *fetch, const struct record_trigger *trigger, uint64_t now_ns)
{
    struct tallies *tallies = fetch->meter->tallies;

    if (trigger->from_ns >= trigger->to_ns || trigger->tier >= TIERS_COUNT || trigger->rank >= RANKS_COUNT) {
        tally_add(tallies, TALLY_CONTROL_REJECTED, 1);
        return;
    }
    tally_add(tallies, TALLY_TRIGGERS, 1);
    if (fetch->count == REQUESTS_MAX) {
        tally_add(tallies, TALLY_TRIGGERS_REFUSED, 1);
        return;
    }
    struct request *request = &fetch->requests[(fetch->first + fetch->count++) % REQUESTS_MAX];
    *request = (struct request){.trigger = *trigger, .due_ns = trigger->to_ns + DELAY_NS};
    if (trigger->to_ns > now_ns + WAIT_MAX_NS)
        request->due_ns = now_ns + WAIT_MAX_NS;
}

bool fetch_is_waiting(const struct fetch *fetch)
{
    return fetch->count != 0;
}

static const struct record_trigger *trigger_of(const struct fetch *fetch)
{
    return &fetch->requests[fetch->first].trigger;
}

/* ---- reading a tier ---- */

static struct window_ring *ring_of(const struct fetch *fetch)
{
    switch (trigger_of(fetch)->tier) {
    case TIER_MESSAGES:
        return NULL;
    case TIER_WINDOWS_MIDDLE:
        return fetch->meter->tiers.rings[1];
    case TIER_WINDOWS_LONG:
        return fetch->meter->tiers.rings[2];
    default:
        return fetch->meter->tiers.rings[0];
    }
}

static void begin_walk(struct fetch *fetch)
{
    const struct record_trigger *trigger = trigger_of(fetch);
    const struct window_ring *ring = ring_of(fetch);

    if (ring == NULL)
        history_walk_begin(fetch->meter->tiers.history, &fetch->walk.messages, trigger->from_ns, trigger->to_ns);
    else
        window_walk_begin(ring, &fetch->walk.windows, trigger->from_ns, trigger->to_ns, 0);
}

static size_t read_some(struct fetch *fetch, bool *done)
{
    const struct window_ring *ring = ring_of(fetch);

    if (ring == NULL)
        return history_walk_next(fetch->meter->tiers.history, &fetch->walk.messages, fetch->messages, STEP_RECORDS,
                                 STEP_BUDGET, done);
    return window_walk_next(ring, &fetch->walk.windows, fetch->windows, STEP_RECORDS, STEP_BUDGET, done);
}

static bool was_overtaken(const struct fetch *fetch)
{
    return ring_of(fetch) != NULL && fetch->walk.windows.has_gap;
}

/* What is held of the interval at present; from == to: nothing. */
static void find_held(struct fetch *fetch)
{
    const struct window_ring *ring = ring_of(fetch);
    uint64_t from_ns = trigger_of(fetch)->from_ns, to_ns = trigger_of(fetch)->to_ns;
    uint64_t kept_ns = history_held_from_ns(fetch->meter->tiers.history);

    if (ring == NULL) {
        from_ns = kept_ns <= from_ns ? from_ns : kept_ns < to_ns ? kept_ns : to_ns;
    } else if (!window_ring_holds(ring, &from_ns, &to_ns)) {
        from_ns = to_ns;
    }
    fetch->held_from_ns = from_ns;
    fetch->held_to_ns = to_ns;
}

/* ---- choosing ---- */

static bool is_named(const struct record_trigger *trigger, uint32_t flow)
{
    bool is_named = trigger->flow == 0 || trigger->flow == flow;

    for (unsigned i = 0; i < sizeof trigger->more_flows / sizeof trigger->more_flows[0]; i++)
        is_named |= trigger->more_flows[i] == flow;
    return is_named;
}

static void add_up(struct fetch *fetch, size_t count)
{
    bool is_message = ring_of(fetch) == NULL;

    for (size_t i = 0; i < count; i++) {
        uint32_t flow = is_message ? fetch->messages[i].header.source : fetch->windows[i].header.source;
        if (flow > fetch->flows_count || !is_named(trigger_of(fetch), flow))
            continue;
        struct share *share = &fetch->shares[flow - 1];
        share->records++;
        share->bytes += is_message ? fetch->messages[i].payload_bytes : fetch->windows[i].payload_bytes;
        share->retransmitted += is_message ? (fetch->messages[i].flags & MESSAGE_RETRANSMITTED) != 0
                                           : fetch->windows[i].retransmitted_frames;
        fetch->records++;
    }
}

/* What puts a flow before others; 0 only when it has nothing of the interval. */
static uint64_t rank_of(const struct fetch *fetch, const struct share *share)
{
    uint64_t bytes_max = ((uint64_t)1 << RANK_RETRANSMIT_BIT) - 2;
    uint64_t rank = (share->bytes < bytes_max ? share->bytes : bytes_max) + 1;

    if (share->records == 0)
        return 0;
    if (trigger_of(fetch)->rank == RANK_RETRANSMITTED)
        rank |= (uint64_t)(share->retransmitted < 1u << 23 ? share->retransmitted : 1u << 23) << RANK_RETRANSMIT_BIT;
    return rank;
}

static uint64_t records_above(const struct fetch *fetch, uint64_t threshold)
{
    uint64_t records = 0;

    for (uint32_t i = 0; i < fetch->flows_count; i++)
        records += rank_of(fetch, &fetch->shares[i]) > threshold ? fetch->shares[i].records : 0;
    return records;
}

static void choose(struct fetch *fetch, uint32_t flow, uint64_t *room)
{
    const struct share *share = &fetch->shares[flow];

    fetch->is_chosen[flow] = true;
    *room -= share->records < *room ? share->records : *room;
}

/* Those above the threshold, then of those on it as many as find room; at least one. */
static void choose_flows(struct fetch *fetch)
{
    uint64_t room = fetch->limit;

    for (uint32_t i = 0; i < fetch->flows_count; i++) {
        if (rank_of(fetch, &fetch->shares[i]) > fetch->high)
            choose(fetch, i, &room);
    }
    for (uint32_t i = 0; i < fetch->flows_count; i++) {
        bool fits = fetch->shares[i].records <= room || room == fetch->limit;
        if (fetch->high != 0 && rank_of(fetch, &fetch->shares[i]) == fetch->high && fits)
            choose(fetch, i, &room);
    }
    for (uint32_t i = 0; i < fetch->flows_count; i++) {
        fetch->end.flows += fetch->is_chosen[i];
        fetch->end.flows_left_out += !fetch->is_chosen[i] && fetch->shares[i].records != 0;
    }
}

/* One halving: the threshold is the smallest above which all flows together are within the limit. */
static bool narrow_threshold(struct fetch *fetch)
{
    if (fetch->low == fetch->high)
        return true;
    uint64_t middle = fetch->low + (fetch->high - fetch->low) / 2;
    if (records_above(fetch, middle) <= fetch->limit)
        fetch->high = middle;
    else
        fetch->low = middle + 1;
    return false;
}

/* ---- sending ---- */

static void send_window(struct fetch *fetch, struct record_window *window)
{
    const struct window_ring *ring = ring_of(fetch);
    struct record_coarse_window coarse;

    if (trigger_of(fetch)->tier == TIER_WINDOWS) {
        emitter_add(fetch->emitter, RECORD_WINDOW, window);
        return;
    }
    window_record_coarse(window, window_ring_window_ns(ring), &coarse);
    emitter_add(fetch->emitter, RECORD_COARSE_WINDOW, &coarse);
}

static void send_some(struct fetch *fetch, size_t count)
{
    bool is_message = ring_of(fetch) == NULL;

    for (size_t i = 0; i < count; i++) {
        uint32_t flow = is_message ? fetch->messages[i].header.source : fetch->windows[i].header.source;
        if (flow > fetch->flows_count || !fetch->is_chosen[flow - 1] || fetch->end.windows == fetch->limit)
            continue;
        fetch->end.windows++;
        if (is_message)
            (void)emitter_add_message(fetch->emitter, &fetch->messages[i]);
        else
            send_window(fetch, &fetch->windows[i]);
    }
}

static void say_lost(struct fetch *fetch, uint64_t from_ns, uint64_t to_ns)
{
    struct record_loss loss = {.from_ns = from_ns, .to_ns = to_ns, .cause = LOSS_OVERWRITTEN};

    if (from_ns < to_ns)
        emitter_add(fetch->emitter, RECORD_LOSS, &loss);
}

static void end_request(struct fetch *fetch, uint64_t now_ns)
{
    const struct record_trigger *trigger = trigger_of(fetch);
    uint64_t to_ns = trigger->to_ns < now_ns ? trigger->to_ns : now_ns;

    if (was_overtaken(fetch))
        find_held(fetch);
    fetch->end.header.source = trigger->header.source;
    fetch->end.tier = trigger->tier;
    fetch->end.to_ns = fetch->held_to_ns < to_ns ? fetch->held_to_ns : to_ns;
    fetch->end.from_ns = fetch->held_from_ns < fetch->end.to_ns ? fetch->held_from_ns : fetch->end.to_ns;
    fetch->end.left_out = fetch->records > fetch->end.windows ? fetch->records - fetch->end.windows : 0;
    if (ring_of(fetch) != NULL && fetch->walk.windows.has_pinned)
        fetch->end.flags |= TRIGGER_END_PINNED;
    say_lost(fetch, trigger->from_ns, fetch->end.from_ns);
    say_lost(fetch, fetch->end.to_ns, to_ns);
    emitter_add(fetch->emitter, RECORD_TRIGGER_END, &fetch->end);
    emitter_flush(fetch->emitter);
    fetch->first = (fetch->first + 1) % REQUESTS_MAX;
    fetch->count--;
    fetch->phase = PHASE_WAIT;
}

/* ---- the phases ---- */

static void begin_request(struct fetch *fetch)
{
    const struct record_trigger *trigger = trigger_of(fetch);

    fetch->end = (struct record_trigger_end){0};
    fetch->records = 0;
    fetch->flows_count = flow_count(fetch->meter->flows);
    fetch->limit = trigger->limit == 0 ? FETCH_LIMIT_RECORDS : trigger->limit;
    fetch->low = 0;
    fetch->high = UINT64_MAX;
    fetch->settled = 1;
    memset(fetch->shares, 0, fetch->flows_count * sizeof *fetch->shares);
    memset(fetch->is_chosen, 0, fetch->flows_count * sizeof *fetch->is_chosen);
    fetch->phase = PHASE_SETTLE;
}

static void settle_some(struct fetch *fetch, uint64_t now_ns)
{
    fetch->settled = meter_settle_some(fetch->meter, fetch->settled, STEP_FLOWS, now_ns, 0);
    if (fetch->settled != 0)
        return;
    find_held(fetch);
    begin_walk(fetch);
    fetch->phase = PHASE_ADD_UP;
}

static void add_up_some(struct fetch *fetch)
{
    bool done;

    add_up(fetch, read_some(fetch, &done));
    if (done)
        fetch->phase = PHASE_CHOOSE;
}

static void choose_some(struct fetch *fetch)
{
    if (fetch->records <= fetch->limit)
        fetch->high = fetch->low; /* all of them */
    if (!narrow_threshold(fetch))
        return;
    choose_flows(fetch);
    begin_walk(fetch);
    fetch->phase = PHASE_SEND;
}

static void step(struct fetch *fetch, uint64_t now_ns)
{
    bool done;

    switch (fetch->phase) {
    case PHASE_WAIT:
        begin_request(fetch);
        break;
    case PHASE_SETTLE:
        settle_some(fetch, now_ns);
        break;
    case PHASE_ADD_UP:
        add_up_some(fetch);
        break;
    case PHASE_CHOOSE:
        choose_some(fetch);
        break;
    case PHASE_SEND:
        send_some(fetch, read_some(fetch, &done));
        if (done)
            end_request(fetch, now_ns);
    }
}

/* Whether there is something to do: the first request's interval is over, and the link takes what is sent. */
static bool is_due(const struct fetch *fetch, uint64_t now_ns)
{
    const struct request *request = &fetch->requests[fetch->first];

    if (fetch->count == 0 || now_ns < request->due_ns)
        return false;
    return fetch->phase != PHASE_SEND || !emitter_is_waiting(fetch->emitter) ||
           now_ns > request->due_ns + LINK_WAIT_MAX_NS;
}

void fetch_go_on(struct fetch *fetch, uint64_t now_ns, bool is_idle)
{
    uint64_t begun_ns = now_ns, slice_ns = is_idle ? IDLE_SLICE_NS : SLICE_NS;

    if (!is_idle && now_ns < fetch->next_ns)
        return;
    while (is_due(fetch, now_ns) && now_ns - begun_ns < slice_ns) {
        step(fetch, now_ns);
        now_ns = emitter_now_ns(fetch->emitter);
    }
    fetch->next_ns = now_ns + PAUSE_RATIO * (now_ns - begun_ns);
}
