/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A communicator: ranks in rings over channels, a tree, and pairs as they are first used. It makes the kernels of its
 * operations. One thread.
 */
#pragma once

#include "tests/simulation/kernel.h"
#include "tests/simulation/world.h"

struct group;

#define GROUP_ROOT 0u /* of Broadcasts */

/* `ranks` of the world, by node and then GPU; copied. Told to the hosts. */
struct group *group_create(struct world *world, const uint32_t *ranks, uint32_t count, uint32_t number);
void group_destroy(struct group *group);

uint32_t group_count(const struct group *group);
/* The rank in the group; -1: none. */
int32_t group_rank(const struct group *group, uint32_t world_rank);
uint32_t group_world_rank(const struct group *group, uint32_t rank);
uint64_t group_identity(const struct group *group);
/* What the host agent of the rank calls it. */
uint32_t group_number(const struct group *group, uint32_t rank);

struct group_exchange { /* one send or receive of a group of calls */
    uint32_t peer;
    bool receives;
    uint64_t bytes;
};
struct group_call {
    enum operation_kind operation;
    uint64_t bytes; /* AllReduce, Broadcast: of all; AllGather, ReduceScatter: of a rank's part */
    bool tree;
    const struct group_exchange *exchanges; /* SEND: those of one group of calls */
    uint32_t exchanges_count;
};
/* Puts the rank's lanes into its kernel. */
void group_add_lanes(struct group *group, uint32_t rank, const struct group_call *call, struct kernel *kernel);

/* The n-th collective, or n-th send or receive between two ranks, counted by this call. */
uint32_t group_count_collective(struct group *group, uint32_t rank);
uint32_t group_count_exchange(struct group *group, uint32_t rank, const struct group_exchange *exchange);

/* What went over the ring connection that leaves the rank, for checks. */
const struct connection_sum *group_ring_sum(const struct group *group, uint32_t rank, uint32_t channel);
