/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread has open in the collective library: groups, and the call that makes communicators. The map is
 * thread.bpf.c's.
 */
#pragma once

#include "bpf/ring.h"

#define AWAITED_MAX 16

#define MET_SETS 8 /* a power of 2 */

struct pending {
    __u64 address; /* where the library will store the ncclComm_t */
    __u64 entered_ns;
};

struct nccl_thread {
    __u32 depth; /* of groups */
    __u32 group;
    __u32 group_calls;
    __u32 in_call;  /* a data call outside of groups, whose return will be told */
    __u32 in_inner; /* and within it one that does not count */
    __u32 in_bcast; /* ncclBcast was entered, and runs ncclBroadcast inside */
    __u32 noted;    /* its process is known to have called the library */
    __u32 events;   /* of its data calls, for ring_submit_mostly */
    struct {
        __u64 pointer;
        __u64 since; /* communicators_forgotten */
    } met[MET_SETS]; /* communicators that this thread used, told by then */
    __u32 pending_count;
    __u32 ending;        /* the outermost ncclGroupEnd runs */
    __u32 call_count;    /* communicators of the init call that runs */
    __u32 nonblocking;   /* one of `pending` says so */
    struct pending call; /* the init call that runs outside of a group, or within one until it returns */
    __u64 bcast_communicator;
    __u64 bcast_buffer;
    __u32 awaited_count;
    __u32 awaited_kept;                  /* while they are gone through */
    struct pending awaited[AWAITED_MAX]; /* made without blocking: the ncclComm_t is stored when the job is done */
    struct pending pending[EVENT_PENDING_MAX];
};

struct nccl_thread_map {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct nccl_thread);
};

extern struct nccl_thread_map nccl_threads SEC(".maps");

static __always_inline struct nccl_thread *nccl_thread_of(struct task_struct *task, __u64 flags)
{
    return bpf_task_storage_get(&nccl_threads, (void *)task, NULL, flags);
}

static __always_inline struct nccl_thread *nccl_thread(__u64 flags)
{
    return nccl_thread_of(bpf_get_current_task_btf(), flags);
}
