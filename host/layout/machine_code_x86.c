/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64: `mov disp32(%base),%register` (8B /r) and soon after `mov %register,(%out)` (89 /r); `movl $constant,(%out)`
 * (C7 /0). Instructions are looked for at every byte: their lengths are not decoded, so a value may also come from
 * the middle of another instruction. Who asks must check the values against each other.
 */
#include "host/layout/machine_code_private.h"

#define STORE_WITHIN_BYTES 24

enum { LOAD = 0x8b, STORE = 0x89, STORE_CONSTANT = 0xc7 };

struct operands {
    uint8_t opcode;
    uint8_t number; /* the register, or a part of the opcode */
    uint32_t displacement;
};

/* One instruction with a memory operand of base and displacement, with no index. False: it is none. */
static bool read_operands(struct cursor *code, struct operands *operands)
{
    uint8_t byte = cursor_u8(code);
    uint8_t extension = 0;
    if ((byte & 0xf0) == 0x40) { /* REX */
        if ((byte & 0x0a) != 0)  /* of 64 bits, or with an index */
            return false;
        extension = byte;
        byte = cursor_u8(code);
    }
    const uint8_t mode = cursor_u8(code);
    const unsigned form = mode >> 6, base = mode & 7;
    operands->opcode = byte;
    operands->number = (uint8_t)((mode >> 3 & 7) | ((extension & 4) != 0 ? 8 : 0));
    operands->displacement = 0;
    if (form == 3 || (form == 0 && base == 5)) /* a register; an address relative to the code */
        return false;
    if (base == 4 && cursor_u8(code) != 0x24) /* anything but the base alone */
        return false;
    if (form == 1)
        operands->displacement = cursor_u8(code);
    if (form == 2)
        operands->displacement = cursor_le32(code);
    return !code->failed;
}

static bool is_stored(struct cursor code, uint8_t number)
{
    for (size_t i = 0; i < STORE_WITHIN_BYTES && cursor_left(&code) > 0; i++) {
        struct cursor at = code;
        struct operands store;
        if (read_operands(&at, &store) && store.opcode == STORE && store.number == number && store.displacement == 0)
            return true;
        cursor_skip(&code, 1);
    }
    return false;
}

void machine_code_members_x86(const uint8_t *code, size_t code_bytes, struct machine_code_values *members)
{
    members->count = 0;
    for (size_t at = 0; at < code_bytes; at++) {
        struct cursor cursor;
        struct operands load;
        cursor_init(&cursor, code + at, code_bytes - at);
        if (read_operands(&cursor, &load) && load.opcode == LOAD && is_stored(cursor, load.number))
            machine_code_add(members, load.displacement);
    }
}

void machine_code_constants_x86(const uint8_t *code, size_t code_bytes, struct machine_code_values *constants)
{
    constants->count = 0;
    for (size_t at = 0; at < code_bytes; at++) {
        struct cursor cursor;
        struct operands store;
        cursor_init(&cursor, code + at, code_bytes - at);
        if (!read_operands(&cursor, &store) || store.opcode != STORE_CONSTANT || store.number != 0 ||
            store.displacement != 0)
            continue;
        const uint32_t value = cursor_le32(&cursor);
        if (!cursor.failed)
            machine_code_add(constants, value);
    }
}
