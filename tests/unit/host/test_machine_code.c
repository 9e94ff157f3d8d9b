/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members and constants read out of code. The code was made by GCC and clang for `*out = structure->member` and
 * `*out = 22809`, and taken from their disassembly, except for what is named otherwise.
 */
#include "host/layout/machine_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

typedef void reader(const uint8_t *code, size_t code_bytes, struct machine_code_values *values);

struct example {
    reader *read;
    uint8_t code[40];
    size_t code_bytes;
    size_t count;
    uint32_t value; /* of the first */
};

#define CODE(...) .code = {__VA_ARGS__}, .code_bytes = sizeof((uint8_t[]){__VA_ARGS__})

static const struct example examples[] = {
    /* RCCL 5.4.3, ncclCommUserRank: mov 0x17b0(%r15),%eax; mov %eax,(%r14); xor %ebx,%ebx */
    {machine_code_members_x86, CODE(0x41, 0x8b, 0x87, 0xb0, 0x17, 0, 0, 0x41, 0x89, 0x06, 0x31, 0xdb), 1, 0x17b0},
    /* mov 0x1044d0(%rbx),%eax; mov %eax,(%r14) */
    {machine_code_members_x86, CODE(0x8b, 0x83, 0xd0, 0x44, 0x10, 0, 0x41, 0x89, 0x06), 1, 1066192},
    /* mov 0x1044d0(%r12),%edx; mov %edx,0x0(%rbp): a base that needs one more byte, an offset of 0 that is written */
    {machine_code_members_x86, CODE(0x41, 0x8b, 0x94, 0x24, 0xd0, 0x44, 0x10, 0, 0x89, 0x55, 0), 1, 1066192},
    /* mov 0x17b4(%rdi),%r8d; xor %eax,%eax; mov %r8d,(%rsi) */
    {machine_code_members_x86, CODE(0x44, 0x8b, 0x87, 0xb4, 0x17, 0, 0, 0x31, 0xc0, 0x44, 0x89, 0x06), 1, 0x17b4},
    /* another register is stored; a register is copied; nothing is stored; cut in the offset */
    {machine_code_members_x86, CODE(0x8b, 0x83, 0xd0, 0x44, 0x10, 0, 0x41, 0x89, 0x0e), 0, 0},
    {machine_code_members_x86, CODE(0x8b, 0xc3, 0x89, 0x06), 0, 0},
    {machine_code_members_x86, CODE(0x8b, 0x83, 0xd0, 0x44, 0x10, 0, 0xc3), 0, 0},
    {machine_code_members_x86, CODE(0x8b, 0x83, 0xd0, 0x44), 0, 0},
    /* movl $22809,(%rdi); movl $22809,(%r14) */
    {machine_code_constants_x86, CODE(0xc7, 0x07, 0x19, 0x59, 0, 0), 1, 22809},
    {machine_code_constants_x86, CODE(0x41, 0xc7, 0x06, 0x19, 0x59, 0, 0), 1, 22809},
    /* movl $22809,8(%rdi); cut */
    {machine_code_constants_x86, CODE(0xc7, 0x47, 8, 0x19, 0x59, 0, 0), 0, 0},
    {machine_code_constants_x86, CODE(0xc7, 0x07, 0x19, 0x59), 0, 0},
    /* mov w8, #17616; movk w8, #16, lsl #16; ldr w8, [x20, x8]; str w8, [x19] */
    {machine_code_members_arm64,
     CODE(0x08, 0x9a, 0x88, 0x52, 0x08, 0x02, 0xa0, 0x72, 0x88, 0x6a, 0x68, 0xb8, 0x68, 0x02, 0, 0xb9), 1, 1066192},
    /* the same in registers of 64 bits */
    {machine_code_members_arm64,
     CODE(0x09, 0x9a, 0x88, 0xd2, 0x09, 0x02, 0xa0, 0xf2, 0x08, 0x69, 0x69, 0xb8, 0x28, 0x01, 0, 0xb9), 1, 1066192},
    /* ldr w8, [x8, #6068]; mov w0, wzr; str w8, [x1] */
    {machine_code_members_arm64, CODE(0x08, 0xb5, 0x57, 0xb9, 0xe0, 0x03, 0x1f, 0x2a, 0x28, 0, 0, 0xb9), 1, 6068},
    /* by the manual: add x0, x0, #0x104, lsl #12; ldr w0, [x0, #1232]; str w0, [x19] */
    {machine_code_members_arm64, CODE(0x00, 0x10, 0x44, 0x91, 0x00, 0xd0, 0x44, 0xb9, 0x60, 0x02, 0, 0xb9), 1, 1066192},
    /* by the manual: the sum in another register: add x1, x0, #0x104, lsl #12; mov x2, x1; ldr w0, [x2, #1232]; str */
    {machine_code_members_arm64,
     CODE(0x01, 0x10, 0x44, 0x91, 0xe2, 0x03, 0x01, 0xaa, 0x40, 0xd0, 0x44, 0xb9, 0x60, 0x02, 0, 0xb9), 1, 1066192},
    /* another register is stored; cut in an instruction */
    {machine_code_members_arm64, CODE(0x08, 0xb5, 0x57, 0xb9, 0x29, 0, 0, 0xb9), 0, 0},
    {machine_code_members_arm64, CODE(0x08, 0xb5, 0x57, 0xb9, 0x28, 0, 0), 0, 0},
    /* mov w9, #22809; str w9, [x0]; and a store of a register with no constant */
    {machine_code_constants_arm64, CODE(0x29, 0x23, 0x8b, 0x52, 0x09, 0, 0, 0xb9), 1, 22809},
    {machine_code_constants_arm64, CODE(0x29, 0x23, 0x8b, 0x52, 0x0a, 0, 0, 0xb9), 0, 0},
};

static void read_out_of_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        struct machine_code_values values;
        const struct example *example = &examples[i];
        example->read(example->code, example->code_bytes, &values);
        if (values.count != example->count || (values.count > 0 && values.values[0] != example->value))
            fail_msg("example %zu: %zu values, the first %u", i, values.count, values.values[0]);
    }
}

/* More pairs than there is room for, each of another offset. */
static void more_than_there_is_room_for(void **state)
{
    (void)state;
    uint8_t code[8 * (MACHINE_CODE_VALUES_MAX + 5)];
    struct machine_code_values values;
    for (size_t i = 0; i < sizeof code / 8; i++) {
        const uint8_t pair[8] = {0x8b, 0x87, (uint8_t)(8 * i), 0x17, (uint8_t)(i >> 5), 0, 0x89, 0x06};
        memcpy(code + 8 * i, pair, sizeof pair);
    }
    machine_code_members_x86(code, sizeof code, &values);
    assert_int_equal(values.count, MACHINE_CODE_VALUES_MAX);
    assert_int_equal(values.values[0], 0x1700);
    assert_int_equal(values.values[1], 0x1708);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_out_of_code),
        cmocka_unit_test(more_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
