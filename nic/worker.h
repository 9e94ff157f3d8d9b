/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One reader of frames with all that is its own: source, meter, counters, and the stream that it sends. Several work
 * side by side, one a receive queue, and share nothing; the correlator takes their streams together. One thread each.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "nic/counting/counting.h"
#include "nic/exposition/board.h"
#include "nic/meter.h"
#include "nic/publisher.h"
#include "nic/source/source.h"
#include "nic/window/watch.h"

struct worker {
    struct tallies tallies;
    struct counter_table counters;
    struct meter meter;
    struct source *source;
    struct publisher *publisher; /* NULL: only printed */
    struct board *board;         /* NULL: nobody watches */
    struct counting counting;
    struct watch *watch; /* NULL: of a file */
    uint32_t settled;    /* the next flow to settle; 0 = none is due */
    uint64_t settled_ns; /* for when */
};

/* Takes over the source, which is open. -errno after logging; then worker_close is to be called all the same. */
int worker_open(struct worker *worker, struct source *source, const struct meter_options *options);

/*
 * The stream; `options` but for the counters and the tap, which are the worker's own. `is_watched`: a board is kept of
 * it. -errno after logging.
 */
int worker_publish(struct worker *worker, const struct publisher_options *options, bool is_watched);

/* Hands the messages that have ended to the publisher, and to `visit` when it is not NULL. */
typedef void (*worker_message)(void *context, const struct flow *flow, const struct record_message *message);
void worker_take_messages(struct worker *worker, worker_message visit, void *context);

/* Reads, measures and sends until *stop is set or the source cannot go on: -errno then, else 0. */
int worker_run(struct worker *worker, const atomic_bool *stop);

/* Sends the last of everything. Returns the first error of its capture file. */
int worker_close(struct worker *worker);
