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
    unsigned long min_flt;
    unsigned long maj_flt;
    unsigned int in_iowait : 1;
    void *bpf_storage; /* NULL while no program keeps a note of the thread */
};

struct super_block {
    __u32 s_dev;
};

struct inode {
    struct super_block *i_sb;
    unsigned long i_ino;
};

struct file {
    struct inode *f_inode;
};

struct vm_area_struct {
    struct file *vm_file;
};

struct sock_common {
    unsigned short skc_family;
};

struct sock {
    struct sock_common __sk_common;
    __u16 sk_protocol;
};

struct msghdr;

#pragma clang attribute pop
