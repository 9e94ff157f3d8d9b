/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the rate of message records below a set one: above it, consecutive messages of one flow and role become one
 * burst record, which says how many they were. Below it, messages pass as they are. Fixed memory; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/tally.h"
#include "wire/record.h"

#define BURST_RECORDS_MAX 2 /* that one message can set free */

struct bursts;

/* `rate`: records a second; 0 = no limit. */
int bursts_create(struct bursts **bursts, uint32_t rate, struct tallies *tallies);
void bursts_destroy(struct bursts **bursts);

/* Bytes that it takes. */
size_t bursts_bytes(void);

/* A message; returns how many records go out for it now, those in `records`, in this order. */
unsigned bursts_pass(struct bursts *bursts, const struct record_message *message,
                     struct record_message records[BURST_RECORDS_MAX]);

/* Takes out one that is held back; false when none is. */
bool bursts_take(struct bursts *bursts, struct record_message *record);

/* When the first message of those held back began; UINT64_MAX: none is. */
uint64_t bursts_held_from_ns(const struct bursts *bursts);
