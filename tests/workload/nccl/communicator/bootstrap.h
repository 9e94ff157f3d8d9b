/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the ranks of a communicator find each other: a root, a thread in the process that made the id, gives each rank
 * all addresses; then the ranks stand in a ring of TCP connections and reach each other by address. A child
 * communicator meets through its parent. Each call is made by one thread of a rank at a time; errors are those of
 * tcp.h.
 */
#pragma once

#include "nccl.h"

#include <stdint.h>

struct bootstrap;

/* Fills the id and starts its root, which serves one communicator. */
int bootstrap_root_start(ncclUniqueId *id);

int bootstrap_create(struct bootstrap **bootstrap, const ncclUniqueId *id, int rank, int ranks,
                     const volatile uint32_t *abort_flag);

/* A communicator of some ranks of another one: `members` are their numbers there, in the order of their new ranks. */
int bootstrap_create_child(struct bootstrap **child, struct bootstrap *parent, const int *members, int ranks, int rank,
                           const volatile uint32_t *abort_flag);

void bootstrap_destroy(struct bootstrap *bootstrap);

/* `all` has room for one piece of `size_bytes` for each rank; the own one is there already. */
int bootstrap_all_gather(struct bootstrap *bootstrap, void *all, size_t size_bytes);
int bootstrap_barrier(struct bootstrap *bootstrap);

/* A message from rank to rank; a receiver waits for the one with this tag. */
int bootstrap_send(struct bootstrap *bootstrap, int peer, uint32_t tag, const void *bytes, size_t length_bytes);
int bootstrap_receive(struct bootstrap *bootstrap, int peer, uint32_t tag, void *bytes, size_t length_bytes);
