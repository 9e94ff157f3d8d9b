/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was posted to queue pairs while that was followed, beside what the sender's own port saw of it: which splits a
 * late message into late in the proxy (it was posted late), late in the NIC or PCIe (posted, and not yet on the wire)
 * and late on the wire. Times in the reference clock, 0 = unknown; indices -1 = none. One thread.
 */
#pragma once

#include "correlator/naming/naming.h"

struct posted { /* one list of requests */
    int32_t queue_pair;
    uint64_t posted_ns;
    uint64_t completed_ns; /* when a completion of it, or of a later one of its queue pair, was taken */
    uint64_t bound_ns;     /* of both, against the reference clock */
    int32_t message;       /* its first one, as naming_view gives it; the others follow it there */
    int32_t next;          /* of its queue pair */
    uint8_t status;        /* enum ibv_wc_status, where completed_ns is known */
    struct record_work record;
};

struct followed {
    size_t stream;
    uint64_t from_ns;
    uint64_t to_ns;
    struct record_followed record;
};

struct posting {
    ARRAY(struct posted) posts; /* by stream, in the order in which they were posted */
    ARRAY(struct followed) followed;
    uint64_t orphans_count; /* of queue pairs that were never described */
};

void posting_build(struct posting *posting, const struct naming *naming, const struct intake *intake,
                   const struct timeline *timeline);
void posting_fini(struct posting *posting);
