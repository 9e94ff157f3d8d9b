/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow's habit is a running mean of the distance of frames within its messages, in which one message weighs an
 * eighth, and an odd one no more than four times what is usual.
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
#define FRACTIONS_OF_NS 16u

struct habit {
    uint32_t distance; /* of frames, in 1/16 ns */
    uint32_t learned;
    uint64_t stalled_ns; /* the flow's last data when its stall was found; 0 = none */
};

struct watch {
    struct meter *meter;
    struct habit *habits; /* by flow number - 1 */
    uint32_t scanned;     /* flows 1 .. scanned have been looked at in this round */
    uint64_t round_ns;    /* when it began */
    uint64_t from_ns;     /* to be pinned; 0 = nothing */
    uint64_t to_ns;
    uint32_t settled; /* the next flow whose windows are to be stored before */
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

static void want_pin(struct watch *watch, uint64_t from_ns, uint64_t to_ns)
{
    if (watch->from_ns != 0) {
        tally_add(watch->meter->tallies, TALLY_PINS_SKIPPED, 1);
        return;
    }
    watch->from_ns = from_ns > MARGIN_NS ? from_ns - MARGIN_NS : 1;
    watch->to_ns = to_ns;
    watch->settled = 1;
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

void watch_message(struct watch *watch, const struct record_message *message)
{
    struct habit *habit = &watch->habits[message->header.source - 1];
    uint32_t steps = message->frames - 1;

    if (message->frames < FRAMES_MIN || (message->flags & (MESSAGE_INCOMPLETE | MESSAGE_MERGED)) != 0)
        return;
    uint64_t usual_ns = (uint64_t)habit->distance * steps / FRACTIONS_OF_NS;
    if (habit->learned >= LEARNED && message->duration_ns > SLOW_FACTOR * usual_ns + SLOW_NS)
        want_pin(watch, message->first_ns, message->first_ns + message->duration_ns);
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
    uint64_t least_ns = (uint64_t)habit->distance * STALL_FACTOR / FRACTIONS_OF_NS;

    if (habit->learned < LEARNED || covered_ns <= flow->data_ns || habit->stalled_ns == flow->data_ns)
        return;
    uint64_t silent_ns = covered_ns - flow->data_ns;
    if (silent_ns < STALL_NS || silent_ns < least_ns || !is_inside_message(flow))
        return;
    habit->stalled_ns = flow->data_ns;
    tally_add(watch->meter->tallies, TALLY_STALLS, 1);
    want_pin(watch, flow->data_ns, covered_ns);
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
    if (watch->from_ns == 0)
        return;
    watch->settled = meter_settle_some(watch->meter, watch->settled, SCAN_FLOWS, covered_ns, 0);
    if (watch->settled != 0)
        return;
    tiers_pin(&watch->meter->tiers, watch->from_ns, watch->to_ns);
    watch->from_ns = 0;
}
