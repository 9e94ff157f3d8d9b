// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who makes whom: thread creation and ends of the processes that matter, and the clock of all probes. Also the home of
 * what the probes share (ring.h).
 */
#include "bpf/argument.h"
#include "bpf/delay.h"
#include "bpf/group.h"
#include "bpf/ring.h"

#include <bpf/bpf_tracing.h>

struct ring_map events SEC(".maps");
struct process_map processes SEC(".maps");
struct nccl_thread_map nccl_threads SEC(".maps");
struct delay_map delays SEC(".maps");

__u64 events_lost = 0;
__u64 events_lost_at_ns = 0;
__u64 reads_failed = 0;
__u64 processes_refused = 0;
const volatile __u64 wake_bytes = 0;

__u32 captures = 0;

struct detail details[DETAILS] = {};

__u64 clock_now_ns = 0;

char licence[] SEC("license") = "Dual BSD/GPL";

/* The running thread is in a call of the library, or descends from one that was. */
static __always_inline bool is_within_library(struct task_struct *task)
{
    const struct delay *delay = delay_of(task);
    const struct nccl_thread *thread = nccl_thread(0);
    if (delay != NULL && (delay->role & EVENT_DELAY_SERVES) != 0)
        return true;
    return thread != NULL && (thread->call.entered_ns != 0 || thread->ending != 0 || thread->in_call != 0);
}

/* Only threads that descend from a communicator's creation matter, and those exist in PROCESS_COLLECTIVE only. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(thread_fork, struct task_struct *parent, struct task_struct *child)
{
    const __u32 tgid = parent->tgid;
    if (child->tgid != parent->tgid)
        return 0;
    const __u32 *flags = bpf_map_lookup_elem(&processes, &tgid);
    if (flags == NULL || (*flags & PROCESS_COLLECTIVE) == 0)
        return 0;
    if (is_within_library(parent))
        delay_follow(child, EVENT_DELAY_SERVES);
    struct event_fork *event = ring_reserve(EVENT_THREAD_FORK, sizeof *event);
    if (event == NULL)
        return 0;
    event->child = child->pid;
    event->reserved = 0;
    ring_submit_lazily(event);
    return 0;
}

static __always_inline void end_process(const __u32 *tgid)
{
    const __u32 *process = bpf_map_lookup_elem(&processes, tgid);
    if (process != NULL && *process >= PROCESS_CAPTURES)
        __sync_fetch_and_add(&captures, -(*process / PROCESS_CAPTURES));
    bpf_map_delete_elem(&processes, tgid);
    struct event_exit *event = ring_reserve(EVENT_PROCESS_EXIT, sizeof *event);
    if (event != NULL)
        ring_submit(event);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_exit, struct task_struct *task)
{
    const __u32 tgid = task->tgid;
    if (bpf_map_lookup_elem(&processes, &tgid) == NULL)
        return 0;
    if (task->signal->live.counter == 0) {
        end_process(&tgid);
        return 0;
    }
    struct event_exit *event = ring_reserve(EVENT_THREAD_EXIT, sizeof *event);
    if (event != NULL)
        ring_submit_lazily(event);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task)
{
    const __u32 tgid = task->tgid;
    if (bpf_map_lookup_elem(&processes, &tgid) == NULL)
        return 0;
    end_process(&tgid);
    bpf_task_storage_delete(&nccl_threads, (void *)bpf_get_current_task_btf());
    return 0;
}

/* Run on demand between two readings of user space's clock. */
SEC("syscall")
int clock_read(void *context)
{
    clock_now_ns = bpf_ktime_get_ns();
    return 0;
}

/* What a probe at a data call does, for measuring what it costs; a ring that is full has lost nothing. */
static __always_inline int use_ring(__u64 stream)
{
    const __u64 at_ns = bpf_ktime_get_ns();
    const struct nccl_thread *thread = nccl_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
    struct event_call *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
    if (event == NULL)
        return 0;
    event->header.at_ns = at_ns;
    event->stream = stream;
    event->group = thread == NULL ? 0 : thread->group;
    bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
    return 0;
}

SEC("uprobe")
int cost_entry(registers_t *registers)
{
    return use_ring(argument_any(registers, ARGUMENT_REGISTERS));
}

SEC("uretprobe")
int cost_return(registers_t *registers)
{
    return use_ring(0);
}
