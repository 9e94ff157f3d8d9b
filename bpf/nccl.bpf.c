// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Communicators and groups at the public entries of the collective library (NCCL 2.13 to 2.30, RCCL): who makes them,
 * what they are, and their end. Invariant of a thread's note: `pending` are the communicators that the open group will
 * make, in the order of their calls, which is the order in which the library makes them.
 */
#include "bpf/argument.h"
#include "bpf/communicator.h"
#include "bpf/group.h"
#include "bpf/ring.h"

#define RESULT_IN_PROGRESS     7  /* ncclInProgress */
#define CONFIG_BLOCKING_OFFSET 16 /* ncclConfig_t: size, magic, version, blocking */

struct communicator_layout_map communicator_layouts SEC(".maps");
struct communicator_told_map communicators_told SEC(".maps");
__u64 communicators_forgotten = 0;

SEC("uprobe")
int nccl_group_start(registers_t *registers)
{
    struct nccl_thread *thread = nccl_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (thread == NULL || thread->depth++ != 0)
        return 0;
    thread->group++;
    thread->group_calls = 0;
    thread->pending_count = 0;
    thread->nonblocking = 0;
    return 0;
}

static __always_inline void emit_group(__u32 kind, const struct nccl_thread *thread, __s32 result)
{
    struct event_group *event = ring_reserve(kind, sizeof *event);
    if (event == NULL)
        return;
    event->group = thread->group;
    event->inits = thread->pending_count;
    event->result = result;
    event->nonblocking = thread->nonblocking;
    if (thread->pending_count == 0)
        ring_submit_lazily(event);
    else
        ring_submit(event);
}

SEC("uprobe")
int nccl_group_end(registers_t *registers)
{
    struct nccl_thread *thread = nccl_thread(0);
    if (thread == NULL || thread->depth == 0 || --thread->depth != 0)
        return 0;
    if (thread->group_calls == 0 && thread->pending_count == 0)
        return 0;
    thread->ending = 1;
    emit_group(EVENT_GROUP_END, thread, 0);
    return 0;
}

SEC("uretprobe")
int nccl_group_return(registers_t *registers)
{
    struct nccl_thread *thread = nccl_thread(0);
    if (thread == NULL || thread->ending == 0)
        return 0;
    const __s32 result = (__s32)argument_result(registers);
    for (__u32 i = 0; i < EVENT_PENDING_MAX && i < thread->pending_count; i++)
        communicator_made(registers, thread, &thread->pending[i], 0, result == RESULT_IN_PROGRESS);
    emit_group(EVENT_GROUP_RETURN, thread, result);
    thread->ending = 0;
    thread->pending_count = 0;
    return 0;
}

/* What an init call's arguments say. */
struct init {
    __u64 address; /* ncclComm_t *, for init all an array */
    __u64 id;      /* address of the first ncclUniqueId, 0 = none */
    __u64 config;
    __u64 parent;
    __u64 excluded; /* shrink: address of the ranks that are left out */
    __s32 ranks_count;
    __s32 rank;
    __s32 color;
    __s32 key;
    __u8 creator;
};

static __always_inline __u8 is_nonblocking(__u64 config)
{
    __s32 blocking = 1;
    if (config != 0)
        ring_read(&blocking, sizeof blocking, config + CONFIG_BLOCKING_OFFSET);
    return blocking == 0;
}

/* What does not fit is not read: then the name is not known from the list. */
static __always_inline void read_excluded(struct event_init *event, const struct init *init)
{
    const __u32 count = init->ranks_count < 0 ? 0 : init->ranks_count;
    for (__u32 i = 0; i < EVENT_EXCLUDED_MAX && i < count; i++)
        ring_read(event->id + 4 * i, 4, init->excluded + 4 * i);
}

static __always_inline void emit_init(const struct init *init, __u64 *entered_ns, bool grouped, __u8 nonblocking)
{
    struct event_init *event = ring_reserve(EVENT_INIT, sizeof *event);
    if (event == NULL)
        return;
    event->parent = init->parent;
    event->ranks_count = init->ranks_count;
    event->rank = init->rank;
    event->color = init->color;
    event->key = init->key;
    event->creator = init->creator;
    event->grouped = grouped;
    event->nonblocking = nonblocking;
    event->has_id = init->id != 0;
    __builtin_memset(event->reserved, 0, sizeof event->reserved);
    __builtin_memset(event->id, 0, sizeof event->id);
    if (init->id != 0)
        ring_read(event->id, sizeof event->id, init->id);
    else if (init->creator == CREATOR_SHRINK)
        read_excluded(event, init);
    *entered_ns = event->header.at_ns;
    ring_submit(event);
}

static __always_inline int init_enter(registers_t *registers, const struct init *init)
{
    ring_note_process(registers, PROCESS_COLLECTIVE);
    struct nccl_thread *thread = nccl_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (thread == NULL)
        return 0;
    __u64 entered_ns = bpf_ktime_get_ns();
    const __u8 nonblocking = is_nonblocking(init->config);
    thread->nonblocking |= nonblocking;
    emit_init(init, &entered_ns, thread->depth != 0, nonblocking);
    thread->call.address = init->address;
    thread->call.entered_ns = entered_ns;
    thread->call_count = init->creator == CREATOR_INIT_ALL ? init->ranks_count : 1;
    const __u32 at = thread->pending_count;
    if (thread->depth != 0 && at < EVENT_PENDING_MAX) {
        thread->pending[at] = thread->call;
        thread->pending_count = at + 1;
    }
    return 0;
}

SEC("uretprobe")
int nccl_init_return(registers_t *registers)
{
    struct nccl_thread *thread = nccl_thread(0);
    if (thread == NULL || thread->call.entered_ns == 0)
        return 0;
    const __s32 result = (__s32)argument_result(registers);
    const __u64 entered_ns = thread->call.entered_ns;
    const __u32 count = thread->depth == 0 ? thread->call_count : 0;
    for (__u32 i = 0; i < EVENT_PENDING_MAX && i < count; i++) {
        const struct pending made = {.address = thread->call.address + 8 * i, .entered_ns = entered_ns};
        communicator_made(registers, thread, &made, i, result == RESULT_IN_PROGRESS);
    }
    thread->call.entered_ns = 0;
    if (thread->depth != 0 && result != 0 && result != RESULT_IN_PROGRESS && thread->pending_count != 0)
        thread->pending_count--;
    struct event_init_return *event = ring_reserve(EVENT_INIT_RETURN, sizeof *event);
    if (event == NULL)
        return 0;
    event->entered_ns = entered_ns;
    event->result = result;
    event->grouped = thread->depth != 0;
    ring_submit(event);
    return 0;
}

/* The 128 bytes of the id are passed by value: in memory on the stack, or on AArch64 as a pointer to a copy. */
#if defined(__TARGET_ARCH_x86)
#define ID_BY_VALUE(registers) argument_stack(registers)
#define AFTER_ID               2
#else
#define ID_BY_VALUE(registers) argument(registers, 2)
#define AFTER_ID               3
#endif

SEC("uprobe")
int nccl_init_rank(registers_t *registers)
{
    const struct init init = {
        .address = argument(registers, 0),
        .ranks_count = (__s32)argument(registers, 1),
        .id = ID_BY_VALUE(registers),
        .rank = (__s32)argument(registers, AFTER_ID),
        .creator = CREATOR_INIT_RANK,
    };
    return init_enter(registers, &init);
}

SEC("uprobe")
int nccl_init_rank_config(registers_t *registers)
{
    const struct init init = {
        .address = argument(registers, 0),
        .ranks_count = (__s32)argument(registers, 1),
        .id = ID_BY_VALUE(registers),
        .rank = (__s32)argument(registers, AFTER_ID),
        .config = argument(registers, AFTER_ID + 1),
        .creator = CREATOR_INIT_RANK_CONFIG,
    };
    return init_enter(registers, &init);
}

SEC("uprobe")
int nccl_init_rank_scalable(registers_t *registers)
{
    const struct init init = {
        .address = argument(registers, 0),
        .ranks_count = (__s32)argument(registers, 1),
        .rank = (__s32)argument(registers, 2),
        .id = argument(registers, 4),
        .config = argument(registers, 5),
        .creator = CREATOR_INIT_RANK_SCALABLE,
    };
    return init_enter(registers, &init);
}

SEC("uprobe")
int nccl_init_all(registers_t *registers)
{
    const struct init init = {
        .address = argument(registers, 0),
        .ranks_count = (__s32)argument(registers, 1),
        .rank = -1,
        .creator = CREATOR_INIT_ALL,
    };
    return init_enter(registers, &init);
}

SEC("uprobe")
int nccl_split(registers_t *registers)
{
    const struct init init = {
        .parent = argument(registers, 0),
        .color = (__s32)argument(registers, 1),
        .key = (__s32)argument(registers, 2),
        .address = argument(registers, 3),
        .config = argument(registers, 4),
        .rank = -1,
        .creator = CREATOR_SPLIT,
    };
    return init_enter(registers, &init);
}

SEC("uprobe")
int nccl_shrink(registers_t *registers)
{
    const struct init init = {
        .parent = argument(registers, 0),
        .excluded = argument(registers, 1),
        .ranks_count = (__s32)argument(registers, 2),
        .address = argument(registers, 3),
        .config = argument(registers, 4),
        .rank = -1,
        .creator = CREATOR_SHRINK,
    };
    return init_enter(registers, &init);
}

SEC("uprobe")
int nccl_grow(registers_t *registers)
{
    const struct init init = {
        .parent = argument(registers, 0),
        .ranks_count = (__s32)argument(registers, 1),
        .id = argument(registers, 2),
        .rank = (__s32)argument(registers, 3),
        .address = argument(registers, 4),
        .config = argument(registers, 5),
        .creator = CREATOR_GROW,
    };
    return init_enter(registers, &init);
}

static __always_inline int say_farewell(registers_t *registers, __u32 farewell)
{
    ring_note_process(registers, PROCESS_COLLECTIVE);
    struct event_destroy *event = ring_reserve(EVENT_DESTROY, sizeof *event);
    if (event == NULL)
        return 0;
    event->communicator = argument(registers, 0);
    event->farewell = farewell;
    event->reserved = 0;
    communicator_forget(event->communicator);
    ring_submit(event);
    return 0;
}

#define FAREWELL(program, kind)                                                                                        \
    SEC("uprobe")                                                                                                      \
    int program(registers_t *registers)                                                                                \
    {                                                                                                                  \
        return say_farewell(registers, FAREWELL_##kind);                                                               \
    }
FAREWELL(nccl_destroy, DESTROY)
FAREWELL(nccl_abort, ABORT)
FAREWELL(nccl_finalize, FINALIZE)
FAREWELL(nccl_revoke, REVOKE)
