/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a node stage sends to its job stage: its agents' batches without messages, windows and calls, which stay at the
 * node (their numbers stay, so that what is lost on the way is seen), and a stream of its own with one compact record a
 * rank and operation, once it is over or has been going on for a second, and again when it has changed. Times of these
 * are of the reference clock that its agents exchange with, the job stage's; each batch says which one that is.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct analysis;
struct relay;

struct relay_options {
    uint64_t emitter_id; /* of this node, the same at each start */
    uint64_t boot_id;    /* of this start */
    void (*send)(void *context, const void *batch, size_t length_bytes);
    void *context;
};

struct relay *relay_create(const struct relay_options *options);

/* An agent's batch, as it came. */
void relay_batch(struct relay *relay, const void *batch, size_t length_bytes);

/* What the last run of the analysis has found; `all`: also what is not over yet. */
void relay_operations(struct relay *relay, const struct analysis *analysis, bool all);

/* The job stage may be another one: its own stream's greeting and all operations are told again. */
void relay_begin_anew(struct relay *relay);

/* A no-op on NULL. */
void relay_destroy(struct relay **relay);
