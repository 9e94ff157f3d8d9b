/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads out of a function's machine code what it returns through a pointer: a member of a structure that it was given
 * (`*out = structure->member`), or a constant (`*out = 21801`). Code is outside bytes: whatever stands there, the
 * answer is a set of values, each of which occurs in such a pair of instructions. Pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MACHINE_CODE_VALUES_MAX 32

struct machine_code_values {
    uint32_t values[MACHINE_CODE_VALUES_MAX]; /* in the order of the code */
    size_t count;
};

/* Offsets of members, in bytes: 32-bit loads whose register is stored through another pointer soon after. */
void machine_code_members_x86(const uint8_t *code, size_t code_bytes, struct machine_code_values *members);
void machine_code_members_arm64(const uint8_t *code, size_t code_bytes, struct machine_code_values *members);

/* Constants of 32 bits that are stored through a pointer. */
void machine_code_constants_x86(const uint8_t *code, size_t code_bytes, struct machine_code_values *constants);
void machine_code_constants_arm64(const uint8_t *code, size_t code_bytes, struct machine_code_values *constants);
