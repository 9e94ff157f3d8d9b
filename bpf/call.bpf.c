// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a rank asks of the collective library: its data calls, at the public entries (NCCL 2.13 to 2.30, RCCL). They
 * have an entry probe only.
 */
#include "bpf/argument.h"
#include "bpf/group.h"
#include "bpf/ring.h"

enum operation {
#define OPERATION(name, number, text, point_to_point) OPERATION_##name = (number),
#include "wire/operation.def"
#undef OPERATION
};

static __always_inline int emit_call(registers_t *registers, struct nccl_thread *thread, const struct event_call *call)
{
    ring_note_process(registers, PROCESS_COLLECTIVE);
    const bool grouped = thread != NULL && thread->depth != 0;
    if (grouped)
        thread->group_calls++;
    if (thread != NULL)
        thread->in_bcast = 0;
    struct event_call *event = ring_reserve(EVENT_CALL, sizeof *event);
    if (event == NULL)
        return 0;
    event->communicator = call->communicator;
    event->count = call->count;
    event->stream = call->stream;
    event->peer = call->peer;
    event->group = grouped ? thread->group : 0;
    event->operation = call->operation;
    event->datatype = call->datatype;
    event->reduction = call->reduction;
    __builtin_memset(event->reserved, 0, sizeof event->reserved);
    ring_submit_lazily(event);
    return 0;
}

/* ncclBcast counts itself; the ncclBroadcast that it runs inside, of the same buffer in place, does not count again. */
static __always_inline bool is_inner_broadcast(registers_t *registers, struct nccl_thread *thread)
{
    if (thread == NULL || thread->in_bcast == 0)
        return false;
    const bool inner = thread->bcast_communicator == argument_any(registers, 5) &&
                       thread->bcast_buffer == argument(registers, 0) && thread->bcast_buffer == argument(registers, 1);
    thread->in_bcast = 0;
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
        struct nccl_thread *thread = nccl_thread(0);                                                                   \
        if (OPERATION_##kind == OPERATION_BROADCAST && is_inner_broadcast(registers, thread))                          \
            return 0;                                                                                                  \
        const struct event_call call = {                                                                               \
            .communicator = argument_any(registers, communicator_at),                                                  \
            .count = argument_any(registers, count_at),                                                                \
            .stream = argument_any(registers, stream_at),                                                              \
            .peer = (peer_at) < 0 ? -1 : (__s32)argument_any(registers, peer_at),                                      \
            .operation = OPERATION_##kind,                                                                             \
            .datatype = (__u8)argument_any(registers, datatype_at),                                                    \
            .reduction = (reduction_at) < 0 ? EVENT_NO_REDUCTION : (__u8)argument_any(registers, reduction_at),        \
        };                                                                                                             \
        return emit_call(registers, thread, &call);                                                                    \
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
    emit_call(registers, thread, &call);
    if (thread != NULL) {
        thread->bcast_communicator = call.communicator;
        thread->bcast_buffer = argument(registers, 0);
        thread->in_bcast = 1;
    }
    return 0;
}
