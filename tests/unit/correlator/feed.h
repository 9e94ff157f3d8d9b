/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An emitter for tests: packs records into batches of its own clock and keeps them, so that a test can hand them over
 * in any order, twice, or not at all.
 */
#pragma once

#include "wire/record.h"

#define FEED_BATCHES_MAX 4096

struct feed_batch {
    uint8_t *bytes;
    size_t length_bytes;
};

struct feed {
    uint16_t kind;
    uint64_t emitter_id;
    uint64_t boot_id;
    int64_t offset_ns; /* the emitter's clock minus the reference clock */
    uint64_t sequence;
    struct feed_batch batches[FEED_BATCHES_MAX];
    size_t count;
    uint8_t open[64 * 1024];
    size_t open_bytes;
    uint32_t open_records;
};

void feed_init(struct feed *feed, uint16_t kind, uint64_t emitter_id, uint64_t boot_id, int64_t offset_ns);
void feed_fini(struct feed *feed);

/* The emitter's clock at a time of the reference clock; 0 stays 0. */
uint64_t feed_time(const struct feed *feed, uint64_t reference_ns);

/* Adds a record; fills kind and length. */
void feed_add(struct feed *feed, uint16_t kind, void *record);

/* Ends the batch that is being filled, sent at this time of the reference clock. */
void feed_send(struct feed *feed, uint64_t reference_ns);

/* Packs the messages of each batch, which are whole records, into runs, as the NIC side does. */
void feed_pack(struct feed *feed);

/* Hello, and a clock exchange with these delays (ns) there and back at this time of the reference clock. */
void feed_hello(struct feed *feed, uint64_t reference_ns, uint32_t window_ns);
void feed_exchange(struct feed *feed, uint64_t reference_ns, uint64_t there_ns, uint64_t back_ns);
void feed_last(struct feed *feed, uint64_t reference_ns);
