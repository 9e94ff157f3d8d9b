/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of the machine's RDMA devices, as sysfs lists them, and what becomes of them. What was told once is told
 * again when its state is another one, when it has gone, and when somebody may not have heard it. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/record.h"

#define MACHINE_PORTS_MAX 64

struct machine_ports {
    const char *root; /* "", or a tree with a sys of the same shape */
    struct record_rdma_port known[MACHINE_PORTS_MAX];
    size_t count;       /* of known; those that have gone stay in it */
    uint64_t looked_ns; /* 0 = not yet */
};

typedef void machine_port_tell(void *context, const struct record_rdma_port *port);

/* Looks at all ports, and tells those that changed, or all. Ports beyond MACHINE_PORTS_MAX are counted, not told. */
void machine_ports_look(struct machine_ports *ports, uint64_t now_ns, bool all, machine_port_tell *tell, void *context);
