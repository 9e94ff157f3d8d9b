// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a rank asks of the collective library: its data calls, at the public entries (NCCL 2.13 to 2.30, RCCL), and what
 * became of those outside of groups, at their return. User space may take the return probes off (call_returns).
 */
#include "bpf/argument.h"
#include "bpf/communicator.h"
#include "bpf/delay.h"
#include "bpf/group.h"
#include "bpf/ring.h"

enum operation {
#define OPERATION(name, number, text, point_to_point) OPERATION_##name = (number),
#include "wire/operation.def"
#undef OPERATION
};

__u32 call_returns = 0; /* the return probes are set */

/* ncclWaitSignalDesc_t */
struct wait_descriptor {
    __s32 signals_count;
    __s32 peer;
    __s32 signal;
    __s32 context;
};

/*
 * A data call at its entry. The way that every call goes is short: each helper of the kernel is called once, and what
 * the stack needs stays below 64 bytes, from which on the kernel (6.13) gives a program a stack elsewhere, which
 * is slow to read user memory to.
 */
struct entry {
    struct task_struct *task;
    struct nccl_thread *thread; /* NULL = no memory */
    __u64 at_ns;
    __u32 group; /* 0 outside of groups */
    __u8 flags;
};

static __always_inline struct entry enter(void)
{
    struct entry entry = {.at_ns = bpf_ktime_get_ns(), .task = bpf_get_current_task_btf()};
    entry.thread = nccl_thread_of(entry.task, BPF_LOCAL_STORAGE_GET_F_CREATE);
    return entry;
}

/* What a thread's first calls need, and all while a graph is captured. Returns flags of their events. */
static __noinline __u32 enter_slowly(registers_t *registers, struct nccl_thread *thread, __u64 communicator)
{
    const bool noted = thread != NULL && thread->noted != 0 && captures == 0;
    const __u32 process = noted ? 0 : ring_note_process(registers, PROCESS_COLLECTIVE);
    communicator_meet(registers, thread, communicator);
    if (thread != NULL && thread->noted == 0) {
        delay_follow(bpf_get_current_task_btf(), EVENT_DELAY_CALLS);
        thread->noted = 1;
    }
    return process >= PROCESS_CAPTURES ? EVENT_CALL_CAPTURED : 0;
}

/* Notes that the thread is within a data call. */
static __always_inline void enter_call(registers_t *registers, struct entry *entry, __u64 communicator)
{
    struct nccl_thread *thread = entry->thread;
    const bool is_known = thread != NULL && thread->noted != 0 && communicator_is_met(thread, communicator);
    if (!is_known || captures != 0)
        entry->flags |= enter_slowly(registers, thread, communicator);
    if (thread == NULL)
        return;
    thread->in_bcast = 0;
    if (thread->depth != 0) {
        thread->group_calls++;
        entry->group = thread->group;
        return;
    }
    thread->in_call = call_returns != 0;
    entry->flags |= call_returns != 0 ? EVENT_CALL_RETURNS : 0;
}

static __always_inline struct event_call *reserve(const struct entry *entry, __u8 operation, __u64 communicator,
                                                  __u64 stream)
{
    struct event_call *event = ring_reserve_of(entry->task, entry->at_ns, EVENT_CALL, sizeof *event);
    if (event == NULL)
        return NULL;
    event->communicator = communicator;
    event->stream = stream;
    event->group = entry->group;
    event->operation = operation;
    event->flags = entry->flags;
    __builtin_memset(event->reserved, 0, sizeof event->reserved);
    return event;
}

static __always_inline void submit(void *event, struct nccl_thread *thread)
{
    ring_submit_mostly(event, thread == NULL ? 0 : thread->events++);
}

/* Of a data call outside of groups; the ncclBroadcast inside of ncclBcast is none. */
SEC("uretprobe")
int nccl_call_return(registers_t *registers)
{
    const __u64 at_ns = bpf_ktime_get_ns();
    struct task_struct *task = bpf_get_current_task_btf();
    struct nccl_thread *thread = nccl_thread_of(task, 0);
    if (thread == NULL || thread->in_call == 0)
        return 0;
    if (thread->in_inner != 0) {
        thread->in_inner = 0;
        return 0;
    }
    thread->in_call = 0;
    struct event_call_return *event = ring_reserve_of(task, at_ns, EVENT_CALL_RETURN, sizeof *event);
    if (event == NULL)
        return 0;
    event->result = (__s32)argument_result(registers);
    event->reserved = 0;
    submit(event, thread);
    return 0;
}

static __always_inline __u8 reduction_of(__u64 reduction)
{
    return (__u32)reduction < EVENT_REDUCTIONS ? (__u8)reduction : EVENT_OWN_REDUCTION;
}

/* ncclBcast counts itself; the ncclBroadcast that it runs inside, of the same buffer in place, does not count again. */
static __always_inline bool is_inner_broadcast(registers_t *registers, struct nccl_thread *thread)
{
    if (thread == NULL || thread->in_bcast == 0)
        return false;
    const bool inner = thread->bcast_communicator == argument_any(registers, 5) &&
                       thread->bcast_buffer == argument(registers, 0) && thread->bcast_buffer == argument(registers, 1);
    thread->in_bcast = 0;
    thread->in_inner = inner;
    return inner;
}

/*
 * The data calls, by the places of their arguments; -1 = has none. The stream follows the communicator.
 * CALL(program, operation, count, data type, reduction, peer or root, communicator)
 */
#define CALL(program, kind, count_at, datatype_at, reduction_at, peer_at, communicator_at)                             \
    SEC("uprobe")                                                                                                      \
    int program(registers_t *registers)                                                                                \
    {                                                                                                                  \
        __u64 pair[2];                                                                                                 \
        struct entry entry = enter();                                                                                  \
        if (OPERATION_##kind == OPERATION_BROADCAST && is_inner_broadcast(registers, entry.thread))                    \
            return 0;                                                                                                  \
        argument_pair(registers, communicator_at, pair);                                                               \
        enter_call(registers, &entry, pair[0]);                                                                        \
        struct event_call *event = reserve(&entry, OPERATION_##kind, pair[0], pair[1]);                                \
        if (event == NULL)                                                                                             \
            return 0;                                                                                                  \
        event->count = (count_at) < 0 ? 0 : argument(registers, count_at);                                             \
        event->peer = (peer_at) < 0 ? -1 : (__s32)argument(registers, peer_at);                                        \
        event->datatype = (datatype_at) < 0 ? EVENT_NO_DATATYPE : (__u8)argument(registers, datatype_at);              \
        event->reduction = (reduction_at) < 0 ? EVENT_NO_REDUCTION : reduction_of(argument(registers, reduction_at));  \
        submit(event, entry.thread);                                                                                   \
        return 0;                                                                                                      \
    }

#include "bpf/call.def"
#undef CALL

SEC("uprobe")
int nccl_bcast(registers_t *registers)
{
    struct entry entry = enter();
    const __u64 communicator = argument(registers, 4);
    enter_call(registers, &entry, communicator);
    if (entry.thread != NULL) {
        entry.thread->bcast_communicator = communicator;
        entry.thread->bcast_buffer = argument(registers, 0);
        entry.thread->in_bcast = 1;
    }
    struct event_call *event = reserve(&entry, OPERATION_BROADCAST, communicator, argument(registers, 5));
    if (event == NULL)
        return 0;
    event->count = argument(registers, 1);
    event->peer = (__s32)argument(registers, 3);
    event->datatype = (__u8)argument(registers, 2);
    event->reduction = EVENT_NO_REDUCTION;
    submit(event, entry.thread);
    return 0;
}

/* How many signals of which peers: an event a descriptor. */
SEC("uprobe")
int nccl_wait_signal(registers_t *registers)
{
    struct entry entry = enter();
    const __u64 communicator = argument(registers, 2);
    const __u64 descriptors = argument(registers, 1);
    const __u32 count = (__u32)argument(registers, 0);
    enter_call(registers, &entry, communicator);
    for (__u32 i = 0; i < EVENT_WAITS_MAX && i < count; i++) {
        struct wait_descriptor wait = {};
        ring_read(&wait, sizeof wait, descriptors + i * sizeof wait);
        struct event_call *event = reserve(&entry, OPERATION_WAIT_SIGNAL, communicator, argument(registers, 3));
        if (event == NULL)
            continue;
        event->count = (__u64)wait.signals_count;
        event->peer = wait.peer;
        event->datatype = EVENT_NO_DATATYPE;
        event->reduction = EVENT_NO_REDUCTION;
        event->flags |= i == 0 ? 0 : EVENT_CALL_SAME;
        submit(event, entry.thread);
    }
    return 0;
}
