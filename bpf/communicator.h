/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library itself notes of a communicator, read from its structure: rank, ranks, device and the hash that is
 * the same on every rank. Where they lie user space finds in the very file (host/layout.h). Each communicator is told
 * once, when it is ready or when it is first used. The maps are nccl.bpf.c's.
 */
#pragma once

#include "bpf/argument.h"
#include "bpf/group.h"
#include "bpf/ring.h"

#define LAYOUTS_MAX 1024
#define RANKS_MAX   (1 << 20)

/* Rank, number of ranks and device lie side by side. */
struct communicator_layout {
    __u32 rank_bytes; /* offset of the rank; 0 = not known */
    __u32 has_hash;   /* the 8 bytes before it are the hash */
};

/* By the library's number, which is its probes' cookie. */
struct communicator_layout_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, LAYOUTS_MAX);
    __type(key, __u32);
    __type(value, struct communicator_layout);
};

struct communicator_key {
    __u64 pointer;
    __u64 tgid;
};

/* Communicators that were told -> when their process started. */
struct communicator_told_map {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct communicator_key);
    __type(value, __u64);
};

extern struct communicator_layout_map communicator_layouts SEC(".maps");
extern struct communicator_told_map communicators_told SEC(".maps");
extern __u64 communicators_forgotten; /* rises when an ncclComm_t may come to mean another communicator */

static __always_inline __u64 process_started_ns(void)
{
    const struct task_struct *task = bpf_get_current_task_btf();
    return task->group_leader->start_time;
}

static __always_inline struct communicator_key communicator_key(__u64 pointer)
{
    return (struct communicator_key){.pointer = pointer, .tgid = bpf_get_current_pid_tgid() >> 32};
}

struct communicator_fields {
    __u64 hash;
    __s32 rank;
    __s32 ranks_count;
    __s32 cuda_device;
    __u32 more;
};

/* False while it is not ready, or where its layout is not known. */
static __always_inline bool communicator_read(void *context, __u64 pointer, struct communicator_fields *fields)
{
    const __u32 library = bpf_get_attach_cookie(context);
    const struct communicator_layout *layout = bpf_map_lookup_elem(&communicator_layouts, &library);
    if (layout == NULL || layout->rank_bytes < 8)
        return false;
    if (bpf_probe_read_user(fields, sizeof *fields, (const void *)(pointer + layout->rank_bytes - 8)) != 0)
        return false;
    if (layout->has_hash == 0)
        fields->hash = 0;
    return (layout->has_hash == 0 || fields->hash != 0) && fields->ranks_count > 0 &&
           fields->ranks_count <= RANKS_MAX && fields->rank >= 0 && fields->rank < fields->ranks_count;
}

/* Tells what is noted of a communicator that may be new. */
static __always_inline void communicator_tell(void *context, __u64 pointer)
{
    struct communicator_fields fields;
    if (!communicator_read(context, pointer, &fields))
        return;
    const struct communicator_key key = communicator_key(pointer);
    const __u64 started_ns = process_started_ns();
    struct event_communicator *event = ring_reserve(EVENT_COMMUNICATOR, sizeof *event);
    if (event == NULL)
        return;
    event->pointer = pointer;
    event->hash = fields.hash;
    event->rank = fields.rank;
    event->ranks_count = fields.ranks_count;
    event->cuda_device = fields.cuda_device;
    event->reserved = 0;
    ring_submit_lazily(event);
    bpf_map_update_elem(&communicators_told, &key, &started_ns, BPF_ANY);
}

static __always_inline void emit_pointer(__u64 entered_ns, __u64 pointer, __u32 index)
{
    struct event_pointer *event = ring_reserve(EVENT_POINTER, sizeof *event);
    if (event == NULL)
        return;
    event->entered_ns = entered_ns;
    event->pointer = pointer;
    event->index = index;
    event->reserved = 0;
    ring_submit(event);
}

/* The call that makes it has returned; `working`: its job goes on behind it. */
static __always_inline void communicator_made(void *context, struct nccl_thread *thread, const struct pending *made,
                                              __u32 index, bool working)
{
    __u64 pointer = 0;
    ring_read(&pointer, sizeof pointer, made->address);
    emit_pointer(made->entered_ns, pointer, index);
    if (pointer != 0) {
        communicator_tell(context, pointer);
        return;
    }
    const __u32 at = thread->awaited_count;
    if (working && at < AWAITED_MAX) {
        thread->awaited[at] = *made;
        thread->awaited_count = at + 1;
    }
}

/*
 * Whether the communicator that is used is one that this thread asked for, and which was not stored then. How many are
 * kept is read from memory each time: else the verifier follows every number of them apart, for seconds.
 */
static __always_inline void communicator_await(struct nccl_thread *thread, __u64 used)
{
    volatile __u32 *kept = &thread->awaited_kept;
    *kept = 0;
    for (__u32 i = 0; i < AWAITED_MAX && i < thread->awaited_count; i++) {
        const struct pending awaited = thread->awaited[i];
        const __u32 at = *kept;
        __u64 pointer = 0;
        bpf_probe_read_user(&pointer, sizeof pointer, (const void *)awaited.address);
        if (pointer == used) {
            emit_pointer(awaited.entered_ns, pointer, 0);
        } else if (at < AWAITED_MAX) {
            thread->awaited[at] = awaited;
            *kept = at + 1;
        }
    }
    thread->awaited_count = *kept;
}

static __always_inline __u32 communicator_set(__u64 pointer)
{
    return (pointer >> 4 ^ pointer >> 12) % MET_SETS;
}

/* The thread has used it, and no pointer can have come to mean another communicator since. */
static __always_inline bool communicator_is_met(const struct nccl_thread *thread, __u64 pointer)
{
    const __u32 set = communicator_set(pointer);
    return thread->met[set].pointer == pointer && thread->met[set].since == *(volatile __u64 *)&communicators_forgotten;
}

/* The running thread uses the communicator. */
static __always_inline void communicator_meet(void *context, struct nccl_thread *thread, __u64 pointer)
{
    const __u64 forgotten = *(volatile __u64 *)&communicators_forgotten;
    if (pointer == 0 || (thread != NULL && communicator_is_met(thread, pointer)))
        return;
    if (thread != NULL && thread->awaited_count != 0)
        communicator_await(thread, pointer);
    const struct communicator_key key = communicator_key(pointer);
    const __u64 *told = bpf_map_lookup_elem(&communicators_told, &key);
    if (told == NULL || *told != process_started_ns())
        communicator_tell(context, pointer);
    if (thread == NULL)
        thread = nccl_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (thread == NULL)
        return;
    const __u32 set = communicator_set(pointer);
    thread->met[set].pointer = pointer;
    thread->met[set].since = forgotten;
}

static __always_inline void communicator_forget(__u64 pointer)
{
    const struct communicator_key key = communicator_key(pointer);
    bpf_map_delete_elem(&communicators_told, &key);
    __sync_fetch_and_add(&communicators_forgotten, 1);
}
