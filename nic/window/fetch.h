/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests for an interval's detail, from the trigger to its end: waits until the interval is over, adds up what each
 * flow has of it, chooses the flows that come first by rank within the limit, and sends their records in small pieces
 * between bursts, with at most an eighth of the time, and only as fast as the link takes them. On the measuring thread;
 * nothing allocates after create.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/meter.h"
#include "wire/emitter.h"

#define FETCH_LIMIT_RECORDS 262144u /* of a request that names none: 10 MB */

struct fetch;

/* The meter and the emitter must outlive it. */
int fetch_create(struct fetch **fetch, struct meter *meter, struct emitter *emitter);
void fetch_destroy(struct fetch **fetch);

/* Takes a request; those that make no sense, and those that find no room, are counted. */
void fetch_ask(struct fetch *fetch, const struct record_trigger *trigger, uint64_t now_ns);

bool fetch_is_waiting(const struct fetch *fetch);

/*
 * Goes on for a short while. Every flow that there is must have been introduced on the emitter before. `is_idle`: there
 * is nothing else to do.
 */
void fetch_go_on(struct fetch *fetch, uint64_t now_ns, bool is_idle);
