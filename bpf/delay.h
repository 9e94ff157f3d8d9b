/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What kept a thread of a job from running: noted at the thread itself, so that all other threads cost one look at
 * theirs, which is not there. The map is thread.bpf.c's.
 */
#pragma once

#include "bpf/ring.h"

enum delay_state {
    DELAY_RUNNING,
    DELAY_RUNNABLE, /* waits for a CPU */
    DELAY_SLEEPING,
    DELAY_WAITING, /* for a block device */
};

struct delay {
    __u64 from_ns; /* since when is added up */
    __u64 since_ns;
    __u64 off_ns; /* when it left the CPU; 0 = it is on it, or that was not seen */
    __u64 sleep_ns;
    __u64 run_queue_ns;
    __u64 wait_ns;
    __u64 run_queue_longest_ns;
    __u64 sleep_before_ns; /* the sums as they stood at off_ns */
    __u64 run_queue_before_ns;
    __u64 wait_before_ns;
    __u64 sent_bytes;   /* over TCP */
    __u64 minor_faults; /* as they stood at from_ns */
    __u64 major_faults;
    __u64 socket;          /* that it sent on last */
    __u32 retransmissions; /* of TCP, on sockets that it sent on */
    __u32 switches;
    __u32 state;
    __u32 role;  /* enum event_delay_role */
    __u32 epoch; /* delay_epoch of schedule.bpf.c when it was last looked at */
    __u32 reserved;
};

struct delay_map {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct delay);
};

extern struct delay_map delays SEC(".maps");

/* Looked for only where there is any note: most threads of a machine have none, and cost no call of a helper. */
static __always_inline struct delay *delay_of(struct task_struct *task)
{
    if (bpf_core_field_exists(task->bpf_storage) && task->bpf_storage == NULL)
        return NULL;
    return bpf_task_storage_get(&delays, (void *)task, NULL, 0);
}

static __always_inline void delay_follow(struct task_struct *task, __u32 role)
{
    struct delay *delay = bpf_task_storage_get(&delays, (void *)task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (delay == NULL)
        return;
    delay->role |= role;
    if (delay->from_ns != 0)
        return;
    delay->from_ns = bpf_ktime_get_ns();
    delay->since_ns = delay->from_ns;
    delay->minor_faults = task->min_flt;
    delay->major_faults = task->maj_flt;
}
