/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow's habit is a running mean of the distance of frames within its messages, in which one message weighs an
 * eighth, and the longest pauses between its messages in this epoch and in the one before: an epoch is 10 s, or 16 of
 * those pauses where they are longer, so that a pause that comes once a step is not forgotten. An odd distance or pause
 * weighs no more than four times what is usual.
 * Invariant: an interval is pinned only after the windows of all flows that were over at its end have been stored.
 */
#include "nic/window/watch.h"

#include <errno.h>
#include <stdlib.h>

#define MS              1000000u
#define SCAN_NS         (10u * MS) /* at least, from one look at a flow to the next */
#define SCAN_FLOWS      16u
#define MARGIN_NS       MS
#define LEARNED         8u /* messages, before a habit counts */
#define FRAMES_MIN      8u
#define WEIGHT          8
#define ODD_MAX         4
#define SLOW_FACTOR     4u
#define SLOW_NS         50000u
#define STALL_FACTOR    32u
#define STALL_NS        (2u * MS)
#define PAUSE_FACTOR    4u
#define EPOCH_NS        (10000ull * MS)
#define EPOCH_PAUSES    16u
#define FRACTIONS_OF_NS 16u
#define FOUND_MAX       16u

struct habit {
    uint32_t distance; /* of frames, in 1/16 ns */
    uint32_t learned;
    uint64_t stalled_ns; /* the flow's last data when its stall was found; 0 = none */
    uint64_t end_ns;     /* of the last message; 0 = none yet */
    uint64_t epoch_ns;   /* when the present one began */
    uint64_t pause_ns;   /* the longest in it */
    uint64_t before_ns;  /* the longest in the one before */
    bool knows_pauses;   /* an epoch has gone by */
};

struct watch {
    struct meter *meter;
    struct habit *habits; /* by flow number - 1 */
    uint32_t scanned;     /* flows 1 .. scanned have been looked at in this round */
    uint64_t round_ns;    /* when it began */
    uint64_t from_ns;     /* to be pinned; 0 = nothing */
    uint64_t to_ns;
    uint32_t settled;                   /* the next flow whose windows are to be stored before */
    struct record_pin found[FOUND_MAX]; /* what it is pinned for */
    unsigned found_count;
    unsigned told; /* of those, once it is pinned */
};

int watch_create(struct watch **watch, struct meter *meter)
{
    struct watch *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->meter = meter;
    made->habits = calloc(flow_capacity(meter->flows), sizeof *made->habits);
    if (made->habits == NULL) {
        free(made);
        return -ENOMEM;
    }
    *watch = made;
    return 0;
}

void watch_destroy(struct watch **watch)
{
    if (*watch == NULL)
        return;
    free((*watch)->habits);
    free(*watch);
    *watch = NULL;
}

/* One interval is prepared at a time; what overlaps it makes it longer. */
static bool can_join(const struct watch *watch, uint64_t from_ns, uint64_t to_ns)
{
    return watch->found_count < FOUND_MAX && from_ns <= watch->to_ns && to_ns >= watch->from_ns;
}

/* The interval is that of what happened; the pin has a margin before it. */
static void want_pin(struct watch *watch, const struct record_pin *pin)
{
    uint64_t from_ns = pin->from_ns > MARGIN_NS ? pin->from_ns - MARGIN_NS : 1;

    if (watch->from_ns != 0 && !can_join(watch, from_ns, pin->to_ns)) {
        tally_add(watch->meter->tallies, TALLY_PINS_SKIPPED, 1);
        return;
    }
    if (watch->from_ns == 0) {
        watch->found_count = 0;
        watch->told = 0;
        watch->to_ns = 0;
    }
    if (watch->to_ns < pin->to_ns) {
        watch->to_ns = pin->to_ns;
        watch->settled = 1;
    }
    if (watch->from_ns == 0 || from_ns < watch->from_ns)
        watch->from_ns = from_ns;
    watch->found[watch->found_count++] = *pin;
}

static void learn(struct habit *habit, uint64_t distance)
{
    uint64_t most = (uint64_t)habit->distance * ODD_MAX;

    if (distance > UINT32_MAX)
        distance = UINT32_MAX;
    if (habit->learned++ == 0)
        habit->distance = (uint32_t)distance;
    else
        habit->distance +=
            (int32_t)((int64_t)(distance < most || most == 0 ? distance : most) - habit->distance) / WEIGHT;
}

static uint64_t longest_pause(const struct habit *habit)
{
    return habit->pause_ns > habit->before_ns ? habit->pause_ns : habit->before_ns;
}

static void begin_epoch(struct habit *habit, uint64_t now_ns)
{
    habit->knows_pauses = habit->epoch_ns != 0;
    habit->before_ns = habit->pause_ns;
    habit->pause_ns = 0;
    habit->epoch_ns = now_ns;
}

static void learn_pause(struct habit *habit, uint64_t pause_ns, uint64_t now_ns)
{
    uint64_t longest_ns = longest_pause(habit),
             most_ns = longest_ns * ODD_MAX > STALL_NS ? longest_ns * ODD_MAX : STALL_NS;
    uint64_t epoch_ns = longest_ns * EPOCH_PAUSES > EPOCH_NS ? longest_ns * EPOCH_PAUSES : EPOCH_NS;

    if (habit->epoch_ns == 0 || now_ns - habit->epoch_ns > epoch_ns)
        begin_epoch(habit, now_ns);
    if (habit->knows_pauses && pause_ns > most_ns)
        pause_ns = most_ns;
    if (pause_ns > habit->pause_ns)
        habit->pause_ns = pause_ns;
}

static bool is_long_pause(const struct habit *habit, uint64_t pause_ns)
{
    return habit->knows_pauses && pause_ns >= STALL_NS && pause_ns > PAUSE_FACTOR * longest_pause(habit);
}

/* What lay between the flow's messages before this one, and this one. */
static void note_pause(struct watch *watch, struct habit *habit, const struct record_message *message)
{
    uint64_t end_ns = message->first_ns + message->duration_ns;
    uint64_t pause_ns = habit->end_ns != 0 && message->first_ns > habit->end_ns ? message->first_ns - habit->end_ns : 0;

    if (is_long_pause(habit, pause_ns))
        want_pin(watch, &(struct record_pin){.header.source = message->header.source,
                                             .from_ns = habit->end_ns,
                                             .to_ns = end_ns,
                                             .cause = PIN_STALLED_BETWEEN,
                                             .usual_ns = longest_pause(habit),
                                             .found_ns = pause_ns});
    learn_pause(habit, pause_ns, end_ns);
    habit->end_ns = end_ns > habit->end_ns ? end_ns : habit->end_ns;
}

void watch_message(struct watch *watch, const struct record_message *message)
{
    struct habit *habit = &watch->habits[message->header.source - 1];
    uint32_t steps = message->frames - 1;

    note_pause(watch, habit, message);
    if (message->frames < FRAMES_MIN || (message->flags & (MESSAGE_INCOMPLETE | MESSAGE_MERGED)) != 0)
        return;
    uint64_t usual_ns = (uint64_t)habit->distance * steps / FRACTIONS_OF_NS;
    if (habit->learned >= LEARNED && message->duration_ns > SLOW_FACTOR * usual_ns + SLOW_NS)
        want_pin(watch, &(struct record_pin){.header.source = message->header.source,
                                             .from_ns = message->first_ns,
                                             .to_ns = message->first_ns + message->duration_ns,
                                             .cause = PIN_SLOWED,
                                             .usual_ns = usual_ns,
                                             .found_ns = message->duration_ns});
    learn(habit, (uint64_t)message->duration_ns * FRACTIONS_OF_NS / steps);
}

static bool is_inside_message(const struct flow *flow)
{
    for (unsigned i = 0; i < FLOW_STREAMS_COUNT; i++) {
        const struct message *newest = &flow->streams[i].messages.open[flow->streams[i].messages.newest];
        if (newest->open && !newest->has_last)
            return true;
    }
    return false;
}

static void look_at(struct watch *watch, uint32_t number, uint64_t covered_ns)
{
    const struct flow *flow = flow_at(watch->meter->flows, number);
    struct habit *habit = &watch->habits[number - 1];
    uint64_t distance_ns = habit->distance / FRACTIONS_OF_NS;

    if (covered_ns < flow->data_ns + STALL_NS || habit->stalled_ns == flow->data_ns || flow->pairing.is_over)
        return;
    uint64_t silent_ns = covered_ns - flow->data_ns;
    bool is_inside = is_inside_message(flow);
    bool is_stall = is_inside ? habit->learned >= LEARNED && silent_ns >= STALL_FACTOR * distance_ns
                              : is_long_pause(habit, silent_ns);
    if (!is_stall)
        return;
    habit->stalled_ns = flow->data_ns;
    tally_add(watch->meter->tallies, is_inside ? TALLY_STALLS : TALLY_STALLS_BETWEEN, 1);
    want_pin(watch, &(struct record_pin){.header.source = number,
                                         .from_ns = flow->data_ns,
                                         .to_ns = covered_ns,
                                         .cause = is_inside ? PIN_STALLED_WITHIN : PIN_STALLED_BETWEEN,
                                         .usual_ns = is_inside ? distance_ns : longest_pause(habit),
                                         .found_ns = silent_ns});
}

static void scan(struct watch *watch, uint64_t covered_ns)
{
    for (uint32_t i = 0; i < SCAN_FLOWS && watch->scanned < flow_count(watch->meter->flows); i++)
        look_at(watch, ++watch->scanned, covered_ns);
    if (watch->scanned < flow_count(watch->meter->flows) || covered_ns < watch->round_ns + SCAN_NS)
        return;
    watch->scanned = 0;
    watch->round_ns = covered_ns;
}

void watch_go_on(struct watch *watch, uint64_t covered_ns)
{
    scan(watch, covered_ns);
    if (watch->from_ns == 0 || covered_ns < watch->to_ns + window_ring_window_ns(watch->meter->windows))
        return;
    watch->settled = meter_settle_some(watch->meter, watch->settled, SCAN_FLOWS, covered_ns, 0);
    if (watch->settled != 0)
        return;
    if (!tiers_pin(&watch->meter->tiers, watch->from_ns, watch->to_ns))
        watch->found_count = 0;
    for (unsigned i = 0; i < watch->found_count; i++) {
        watch->found[i].from_ns = watch->from_ns;
        watch->found[i].to_ns = watch->to_ns;
    }
    watch->from_ns = 0;
}

bool watch_take(struct watch *watch, struct record_pin *pin)
{
    if (watch->from_ns != 0 || watch->told == watch->found_count)
        return false;
    *pin = watch->found[watch->told++];
    return true;
}
