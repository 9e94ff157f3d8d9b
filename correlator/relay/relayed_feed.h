/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What node stages told, kept from one run of the analysis to the next: only batches that came since are read. Where
 * the past itself changes - a batch that comes late, details that were cut out of memory, another reference clock - it
 * begins anew. One thread.
 */
#pragma once

#include "correlator/intake/timeline.h"
#include "correlator/job/segment.h"

struct relayed_feed;

struct relayed_feed *relayed_feed_create(void);
void relayed_feed_destroy(struct relayed_feed **feed); /* a no-op on NULL */

/* The next relayed_feed_take reads all batches. */
void relayed_feed_forget(struct relayed_feed *feed);

/* Reads what is new. */
void relayed_feed_take(struct relayed_feed *feed, const struct intake *intake, const struct timeline *timeline);

/* What is at hand, in order; valid until the next call. */
struct segment_records relayed_feed_records(const struct relayed_feed *feed);

/* Records before this position are not needed any more. */
void relayed_feed_drop(struct relayed_feed *feed, size_t position);

uint64_t relayed_feed_another_clock(const struct relayed_feed *feed); /* of another reference clock: left out */
uint64_t relayed_feed_implausible(const struct relayed_feed *feed);   /* no node stage would say so: left out */
