/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a store of bounded size leaves out. First messages, windows and readings of old steps go, then old steps with
 * all that hangs on them (past_step has what is left of those), the last steps never. Times in nanoseconds of the
 * reference clock; 0 = nothing is left out. Pure; any thread.
 */
#pragma once

#include <stdbool.h>

#include "correlator/job/job.h"
#include "correlator/naming/naming.h"

struct limit {
    uint64_t size_bytes;      /* of the file with its log; 0 = none */
    uint64_t traffic_from_ns; /* messages, windows and readings that end before are left out */
    uint64_t steps_from_ns;   /* steps that start before are left out */
    uint64_t detail_from_ns;  /* what is of no step is left out when it ends before */
};

/* What the database itself may have: its log takes as much again while all is written anew, readers keep the rest. */
uint64_t limit_file_bytes(const struct limit *limit);

struct limit_span { /* of what messages tell */
    uint64_t first_ns;
    uint64_t last_ns;
};

struct limit_span limit_span_of(const struct naming *naming);

/* Leaves out more: half of the steps of what goes first; half of the time where there are no steps, or few. False when
 * only the last steps, or the last second, are left. */
bool limit_tighten(struct limit *limit, const struct job *job, struct limit_span span);

bool limit_has_traffic(const struct limit *limit, uint64_t end_ns);
bool limit_has_detail(const struct limit *limit, uint64_t end_ns);
bool limit_has_step(const struct limit *limit, const struct job *job, int32_t step); /* of -1: true */
bool limit_has_operation(const struct limit *limit, const struct job *job, int32_t operation);
