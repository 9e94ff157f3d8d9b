/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the volume of messages on their way out below a set rate: above it, consecutive messages of one flow and role
 * become one record, a burst, which says so (MESSAGE_MERGED): its frames and payload are those of all, its time goes
 * from the first one's first frame to the last one's last, its immediate is how many they are, its place the last
 * one's. On the measuring thread; nothing allocates after create.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/tally.h"
#include "wire/record.h"

struct merger;

/* `bytes_per_second` of messages on their way out on average, and a tenth of it at once; 0 = no bound. */
int merger_create(struct merger **merger, uint32_t flows_max, uint64_t bytes_per_second, struct tallies *tallies);
void merger_destroy(struct merger **merger);

/* Another rate from now on; at 0 what waits goes with the next merger_go_on. */
void merger_set_rate(struct merger *merger, uint64_t bytes_per_second);

/* Returns how many bytes the message took on its way out. */
typedef size_t (*merger_send)(void *context, const struct record_message *message);

/*
 * A message, at the time `now_ns`: is sent at once, or waits to be merged with those that follow. What counts is the
 * rate at which messages ended, not that at which they are added: a reader that was held up adds many at one time.
 */
void merger_add(struct merger *merger, const struct record_message *message, uint64_t now_ns, merger_send send,
                void *context);

/* Sends what the rate allows by now of those that wait; all of them when `all`. Call often. */
void merger_go_on(struct merger *merger, uint64_t now_ns, bool all, merger_send send, void *context);

/* Whether some wait, and since when the first of them does. */
bool merger_waits_since(const struct merger *merger, uint64_t *since_ns);
