/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a C function's arguments lie at its entry: x86-64 System V and AArch64. Arguments count from 0; a stack
 * argument counts 8-byte slots from 0. For integers and pointers only.
 */
#pragma once

#include <asm/ptrace.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#if defined(__TARGET_ARCH_x86)

typedef struct pt_regs registers_t;
#define ARGUMENT_REGISTERS 6

static __always_inline __u64 argument(const registers_t *registers, int number)
{
    switch (number) {
    case 0:
        return registers->rdi;
    case 1:
        return registers->rsi;
    case 2:
        return registers->rdx;
    case 3:
        return registers->rcx;
    case 4:
        return registers->r8;
    default:
        return registers->r9;
    }
}

/* The return address lies below the arguments. */
static __always_inline __u64 argument_stack(const registers_t *registers)
{
    return registers->rsp + 8;
}

static __always_inline __u64 argument_result(const registers_t *registers)
{
    return registers->rax;
}

/* The call's place on the stack, at its entry or its return: what it runs lies below. */
static __always_inline __u64 argument_frame(const registers_t *registers)
{
    return registers->rsp;
}

#elif defined(__TARGET_ARCH_arm64)

typedef struct user_pt_regs registers_t;
#define ARGUMENT_REGISTERS 8

static __always_inline __u64 argument(const registers_t *registers, int number)
{
    return registers->regs[number];
}

static __always_inline __u64 argument_stack(const registers_t *registers)
{
    return registers->sp;
}

static __always_inline __u64 argument_result(const registers_t *registers)
{
    return registers->regs[0];
}

static __always_inline __u64 argument_frame(const registers_t *registers)
{
    return registers->sp;
}

#else
#error "qpscope's probes know x86-64 and AArch64"
#endif

/* The argument `number` of a function whose arguments are all integers or pointers. Reads the stack where it must. */
static __always_inline __u64 argument_any(const registers_t *registers, int number)
{
    if (number < ARGUMENT_REGISTERS)
        return argument(registers, number);
    __u64 value = 0;
    const __u64 place = argument_stack(registers) + 8 * (number - ARGUMENT_REGISTERS);
    bpf_probe_read_user(&value, sizeof value, (const void *)place);
    return value;
}

/* The arguments `number` and `number` + 1. A read of the stack is dear: there is one at most. */
static __always_inline void argument_pair(const registers_t *registers, int number, __u64 pair[2])
{
    if (number < ARGUMENT_REGISTERS) {
        pair[0] = argument(registers, number);
        pair[1] = argument_any(registers, number + 1);
        return;
    }
    const __u64 place = argument_stack(registers) + 8 * (number - ARGUMENT_REGISTERS);
    bpf_probe_read_user(pair, 2 * sizeof *pair, (const void *)place);
}
