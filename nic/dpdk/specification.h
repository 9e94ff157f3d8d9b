/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One --port of the command line taken apart: "DEVICE[,ARGUMENT...][@ADDRESS]". No DPDK inside. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

#define SPECIFICATION_ARGUMENT_BYTES 256

struct specification {
    char device[64];    /* DPDK's name */
    char interface[64]; /* the kernel's, where the port is one; else empty */
    uint8_t address[ADDRESS_BYTES];
    bool is_ring;         /* net_af_packet: copies whole frames, stamps none, keeps no count of what it dropped */
    bool is_snapped;      /* net_pcap on an interface, see kernel_ring.h */
    unsigned descriptors; /* of a receive queue, wished for */
    unsigned frame_bytes; /* what one buffer must hold in one piece; 0 = no more than the headers */
    char argument[SPECIFICATION_ARGUMENT_BYTES]; /* what the EAL must be told, so that there is such a port; or empty */
};

/* `queues` receive queues are wanted of it. -EINVAL or -ENAMETOOLONG, logged. */
int specification_read(struct specification *specification, const char *text, unsigned queues);
