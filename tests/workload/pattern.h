/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of a training step, with their buffers and the results that they must have. One pattern a rank, used
 * by the rank's own thread.
 */
#pragma once

#include "communicator.h"
#include "job.h"

#include <stdint.h>

struct pattern;

/* What the truth says about the calls of a step, kept until the step is over so that noting costs it nothing. */
struct call {
    const char *operation; /* as the library names it: AllReduce, Send, ... */
    const struct communicator *communicator;
    uint64_t sequence; /* of collectives on the communicator; of sends or receives with this peer on it */
    int peer;          /* -1 for collectives */
    int root;          /* -1 for all but broadcasts */
    uint64_t count;    /* floats, as passed to the library */
    uint64_t called_ns, returned_ns;
};

struct pattern *pattern_create(const struct job *job, struct communicators *communicators);
void pattern_destroy(struct pattern *pattern);

/* How many operations a step has for this rank; a rank without a partner leaves out those of pairs. */
int pattern_length(const struct pattern *pattern);

/* Which share of the step's computing comes before an operation. */
int pattern_compute_percent(const struct pattern *pattern, int index);

/* Enqueues an operation on the stream. */
void pattern_enqueue(struct pattern *pattern, int index, void *stream);

/* Notes all calls since the last time in the truth file. */
void pattern_note(struct pattern *pattern, int64_t step);

/* Sets every input to what `step` says, and forgets the results. */
void pattern_fill(struct pattern *pattern, int64_t step);

/* Compares every result with what `step` must give, notes it in the truth, returns how many values were wrong. */
uint64_t pattern_check(const struct pattern *pattern, int64_t step);

/* Payload that this rank sends to others in a step, on the library's ring. */
uint64_t pattern_sent_bytes(const struct pattern *pattern);
