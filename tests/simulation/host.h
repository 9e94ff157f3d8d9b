/* SPDX-License-Identifier: BSD-2-Clause */
/* What the host agent of a node tells: processes, communicators, queue pairs, calls, delays. Times are true. One
 * thread. */
#pragma once

#include "tests/simulation/agent.h"
#include "tests/simulation/setting.h"

struct host;

struct host *host_create(const struct setting *setting, struct agent *agent, uint32_t first_rank);
void host_destroy(struct host *host);
void host_begin(struct host *host, uint64_t now_ns);

struct host_member { /* a rank of a communicator */
    uint32_t world_rank, rank, ranks_count;
    uint64_t identity;
    uint64_t created_ns, ready_ns;
};
/* Returns its number with this agent. */
uint32_t host_add_communicator(struct host *host, const struct host_member *member, uint64_t now_ns);

struct host_queue_pair {
    uint32_t world_rank, communicator, qpn, remote_qpn, nic, remote_nic, channel;
    int32_t far_rank;
    int32_t origin_rank; /* whose data it sends, where that is not its owner's; -1: its owner's */
    enum queue_pair_side side;
    uint64_t connection;
};
void host_add_queue_pair(struct host *host, const struct host_queue_pair *pair, uint64_t now_ns);

/* `call` with true times, its header's source the communicator. */
void host_add_call(struct host *host, struct record_call *call, uint64_t now_ns);

/* The rank's thread waited for its GPU. */
void host_add_wait(struct host *host, uint32_t world_rank, uint64_t from_ns, uint64_t to_ns);

enum host_delay_cause { DELAY_CPU, DELAY_IO, DELAY_MEMORY };

/* The rank's thread (its proxy's) was kept for so long, until now: it is told with the next sums. */
void host_delay(struct host *host, uint32_t world_rank, bool proxy, enum host_delay_cause cause, uint64_t delay_ns);

/* The threads' sums; every 100 ms. */
void host_tick(struct host *host, uint64_t now_ns);
