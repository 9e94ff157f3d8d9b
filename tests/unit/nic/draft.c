/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: lengths in the headers agree with the bytes that are there; the ICRC is four bytes of 0xcc. */
#include "tests/unit/nic/draft.h"

#include <assert.h>
#include <string.h>

static void put(struct draft *draft, const void *bytes, size_t length)
{
    assert(draft->length + length <= DRAFT_BYTES_MAX);
    memcpy(draft->bytes + draft->length, bytes, length);
    draft->length += length;
}

static void put_number(struct draft *draft, uint64_t number, size_t length)
{
    for (size_t i = length; i-- > 0;) {
        uint8_t byte = (uint8_t)(number >> (8 * i));
        put(draft, &byte, 1);
    }
}

static void put_fill(struct draft *draft, uint8_t byte, size_t length)
{
    for (size_t i = 0; i < length; i++)
        put(draft, &byte, 1);
}

void draft_roce(struct draft *draft, const struct draft_frame *frame)
{
    size_t pad = (4 - frame->payload_bytes % 4) % 4;
    size_t udp_bytes = 8 + 12 + frame->extensions_bytes + frame->payload_bytes + pad + 4;

    memset(draft, 0, sizeof *draft);
    put_fill(draft, 0x02, 12);
    put_number(draft, 0x0800, 2);
    put_number(draft, 0x45, 1);
    put_number(draft, frame->traffic_class, 1);
    put_number(draft, 20 + udp_bytes, 2);
    put_number(draft, 0, 4);
    put_number(draft, 64 << 8 | 17, 2);
    put_number(draft, 0, 2);
    put_number(draft, 0x0a000000u | frame->source, 4);
    put_number(draft, 0x0a000000u | frame->destination, 4);
    put_number(draft, 0xc123, 2);
    put_number(draft, 4791, 2);
    put_number(draft, udp_bytes, 2);
    put_number(draft, 0, 2);
    put_number(draft, frame->opcode, 1);
    put_number(draft, pad << 4, 1);
    put_number(draft, 0xffff, 2);
    put_number(draft, frame->qpn & 0xffffff, 4);
    put_number(draft, 0x80000000u | frame->psn, 4);
    if (frame->extensions_bytes != 0)
        put(draft, frame->extensions, frame->extensions_bytes);
    put_fill(draft, 0xaa, frame->payload_bytes);
    put_fill(draft, 0, pad);
    put_fill(draft, 0xcc, 4);
}

void draft_reth(uint8_t reth[16], uint64_t address, uint32_t length)
{
    for (int i = 0; i < 8; i++)
        reth[i] = (uint8_t)(address >> (56 - 8 * i));
    memcpy(reth + 8, "\0\0\x12\x34", 4);
    for (int i = 0; i < 4; i++)
        reth[12 + i] = (uint8_t)(length >> (24 - 8 * i));
}
