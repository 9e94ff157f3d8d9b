/* SPDX-License-Identifier: BSD-2-Clause */
/* The machines of the model, with their agents: nodes of GPUs and as many NICs, the network between them. One thread.
 */
#pragma once

#include "tests/simulation/agenda.h"
#include "tests/simulation/fabric.h"
#include "tests/simulation/host.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/view.h"

struct world;

/* Opens the capture files in the setting's folder (none without a folder); NULL after logging. */
struct world *world_create(const struct setting *setting);

/* Returns the captures' first error. */
int world_destroy(struct world *world);

const struct setting *world_setting(const struct world *world);
struct agenda *world_agenda(const struct world *world);
struct fabric *world_fabric(const struct world *world);
/* NULL unless the setting asks for it. */
struct ledger *world_ledger(const struct world *world);
uint64_t world_now_ns(const struct world *world);
uint32_t world_ranks(const struct world *world);
uint64_t world_records(const struct world *world);

/* Of the rank's node. The host is NULL where no host side is wanted. */
struct view *world_view(const struct world *world, uint32_t rank);
struct host *world_host(const struct world *world, uint32_t rank);

/* The NIC that the rank's connections use: its own, or where that is missing its neighbour's. */
uint32_t world_nic(const struct world *world, uint32_t rank);

/* A new queue pair's number on a NIC. */
uint32_t world_qpn(struct world *world, uint32_t nic);

/* A new connection's name, from 1. */
uint32_t world_name(struct world *world);

/* Begins all streams; from then on the agents tick by themselves until the world ends. */
void world_begin(struct world *world);
void world_end(struct world *world);
