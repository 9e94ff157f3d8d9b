/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each BTH opcode means, by the table in opcode.def. Constant data, any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Headers between BTH and payload, in the order in which they follow each other. */
enum opcode_extension {
    OPCODE_NONE = 0,
    OPCODE_RDETH = 1,
    OPCODE_DETH = 2,
    OPCODE_XRCETH = 4,
    OPCODE_FETH = 8,
    OPCODE_RETH = 16,
    OPCODE_ATOMICETH = 32,
    OPCODE_AETH = 64,
    OPCODE_ATOMICACKETH = 128,
    OPCODE_IMMDT = 256,
    OPCODE_IETH = 512,
};
#define OPCODE_EXTENSIONS_COUNT 10

enum opcode_position {
    OPCODE_FIRST = 1,
    OPCODE_MIDDLE = 2,
    OPCODE_LAST = 3,
    OPCODE_ONLY = 4,
};

enum opcode_kind {
    OPCODE_SEND = 1,
    OPCODE_WRITE,
    OPCODE_READ_REQUEST,
    OPCODE_READ_RESPONSE,
    OPCODE_ACKNOWLEDGE,
    OPCODE_ATOMIC,
    OPCODE_ATOMIC_WRITE,
    OPCODE_FLUSH,
    OPCODE_RESYNC,
    OPCODE_CONGESTION,
};

struct opcode {
    const char *name; /* NULL: no such opcode */
    uint16_t extensions;
    uint8_t extension_bytes;
    uint8_t position;
    uint8_t kind;
};

/* Whether frames of this transport number their packets for one sender only: not so for datagrams. */
static inline int opcode_is_connected(uint8_t number)
{
    unsigned transport = number >> 5;
    return transport == 0 || transport == 1 || transport == 5;
}

extern const struct opcode opcode_table[256];

/* The entry of an opcode, or NULL when it does not exist. */
static inline const struct opcode *opcode_find(uint8_t number)
{
    const struct opcode *opcode = &opcode_table[number];

    return opcode->kind == 0 ? NULL : opcode;
}

/* Bytes of one extension header. */
unsigned opcode_extension_bytes(enum opcode_extension extension);
