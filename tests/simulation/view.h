/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the NIC agent of a node sees: the flows at its ports, their messages and totals, the ports' own counters. One
 * thread. Times are true ones.
 */
#pragma once

#include "tests/simulation/agent.h"
#include "tests/simulation/fabric.h"

struct view;
struct sighting; /* a flow at one of the view's ports */

struct view *view_create(const struct setting *setting, struct agent *agent, const struct fabric *fabric,
                         uint32_t first_nic);
void view_destroy(struct view *view);
void view_begin(struct view *view, uint64_t now_ns);

/* GIDs of the model's NICs: IPv4. */
void view_address(uint8_t address[ADDRESS_BYTES], uint32_t nic);

struct view_flow {
    uint32_t from, to; /* NICs */
    uint32_t destination_qpn, source_qpn;
    enum vantage vantage;
};
/* Lives as long as the view. */
struct sighting *view_add(struct view *view, const struct view_flow *flow);

/* Both directions of one connection. */
void sighting_pair(struct sighting *one, struct sighting *other);

struct sighted {
    enum message_role role;
    uint64_t first_ns, last_ns; /* as seen here */
    uint32_t bytes, immediate, place;
    uint16_t flags;
    uint8_t opcode;
    const struct passage *passage;
};
/* NULL as sighting: not looked at. */
void sighting_message(struct sighting *sighting, const struct sighted *sighted, uint64_t now_ns);

/* Totals and counters that have changed; every 100 ms. */
void view_tick(struct view *view, uint64_t now_ns);
