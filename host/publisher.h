/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where records go: onto the emitter's link and capture file, and with `json` as one JSON object a line on stdout.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/emitter.h"

struct publisher;

struct publisher_options {
    struct emitter_options emitter;
    bool json;
};

int publisher_open(struct publisher **publisher, const struct publisher_options *options);

/* The stream, for emitter_fact and emitter_counters. */
struct emitter *publisher_emitter(const struct publisher *publisher);

/* As emitter_add. */
void publisher_add(struct publisher *publisher, enum record_kind kind, void *record);

/* The clock of the records, now. */
uint64_t publisher_now_ns(const struct publisher *publisher);

/* As emitter_cover. */
void publisher_cover(struct publisher *publisher, uint64_t until_ns);

/* As emitter_epoch. */
uint64_t publisher_epoch(const struct publisher *publisher);

/* Call at least every 50 ms. Returns -EPIPE (or another -errno, logged) once stdout takes no more JSON. */
int publisher_tick(struct publisher *publisher);

int publisher_close(struct publisher **publisher);
