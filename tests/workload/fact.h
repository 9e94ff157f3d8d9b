/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the truth says of a kernel launch: its operations, each with its number on the communicator, its times, and the
 * payload that it handed to the network for each peer and channel. Facts are made when the launch is enqueued, fed by
 * the threads that emulate the kernel, and written when it is over. Operations of one communicator are numbered from
 * 0 in the order of their launches: collectives together, sends and receives by peer.
 */
#pragma once

#include "rccl_layout.h"

#include <stdint.h>

struct facts;

struct fact_times {
    uint64_t enqueued_ns, begun_ns, ended_ns, delay_us;
};

/* `comm`: the host's ncclComm_t; `channels`: a bit for each channel of the launch. NULL when no truth is wanted. */
struct facts *facts_create(const void *comm, const struct devcomm *devcomm, uint64_t channels,
                           const struct work *works);

/* Payload sent for the collective with this op_count (or, when `work` is of sends, to this peer). Any thread. */
void facts_sent(struct facts *facts, const struct work *work, int channel, int peer, uint64_t bytes, uint64_t pieces);

/* Writes one truth line for each operation and frees the facts; a no-op on NULL. */
void facts_write(struct facts *facts, const struct fact_times *times);
