/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the benchmark receives from: a DPDK ring port that is filled with the traffic's buffers before each turn, or,
 * without DPDK, the buffers themselves. Each thread has its own. DPDK inside port_dpdk.c; nowhere else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/nic/traffic.h"

struct port;

/* Once, before the first port. -errno after logging. */
int port_start(void);
bool port_has_dpdk(void);

int port_create(struct port **port, const struct traffic *traffic, unsigned number);
void port_destroy(struct port **port);

/* All buffers lie in the port again, in their order. */
void port_fill(struct port *port);

/* The next burst; 0 at the end. Its frames are valid until port_release. */
unsigned port_receive(struct port *port, struct source_frame frames[SOURCE_BURST_FRAMES]);
void port_release(struct port *port);
