/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault that is put into the job, of which only the job knows: from its first step on, in every step. One a rank,
 * used by the rank's own thread.
 */
#pragma once

#include "job.h"

#include <stdint.h>

struct fault {
    const struct job *job;
    int world_rank;
    uint64_t sent_bytes;  /* what the rank sends in a step */
    uint64_t quiet_ns;    /* time from first enqueue to end, summed over the steps before the fault but the first */
    uint64_t quiet_steps; /* how many those are */
};

/* At the start of a step, before it computes. */
void fault_step_begin(struct fault *fault, int64_t step);

/* Between the computing and the first operation of a step. */
void fault_before_enqueue(struct fault *fault, int64_t step);

/* At the end of a step: how long it communicated. */
void fault_step_end(struct fault *fault, int64_t step, uint64_t communicating_ns);
