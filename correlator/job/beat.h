/* SPDX-License-Identifier: BSD-2-Clause */
/* One rank's operations as beats of its pattern (pattern.h). Part of the job stage. */
#pragma once

#include "correlator/job/pattern.h"
#include "correlator/turn.h"

typedef ARRAY(uint64_t) wait_list;

/* When calls of the rank's threads that waited for its GPU returned, in order; none where its host does not tell them.
 */
void beat_waits(wait_list *waits, const struct job *job, int32_t rank);

/* Fills beats[0..count) from one rank's turns; communicators count by the order in which the rank first used them. */
void beat_fill(struct beat *beats, const struct job *job, const struct turn *turns, size_t count);

/*
 * How many of the turns belong together: behind them the rank uses none of the communicators that it used so far (the
 * job was started again, or goes on with another set of ranks).
 */
size_t beat_epoch(const struct job *job, const struct turn *turns, size_t count);
