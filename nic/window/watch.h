/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches for flows that break their own pattern, and pins the interval in which one did, so that its windows are still
 * there when a verdict asks for them:
 * - stalled within a message: nothing came for 2 ms and for 32 times the flow's usual distance of frames;
 * - stalled between messages: after a message nothing came for 2 ms and for four times the longest pause that the flow
 *   had made of late; pinned when it is found, and again, whole, when the flow goes on;
 * - slowed: a message took 50 us, and four times, longer than the flow's messages of its number of frames usually do.
 * The distance of frames is learned from the flow's messages of 8 frames and more, and applies after 8 of them; the
 * longest pause from at least 10 s, and applies after them. A pin takes half of the room for pins at most; one begins
 * at a time: what overlaps it joins it, what else comes meanwhile is counted. On the measuring thread; nothing
 * allocates after create.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/meter.h"

struct watch;

/* The meter must outlive it. */
int watch_create(struct watch **watch, struct meter *meter);
void watch_destroy(struct watch **watch);

/* A message has ended. */
void watch_message(struct watch *watch, const struct record_message *message);

/* Looks at a few flows; everything up to `covered_ns` has been measured. Call often. */
void watch_go_on(struct watch *watch, uint64_t covered_ns);

/* What a pin was made for, one flow at a time; false when all has been told. To be asked after each watch_go_on. */
bool watch_take(struct watch *watch, struct record_pin *pin);
