/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the hosts did beside the data calls: markers of the GPU's runtime, and what kept threads from running. Beside
 * naming. Times in the reference clock, 0 = unknown; indices -1 = none. One thread.
 */
#pragma once

#include "correlator/naming/naming.h"

struct marker {
    int32_t process;
    int32_t rank; /* the job's, of the process; -1: none, or several */
    uint64_t entered_ns;
    struct record_marker record;
};

struct host_delay {
    int32_t process;
    int32_t rank; /* the job's, of the process, or of the communicator that the thread serves; -1: none, or several */
    uint64_t from_ns;
    uint64_t to_ns;
    struct record_host_delay record;
};

struct hosted {
    ARRAY(struct marker) markers;    /* by process, thread, time */
    ARRAY(struct host_delay) delays; /* by process, thread, sums before single stays, time */
    uint64_t orphans_count;          /* of processes that were never described */
};

void hosted_build(struct hosted *hosted, const struct naming *naming, const struct intake *intake,
                  const struct timeline *timeline);
void hosted_fini(struct hosted *hosted);
