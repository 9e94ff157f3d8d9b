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

static __always_inline void emit_call(const struct event_call *call, __u32 group, __u8 flags)
{
    struct event_call *event = ring_reserve(EVENT_CALL, sizeof *event);
    if (event == NULL)
        return;
    event->communicator = call->communicator;
    event->count = call->count;
    event->stream = call->stream;
    event->peer = call->peer;
    event->group = group;
    event->operation = call->operation;
    event->datatype = call->datatype;
    event->reduction = call->reduction;
    event->flags = flags;
    __builtin_memset(event->reserved, 0, sizeof event->reserved);
    ring_submit_lazily(event);
}

/* Notes that the thread is within a data call. Returns its group, 0 outside of groups, and what all its events say. */
static __always_inline __u32 enter_call(registers_t *registers, struct nccl_thread *thread, __u64 communicator,
                                        __u8 *flags)
{
    *flags = 0;
    if (thread == NULL || thread->noted == 0 || captures != 0)
        *flags = ring_note_process(registers, PROCESS_COLLECTIVE) >= PROCESS_CAPTURES ? EVENT_CALL_CAPTURED : 0;
    communicator_meet(registers, thread, communicator);
    if (thread == NULL)
        return 0;
    if (thread->noted == 0)
        delay_follow(bpf_get_current_task_btf(), EVENT_DELAY_CALLS);
    thread->noted = 1;
    thread->in_bcast = 0;
    if (thread->depth != 0) {
        thread->group_calls++;
        return thread->group;
    }
    thread->in_call = call_returns != 0;
    *flags |= call_returns != 0 ? EVENT_CALL_RETURNS : 0;
    return 0;
}

static __always_inline int take_call(registers_t *registers, struct nccl_thread *thread, const struct event_call *call)
{
    __u8 flags;
    const __u32 group = enter_call(registers, thread, call->communicator, &flags);
    emit_call(call, group, flags);
    return 0;
}

/* Of a data call outside of groups; the ncclBroadcast inside of ncclBcast is none. */
SEC("uretprobe")
int nccl_call_return(registers_t *registers)
{
    struct nccl_thread *thread = nccl_thread(0);
    if (thread == NULL || thread->in_call == 0)
        return 0;
    if (thread->in_inner != 0) {
        thread->in_inner = 0;
        return 0;
    }
    thread->in_call = 0;
    struct event_call_return *event = ring_reserve(EVENT_CALL_RETURN, sizeof *event);
    if (event == NULL)
        return 0;
    event->result = (__s32)argument_result(registers);
    event->reserved = 0;
    ring_submit_lazily(event);
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
 * The data calls, by the places of their arguments; -1 = has none.
 * CALL(program, operation, count, data type, reduction, peer or root, communicator, stream)
 */
#define CALL(program, kind, count_at, datatype_at, reduction_at, peer_at, communicator_at, stream_at)                  \
    SEC("uprobe")                                                                                                      \
    int program(registers_t *registers)                                                                                \
    {                                                                                                                  \
        struct nccl_thread *thread = nccl_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);                                      \
        if (OPERATION_##kind == OPERATION_BROADCAST && is_inner_broadcast(registers, thread))                          \
            return 0;                                                                                                  \
        const struct event_call call = {                                                                               \
            .communicator = argument_any(registers, communicator_at),                                                  \
            .count = (count_at) < 0 ? 0 : argument_any(registers, count_at),                                           \
            .stream = argument_any(registers, stream_at),                                                              \
            .peer = (peer_at) < 0 ? -1 : (__s32)argument_any(registers, peer_at),                                      \
            .operation = OPERATION_##kind,                                                                             \
            .datatype = (datatype_at) < 0 ? EVENT_NO_DATATYPE : (__u8)argument_any(registers, datatype_at),            \
            .reduction =                                                                                               \
                (reduction_at) < 0 ? EVENT_NO_REDUCTION : reduction_of(argument_any(registers, reduction_at)),         \
        };                                                                                                             \
        return take_call(registers, thread, &call);                                                                    \
    }

#include "bpf/call.def"
#undef CALL

SEC("uprobe")
int nccl_bcast(registers_t *registers)
{
    struct nccl_thread *thread = nccl_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
    const struct event_call call = {
        .communicator = argument(registers, 4),
        .count = argument(registers, 1),
        .stream = argument(registers, 5),
        .peer = (__s32)argument(registers, 3),
        .operation = OPERATION_BROADCAST,
        .datatype = (__u8)argument(registers, 2),
        .reduction = EVENT_NO_REDUCTION,
    };
    take_call(registers, thread, &call);
    if (thread != NULL) {
        thread->bcast_communicator = call.communicator;
        thread->bcast_buffer = argument(registers, 0);
        thread->in_bcast = 1;
    }
    return 0;
}

/* How many signals of which peers: an event a descriptor. */
SEC("uprobe")
int nccl_wait_signal(registers_t *registers)
{
    struct nccl_thread *thread = nccl_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
    const __u64 descriptors = argument(registers, 1);
    const __u32 count = (__u32)argument(registers, 0);
    struct event_call call = {
        .communicator = argument(registers, 2),
        .stream = argument(registers, 3),
        .operation = OPERATION_WAIT_SIGNAL,
        .datatype = EVENT_NO_DATATYPE,
        .reduction = EVENT_NO_REDUCTION,
    };
    __u8 flags;
    const __u32 group = enter_call(registers, thread, call.communicator, &flags);
    for (__u32 i = 0; i < EVENT_WAITS_MAX && i < count; i++) {
        struct wait_descriptor wait = {};
        ring_read(&wait, sizeof wait, descriptors + i * sizeof wait);
        call.count = (__u64)wait.signals_count;
        call.peer = wait.peer;
        emit_call(&call, group, flags | (i == 0 ? 0 : EVENT_CALL_SAME));
    }
    return 0;
}
