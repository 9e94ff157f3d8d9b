/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the slots of a connection are dealt to its queue pairs, and the slots again out of what each of them carried. The
 * library goes round its queue pairs in the order in which it made them: each slot goes over the next `parts` of them,
 * in as many pieces, with the slot's whole size as immediate data. NCCL from 2.20 on takes one queue pair a slot, or
 * one of each device of a merged one; before, and with NCCL_IB_SPLIT_DATA_ON_QPS=1, all of them. One thread.
 */
#pragma once

#include "correlator/node/strand.h"

struct outage { /* pieces that begin in it may have been missed; both ends included */
    uint64_t from_ns;
    uint64_t to_ns;
};
typedef ARRAY(struct outage) outage_list;

typedef ARRAY(struct slot) slot_list;

struct rotation {
    struct strand *strands; /* in order of creation */
    size_t count;
    const outage_list *outages; /* in order, none touches another */
    bool seen_from_start;       /* the first piece of all is the first strand's */
};

/* How many strands carry each slot, a divisor of their number; 0: nothing tells. */
unsigned rotation_parts(const struct rotation *rotation);

/*
 * The slots in the order in which they were sent; within an outage in order of time. Pieces that belong to no whole
 * slot become slots that are not whole. Sets the pieces' places.
 */
void rotation_weave(slot_list *slots, const struct rotation *rotation, unsigned parts);
