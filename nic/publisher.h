/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends what the meter makes as records: ports, flows before anything of theirs, messages, totals that changed, losses;
 * and windows when a trigger on the control link asks for an interval. One thread, never waits.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "nic/meter.h"
#include "nic/source/source.h"
#include "wire/emitter.h"

struct publisher;

struct publisher_options {
    struct emitter_options emitter;
    const char *control_url;                  /* NULL = no triggers */
    uint64_t message_bytes_a_second;          /* above it messages are merged; 0 = never */
    const atomic_uint_fast64_t *message_rate; /* the same, as it is now; NULL = it stays */
};

/* -errno after logging. The meter must outlive the publisher. */
int publisher_open(struct publisher **publisher, const struct publisher_options *options, struct meter *meter);

/* Its stream, for emitter_fact and emitter_counters. */
struct emitter *publisher_emitter(const struct publisher *publisher);

/* The emitter's own clock now. */
uint64_t publisher_now_ns(const struct publisher *publisher);

/*
 * Where the host side's words on queue pairs, which come over the control link, are handed to beside the meter; NULL =
 * nowhere.
 */
void publisher_tell(struct publisher *publisher, struct source *source);

/* What the source can see: sent before all else, again to each new receiver, and whenever this is called. */
void publisher_set_source(struct publisher *publisher, const struct record_traffic_source *source);

/* The records' contents are copied; their kind and length are filled in. Messages may wait (merger.h). */
void publisher_add_message(struct publisher *publisher, struct record_message *message);
void publisher_add_window(struct publisher *publisher, struct record_window *window);
void publisher_add_loss(struct publisher *publisher, const struct source_loss *loss);
void publisher_add(struct publisher *publisher, enum record_kind kind, void *record);

/* Rises when the receiver may lack what was sent before: see emitter_epoch. */
uint64_t publisher_epoch(const struct publisher *publisher);

/*
 * Totals, triggers, heartbeat. Call often (at least every 50 ms); cheap when nothing is due. Everything of frames up to
 * `covered_ns` has been added: heartbeats say so much.
 */
void publisher_tick(struct publisher *publisher, uint64_t covered_ns);

/* There are no frames at present: what was asked for may go on for longer than publisher_tick lets it. */
void publisher_idle(struct publisher *publisher);

/* Sends the last of everything. Returns the first error of the capture file; a no-op on NULL. */
int publisher_close(struct publisher **publisher);
