/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel structures that the probes read, with only the fields that they read. libbpf places the fields by the
 * running kernel's BTF at load time (CO-RE), so a build needs no kernel of its own.
 */
#pragma once

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live; /* threads that have not ended */
};

struct task_struct {
    int pid;
    int tgid;
    struct task_struct *group_leader;
    __u64 start_time; /* CLOCK_MONOTONIC */
    struct signal_struct *signal;
};

#pragma clang attribute pop
