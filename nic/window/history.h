/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages that have ended, kept for minutes at ordinary rates: one ring of fixed memory, 16 bytes or less each,
 * whose oldest block is given up for newer ones (counted). What is read is what was put, in the same order. All on the
 * measuring thread; nothing allocates after create.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/tally.h"
#include "wire/message_run.h"

struct history;

/* `memory_bytes` is all that it uses; -EINVAL when it is too small to be of use, -ENOMEM. */
int history_create(struct history **history, size_t memory_bytes, struct tallies *tallies);
void history_destroy(struct history **history);

/* Has all its memory taken now. */
void history_prepare(struct history *history);

void history_put(struct history *history, const struct record_message *message);

/* Messages that ended before this time may have been given up. 0 = none was. */
uint64_t history_held_from_ns(const struct history *history);

/* Bytes that all messages so far have taken, and what there is room for. */
uint64_t history_bytes_stored(const struct history *history);
uint64_t history_bytes_capacity(const struct history *history);

/* Reading back, oldest first; may be interleaved with history_put. */
struct history_walk {
    uint64_t from_ns; /* messages of which some lies in here */
    uint64_t to_ns;
    uint64_t block; /* state */
    struct message_coder coder;
    uint32_t entry;
    uint64_t last_block;
    uint32_t last_entry;
};

void history_walk_begin(const struct history *history, struct history_walk *walk, uint64_t from_ns, uint64_t to_ns);

/* Up to `capacity` records; looks at no more than `budget` messages. Returns how many; *done when the walk is over. */
size_t history_walk_next(const struct history *history, struct history_walk *walk, struct record_message *records,
                         size_t capacity, size_t budget, bool *done);
