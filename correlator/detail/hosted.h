/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the hosts did beside the data calls: markers of the GPU's runtime, what kept threads from running, and by which
 * way a rank's data went. Beside naming; uses the job's steps. Times in the reference clock, 0 = unknown; indices -1 =
 * none. One thread.
 */
#pragma once

#include "correlator/job/job.h"
#include "correlator/naming/naming.h"

struct marker {
    int32_t process;
    uint64_t entered_ns;
    struct record_marker record;
};

struct host_delay {
    int32_t process;
    int32_t rank; /* the job's, of the process; -1: none, or several */
    uint64_t from_ns;
    uint64_t to_ns;
    struct record_host_delay record;
};

enum transport_kind {
    TRANSPORT_NONE, /* nothing was seen to be sent */
    TRANSPORT_RDMA,
    TRANSPORT_SOCKETS, /* no queue pair carried anything, and the library's threads sent enough over TCP */
    TRANSPORT_UNKNOWN, /* they sent something over TCP, but not enough */
};

struct transport { /* of one rank, in one step or in all that was seen of it */
    int32_t rank;
    int32_t step; /* -1 = in all */
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t asked_bytes; /* buffers of its data calls */
    uint64_t rdma_bytes;  /* payload that its queue pairs sent for them */
    uint64_t tcp_bytes;   /* that the library's threads in its process sent; a sum's share of the time is taken */
    enum transport_kind kind;
};

struct hosted {
    ARRAY(struct marker) markers;
    ARRAY(struct host_delay) delays;
    ARRAY(struct transport) transports; /* by rank; each rank's whole first, then its steps */
    uint64_t orphans_count;             /* of processes that were never described */
};

void hosted_build(struct hosted *hosted, const struct naming *naming, const struct intake *intake,
                  const struct timeline *timeline, const struct job *job);
void hosted_fini(struct hosted *hosted);
