/* SPDX-License-Identifier: BSD-2-Clause */
/* RoCEv2 frames put together byte by byte, as the specifications say, for the NIC side's tests. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DRAFT_BYTES_MAX 8192

struct draft {
    uint8_t bytes[DRAFT_BYTES_MAX];
    size_t length;
};

/* What goes into draft_roce; the rest is fixed: Ethernet, no VLAN, IPv4 10.0.0.source -> 10.0.0.destination. */
struct draft_frame {
    uint8_t source;
    uint8_t destination;
    uint8_t opcode;
    uint32_t qpn;
    uint32_t psn;
    const uint8_t *extensions;
    size_t extensions_bytes;
    size_t payload_bytes; /* padded to a multiple of 4 */
    uint8_t traffic_class;
};

void draft_roce(struct draft *draft, const struct draft_frame *frame);

/* RETH: address, key 0x1234, length. 16 bytes. */
void draft_reth(uint8_t reth[16], uint64_t address, uint32_t length);
