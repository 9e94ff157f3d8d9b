/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all probes share: the ring buffer, the set of processes that matter, and the count of what was lost.
 * Defined in thread.bpf.c; all objects are linked into one.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/event.h"
#include "bpf/kernel.h"

#define RING_LOOKS 16 /* events of a thread, of which one looks */

struct ring_map {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 << 20); /* user space sets it before the load */
};

/* Processes that called a collective library or made a queue pair: thread group -> enum event_process_flag, and
 * captures. */
struct process_map {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, __u32);
    __type(value, __u32);
};

extern struct ring_map events SEC(".maps");
extern struct process_map processes SEC(".maps");

extern __u64 events_lost;
extern __u64 events_lost_at_ns;
extern __u64 reads_failed;
extern __u32 captures; /* graphs that are being captured, in all processes */
extern __u64 processes_refused;
extern const volatile __u64 wake_bytes; /* a data call wakes user space only when so much waits */

extern struct detail details[DETAILS];

static __always_inline bool detail_take(enum detail_kind kind, __u32 tgid)
{
    struct detail *detail = &details[kind];
    if (*(volatile __s64 *)&detail->left <= 0 || (detail->process != 0 && detail->process != tgid))
        return false;
    __sync_fetch_and_add(&detail->left, -1);
    return true;
}

/* An event of this thread and time with its header filled, or NULL (counted) when the ring is full. */
static __always_inline void *ring_reserve_of(const struct task_struct *task, __u64 at_ns, __u32 kind, __u64 size_bytes)
{
    struct event_header *header = bpf_ringbuf_reserve(&events, size_bytes, 0);
    if (header == NULL) {
        __sync_fetch_and_add(&events_lost, 1);
        events_lost_at_ns = at_ns;
        return NULL;
    }
    header->kind = kind;
    header->lost = (__u32) * (volatile __u64 *)&events_lost;
    header->at_ns = at_ns;
    header->tgid = task->tgid;
    header->tid = task->pid;
    return header;
}

/* The same of the running thread, now. */
static __always_inline void *ring_reserve(__u32 kind, __u64 size_bytes)
{
    return ring_reserve_of(bpf_get_current_task_btf(), bpf_ktime_get_ns(), kind, size_bytes);
}

/* Wakes user space, also when events that did not are waiting before it. */
static __always_inline void ring_submit(void *event)
{
    bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
}

/* For the frequent kinds: user space looks every 50 ms anyway, so it is woken only when much waits. */
static __always_inline void ring_submit_lazily(void *event)
{
    const bool much = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > wake_bytes;
    bpf_ringbuf_submit(event, much ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* For the most frequent ones: only some of them look whether much waits. */
static __always_inline void ring_submit_mostly(void *event, __u32 number)
{
    if (number % RING_LOOKS == 0)
        ring_submit_lazily(event);
    else
        bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* A read of user memory that failed leaves zeros and is counted. */
static __always_inline void ring_read(void *into, __u32 size_bytes, __u64 address)
{
    if (bpf_probe_read_user(into, size_bytes, (const void *)address) != 0)
        __sync_fetch_and_add(&reads_failed, 1);
}

/* Tells user space of the running process when it is new or shows a new flag. Returns its value in `processes`. */
static __always_inline __u32 ring_note_process(void *context, __u32 flag)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    const __u32 *known = bpf_map_lookup_elem(&processes, &tgid);
    const __u32 flags = (known == NULL ? 0 : *known) | flag;
    if (known != NULL && *known == flags)
        return flags;
    if (bpf_map_update_elem(&processes, &tgid, &flags, BPF_ANY) != 0)
        __sync_fetch_and_add(&processes_refused, 1);
    struct event_process *event = ring_reserve(EVENT_PROCESS, sizeof *event);
    if (event == NULL)
        return flags;
    const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
    event->started_ns = BPF_CORE_READ(task, group_leader, start_time);
    event->library = (__u32)bpf_get_attach_cookie(context);
    event->flags = flags & PROCESS_FLAGS;
    event->reserved = 0;
    bpf_get_current_comm(event->command, sizeof event->command);
    ring_submit(event);
    return flags;
}
