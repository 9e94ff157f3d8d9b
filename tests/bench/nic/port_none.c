/* SPDX-License-Identifier: BSD-2-Clause */
/* Without DPDK: the buffers, one behind the other. Invariant: `next` is the first buffer that was not handed out. */
#include <errno.h>
#include <stdlib.h>

#include "tests/bench/nic/port.h"

struct port {
    const struct traffic *traffic;
    size_t next;
};

int port_start(void)
{
    return 0;
}

bool port_has_dpdk(void)
{
    return false;
}

int port_create(struct port **port, const struct traffic *traffic, unsigned number)
{
    struct port *made = calloc(1, sizeof *made);

    (void)number;
    if (made == NULL)
        return -ENOMEM;
    made->traffic = traffic;
    *port = made;
    return 0;
}

void port_destroy(struct port **port)
{
    free(*port);
    *port = NULL;
}

void port_fill(struct port *port)
{
    port->next = 0;
}

unsigned port_receive(struct port *port, struct source_frame frames[SOURCE_BURST_FRAMES])
{
    unsigned count = 0;

    for (; count < SOURCE_BURST_FRAMES && port->next < port->traffic->buffers_count; count++, port->next++)
        frames[count] = (struct source_frame){.bytes = traffic_frame(port->traffic, port->next),
                                              .captured_bytes = TRAFFIC_CAPTURED_BYTES,
                                              .original_bytes = traffic_frame_bytes(port->traffic),
                                              .port = 1};
    return count;
}

void port_release(struct port *port)
{
    (void)port;
}
