/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is kept in memory of what was measured, and for how long: windows of three lengths and the messages, each in a
 * share of one fixed budget. A part of the windows' share holds what was pinned. All on the measuring thread.
 */
#pragma once

#include "nic/window/history.h"
#include "nic/window/window.h"

#define TIER_MIDDLE_NS   128000u /* at most, but where the windows themselves are nearly as long */
#define TIER_LONG_RATIO  16u
#define TIER_GAUGES_NS   1000000000u
#define TIER_RINGS_COUNT 3

/* Shares of the budget, of TIER_SHARES. */
#define TIER_SHARES         16u
#define TIER_WINDOWS_SHARE  12u
#define TIER_PINNED_SHARE   1u
#define TIER_MESSAGES_SHARE 1u
#define TIER_COARSE_SHARE   1u /* each of the two */

struct tiers {
    struct tallies *tallies;
    struct window_ring *rings[TIER_RINGS_COUNT]; /* the shortest windows first */
    struct history *history;
    uint64_t measured_ns; /* when the gauges were last set, and how many bytes had been stored then */
    uint64_t bytes[TIER_RINGS_COUNT + 1];
};

/* -EINVAL when the memory is too little to be of use, -ENOMEM. */
int tiers_create(struct tiers *tiers, uint32_t window_ns, size_t memory_bytes, struct tallies *tallies);
void tiers_destroy(struct tiers *tiers);

/* Has all their memory taken now. */
void tiers_prepare(struct tiers *tiers);

/* Sets, once a second, the gauges of how long each tier lasts at the present rate. */
void tiers_measure(struct tiers *tiers, uint64_t now_ns);

/* Keeps an interval of all windows; the caller has closed those that are open. */
bool tiers_pin(struct tiers *tiers, uint64_t from_ns, uint64_t to_ns);
