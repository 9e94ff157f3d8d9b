/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AArch64: a load of 32 bits, `ldr w, [x, #offset]` or `ldr w, [x, x]`, and soon after `str w, [x]`. A structure of a
 * megabyte needs more than the 12 bits of the offset: what was added to the base before (`add x, x, #part`), and
 * constants (`mov`, `movk`), are followed in a straight line. Invariant: a register of `added` is a structure's
 * address plus that; of `constant`, where `is_constant` has its bit, that number.
 */
#include "host/layout/machine_code_private.h"

#include <string.h>

#define STORE_WITHIN  6 /* instructions */
#define ZERO_REGISTER 31

struct registers {
    uint32_t added[32];
    uint32_t constant[32];
    uint32_t is_constant;
};

static uint32_t bits(uint32_t word, unsigned from, unsigned count)
{
    return word >> from & ((1U << count) - 1);
}

static bool is_store_of(uint32_t word, uint32_t number)
{
    return (word & 0xfffffc00) == 0xb9000000 && bits(word, 0, 5) == number; /* str w, [x] */
}

static bool is_stored(struct cursor code, uint32_t number)
{
    for (unsigned i = 0; i < STORE_WITHIN && cursor_left(&code) >= 4; i++)
        if (is_store_of(cursor_le32(&code), number))
            return true;
    return false;
}

static void set_constant(struct registers *registers, uint32_t number, uint32_t value)
{
    registers->constant[number] = value;
    registers->is_constant |= 1U << number;
}

/* Moves and additions. Every other instruction leaves the registers as they were: a guess that the asker checks. */
static void follow(struct registers *registers, uint32_t word)
{
    const uint32_t to = bits(word, 0, 5), from = bits(word, 5, 5);
    if ((word & 0x7f800000) == 0x11000000) { /* add, immediate */
        registers->added[to] = registers->added[from] + (bits(word, 10, 12) << ((word >> 22 & 1) != 0 ? 12 : 0));
        registers->is_constant &= ~(1U << to);
    } else if ((word & 0xffe0ffe0) == 0xaa0003e0) { /* mov x, x */
        registers->added[to] = registers->added[bits(word, 16, 5)];
    } else if ((word & 0x7fc00000) == 0x52800000) { /* movz, of the lower 32 bits */
        set_constant(registers, to, bits(word, 5, 16) << 16 * bits(word, 21, 1));
    } else if ((word & 0x7fc00000) == 0x72800000) { /* movk */
        const unsigned shift = 16 * bits(word, 21, 1);
        set_constant(registers, to, (registers->constant[to] & ~(0xffffU << shift)) | bits(word, 5, 16) << shift);
    }
}

/* The offset that a load reads at; false: it is no such load. */
static bool load_offset(const struct registers *registers, uint32_t word, uint32_t *offset)
{
    const uint32_t base = bits(word, 5, 5), index = bits(word, 16, 5);
    if ((word & 0xffc00000) == 0xb9400000) { /* ldr w, [x, #offset] */
        *offset = registers->added[base] + 4 * bits(word, 10, 12);
        return true;
    }
    if ((word & 0xffe0fc00) == 0xb8606800 && (registers->is_constant >> index & 1) != 0) { /* ldr w, [x, x] */
        *offset = registers->added[base] + registers->constant[index];
        return true;
    }
    return false;
}

void machine_code_members_arm64(const uint8_t *code, size_t code_bytes, struct machine_code_values *members)
{
    struct registers registers;
    struct cursor cursor;
    memset(&registers, 0, sizeof registers);
    members->count = 0;
    cursor_init(&cursor, code, code_bytes);
    while (cursor_left(&cursor) >= 4) {
        uint32_t offset;
        const uint32_t word = cursor_le32(&cursor);
        if (load_offset(&registers, word, &offset) && is_stored(cursor, bits(word, 0, 5)))
            machine_code_add(members, offset);
        follow(&registers, word);
    }
}

void machine_code_constants_arm64(const uint8_t *code, size_t code_bytes, struct machine_code_values *constants)
{
    struct registers registers;
    struct cursor cursor;
    memset(&registers, 0, sizeof registers);
    constants->count = 0;
    cursor_init(&cursor, code, code_bytes);
    while (cursor_left(&cursor) >= 4) {
        const uint32_t word = cursor_le32(&cursor);
        const uint32_t number = bits(word, 0, 5);
        if (is_store_of(word, number) && number != ZERO_REGISTER && (registers.is_constant >> number & 1) != 0)
            machine_code_add(constants, registers.constant[number]);
        follow(&registers, word);
    }
}
