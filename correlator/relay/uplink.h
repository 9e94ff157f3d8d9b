/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node stage's link to its job stage: sends what relay.h makes, in order, as soon as the link takes it. What waits is
 * bounded: above that the newest is dropped, and the job stage sees it by the numbers of batches. When the job stage
 * comes (back), all that is held is sent again, since it may be another one; what it has, it knows by these numbers.
 * All functions are no-ops on NULL. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct analysis;
struct uplink;

struct uplink_options {
    const char *url;
    const char *key_file; /* NULL = none */
    uint64_t boot_id;     /* of this process */
};

/* 0 or -errno, logged. */
int uplink_open(struct uplink **uplink, const struct uplink_options *options);

/* An agent's batch, as it came. */
void uplink_batch(struct uplink *uplink, const void *batch, size_t length_bytes);

/* What the last run of the analysis has found; `all`: also what is not over yet. */
void uplink_operations(struct uplink *uplink, const struct analysis *analysis, bool all);

/* Sends what waits, as far as the link takes it. Returns whether some still waits. */
bool uplink_drain(struct uplink *uplink);

/* Whether the job stage has come (back) since operations were told: then it wants them. */
bool uplink_is_new(const struct uplink *uplink);

/* Waits up to half a second for the link, closes. */
void uplink_close(struct uplink **uplink);
