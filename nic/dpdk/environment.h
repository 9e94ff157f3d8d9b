/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DPDK's environment (the EAL), once a process, and the memory that frames are received into (DPDK inside). The thread
 * that starts and ends the program.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nic/dpdk/specification.h"
#include "wire/option.h"

struct rte_mempool;

/* Starts it with the devices of `ports`; -errno, logged. */
int environment_start(const struct specification *ports, size_t ports_count, unsigned queues,
                      const struct option_list *eal_arguments);
void environment_end(void);

/* Buffers for one queue of each of the ports; NULL after logging. `part` and `queue` make the name. */
struct rte_mempool *environment_make_pool(const char *part, unsigned queue, const struct specification *ports,
                                          size_t ports_count, unsigned room_bytes);
void environment_free_pool(struct rte_mempool *pool);

/* What a buffer must hold so that each port's frames fit as they have to. */
unsigned environment_room_bytes(const struct specification *ports, size_t ports_count);
