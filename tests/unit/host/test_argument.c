/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the arguments of a function lie at its entry: argument.h, with registers and a stack that this test fills.
 * Built once for each architecture. Expected: the places that GCC (x86-64) and clang (AArch64) gave the collective
 * library's functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <asm/ptrace.h>
#include <linux/types.h>

#if defined(__TARGET_ARCH_arm64) && !defined(__aarch64__)
struct user_pt_regs { /* as in Linux's uapi for AArch64 */
    __u64 regs[31];
    __u64 sp;
    __u64 pc;
    __u64 pstate;
};
#endif

#include <bpf/bpf_helpers.h>

/* The probe's read of user memory: of this process's own. */
static long read_own(void *into, uint32_t bytes, const void *from)
{
    memcpy(into, from, bytes);
    return 0;
}
#define bpf_probe_read_user read_own
#include "bpf/argument.h"

#define IN_REGISTERS 0x1000 /* + number of the argument */
#define ON_STACK     0x2000 /* + number of the 8-byte slot */

static uint64_t stack[8];

static registers_t entry(void)
{
    registers_t registers;
    memset(&registers, 0, sizeof registers);
    for (uint64_t i = 0; i < 8; i++)
        stack[i] = ON_STACK + i;
#if defined(__TARGET_ARCH_x86)
    static uint64_t frame[9]; /* the return address comes first */
    memcpy(frame + 1, stack, sizeof stack);
    registers.rdi = IN_REGISTERS;
    registers.rsi = IN_REGISTERS + 1;
    registers.rdx = IN_REGISTERS + 2;
    registers.rcx = IN_REGISTERS + 3;
    registers.r8 = IN_REGISTERS + 4;
    registers.r9 = IN_REGISTERS + 5;
    registers.rsp = (uintptr_t)frame;
    registers.rax = 77;
#else
    for (uint64_t i = 0; i < 8; i++)
        registers.regs[i] = IN_REGISTERS + i;
    registers.sp = (uintptr_t)stack;
#endif
    return registers;
}

struct place {
    const char *what;
    int number;
    uint64_t x86;
    uint64_t arm64;
};

static const struct place places[] = {
    {"ncclCommSplit: new communicator", 3, IN_REGISTERS + 3, IN_REGISTERS + 3},
    {"ncclCommShrink: flags", 5, IN_REGISTERS + 5, IN_REGISTERS + 5},
    {"ncclCommGrow: configuration", 5, IN_REGISTERS + 5, IN_REGISTERS + 5},
    {"ncclAllReduce: communicator", 5, IN_REGISTERS + 5, IN_REGISTERS + 5},
    {"ncclAllReduce: stream", 6, ON_STACK, IN_REGISTERS + 6},
    {"ncclReduce: communicator", 6, ON_STACK, IN_REGISTERS + 6},
    {"ncclReduce: stream", 7, ON_STACK + 1, IN_REGISTERS + 7},
    {"ncclPutSignal: flags", 8, ON_STACK + 2, ON_STACK},
    {"ncclPutSignal: communicator", 9, ON_STACK + 3, ON_STACK + 1},
    {"ncclPutSignal: stream", 10, ON_STACK + 4, ON_STACK + 2},
};

static void places_of_arguments(void **state)
{
    (void)state;
    const registers_t registers = entry();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
#if defined(__TARGET_ARCH_x86)
        const uint64_t expected = places[i].x86;
#else
        const uint64_t expected = places[i].arm64;
#endif
        if (argument_any(&registers, places[i].number) != expected)
            fail_msg("%s: 0x%llx", places[i].what, (unsigned long long)argument_any(&registers, places[i].number));
    }
}

/* ncclCommInitRank passes the id's 128 bytes by value: on the stack, or by a pointer in the third register. */
static void the_id_and_what_follows(void **state)
{
    (void)state;
    const registers_t registers = entry();
    uint64_t first;
#if defined(__TARGET_ARCH_x86)
    memcpy(&first, (const void *)(uintptr_t)argument_stack(&registers), sizeof first);
    assert_int_equal(first, ON_STACK);
    assert_int_equal(argument_result(&registers), 77);
#else
    memcpy(&first, (const void *)(uintptr_t)argument_stack(&registers), sizeof first);
    assert_int_equal(first, ON_STACK);
    assert_int_equal(argument(&registers, 2), IN_REGISTERS + 2);
    assert_int_equal(argument_result(&registers), IN_REGISTERS);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_arguments),
        cmocka_unit_test(the_id_and_what_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
