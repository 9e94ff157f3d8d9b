/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of variable length, seven bits a byte with the lowest first (LEB128); signed ones are folded into unsigned
 * ones (0, -1, 1, -2, ...). number_take is for memory that we wrote ourselves, cursor_number for bytes from outside.
 * Any thread.
 */
#pragma once

#include <stdint.h>

#include "wire/cursor.h"

#define NUMBER_BYTES_MAX 10

/* Returns where the next one goes. */
static inline uint8_t *number_put(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)value | 0x80;
    *at++ = (uint8_t)value;
    return at;
}

/* Returns where the next one lies. */
static inline const uint8_t *number_take(const uint8_t *at, uint64_t *value)
{
    unsigned shift = 0;

    *value = 0;
    do
        *value |= (uint64_t)(*at & 0x7f) << shift;
    while ((*at++ & 0x80) != 0 && (shift += 7) < 64);
    return at;
}

/* One that is longer than NUMBER_BYTES_MAX, or does not fit 64 bits, fails. */
static inline uint64_t cursor_number(struct cursor *cursor)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return cursor->failed ? 0 : value;
    }
    cursor->failed = true;
    return 0;
}

static inline uint64_t number_fold(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static inline int64_t number_unfold(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}
