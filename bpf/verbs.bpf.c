// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs, at libibverbs' public entries: made (return), changed and destroyed (entry and return; only calls that
 * returned 0 count). A call through the old IBVERBS_1.0 entry runs the new one inside and hits both: only the inner
 * one, whose structures layout.def describes, is told.
 */
#include "bpf/argument.h"
#include "bpf/layout.h"
#include "bpf/ring.h"

struct verbs_call {
    __u64 queue_pair;
    __u64 attributes;
    __u32 mask;
    __u16 creating; /* ibv_create_qp calls that run, one within the other */
    __u16 created;  /* the inner one was told */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct verbs_call);
} verbs_calls SEC(".maps");

static __always_inline struct verbs_call *verbs_call(__u64 flags)
{
    return bpf_task_storage_get(&verbs_calls, (void *)bpf_get_current_task_btf(), NULL, flags);
}

static __always_inline void read_device_name(char *name, __u64 queue_pair)
{
    __u64 context = 0;
    __u64 device = 0;
    ring_read(&context, sizeof context, queue_pair + OFFSET_ibv_qp_context);
    ring_read(&device, sizeof device, context + OFFSET_ibv_context_device);
    if (bpf_probe_read_user_str(name, EVENT_NAME_BYTES, (const void *)(device + OFFSET_ibv_device_name)) < 0)
        __sync_fetch_and_add(&reads_failed, 1);
}

SEC("uprobe")
int queue_pair_create(registers_t *registers)
{
    struct verbs_call *call = verbs_call(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (call != NULL)
        call->creating++;
    return 0;
}

/* Whether this return is the outer one of two; takes the entry back. */
static __always_inline bool is_outer_return(void)
{
    struct verbs_call *call = verbs_call(0);
    if (call == NULL || call->creating == 0)
        return false;
    const bool outer = call->created != 0;
    call->creating--;
    call->created = call->creating != 0;
    return outer;
}

SEC("uretprobe")
int queue_pair_create_return(registers_t *registers)
{
    const __u64 pointer = argument_result(registers);
    if (is_outer_return() || pointer == 0)
        return 0;
    ring_note_process(registers, PROCESS_VERBS);
    struct event_queue_pair_create *event = ring_reserve(EVENT_QUEUE_PAIR_CREATE, sizeof *event);
    if (event == NULL)
        return 0;
    event->pointer = pointer;
    __builtin_memset(event->device, 0, sizeof event->device);
    ring_read(&event->send_queue, sizeof event->send_queue, pointer + OFFSET_ibv_qp_send_cq);
    ring_read(&event->qpn, sizeof event->qpn, pointer + OFFSET_ibv_qp_qp_num);
    ring_read(&event->type, sizeof event->type, pointer + OFFSET_ibv_qp_qp_type);
    read_device_name(event->device, pointer);
    ring_submit(event);
    return 0;
}

SEC("uprobe")
int queue_pair_modify(registers_t *registers)
{
    struct verbs_call *call = verbs_call(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (call == NULL)
        return 0;
    call->queue_pair = argument(registers, 0);
    call->attributes = argument(registers, 1);
    call->mask = (__u32)argument(registers, 2);
    return 0;
}

static __always_inline void read_attributes(struct event_queue_pair_modify *event, __u64 attributes)
{
    const __u64 address = attributes + OFFSET_ibv_qp_attr_ah_attr;
    const __u64 route = address + OFFSET_ibv_ah_attr_grh;
    __u32 state = 0;
    ring_read(&state, sizeof state, attributes + OFFSET_ibv_qp_attr_qp_state);
    event->state = (__u8)state;
    ring_read(&event->remote_qpn, sizeof event->remote_qpn, attributes + OFFSET_ibv_qp_attr_dest_qp_num);
    ring_read(&event->port, 1, attributes + OFFSET_ibv_qp_attr_port_num);
    ring_read(&event->address_port, 1, address + OFFSET_ibv_ah_attr_port_num);
    ring_read(&event->global, 1, address + OFFSET_ibv_ah_attr_is_global);
    ring_read(&event->address_index, 1, route + OFFSET_ibv_global_route_sgid_index);
    ring_read(&event->traffic_class, 1, route + OFFSET_ibv_global_route_traffic_class);
    ring_read(event->remote_address, sizeof event->remote_address, route + OFFSET_ibv_global_route_dgid);
}

/* At a call's return: the call with the queue pair that it was for (taken out of it) when it was done, else NULL. */
static __always_inline struct verbs_call *verbs_call_done(registers_t *registers, __u64 *pointer)
{
    struct verbs_call *call = verbs_call(0);
    if (call == NULL || call->queue_pair == 0)
        return NULL;
    *pointer = call->queue_pair;
    call->queue_pair = 0;
    return (__s32)argument_result(registers) == 0 ? call : NULL;
}

SEC("uretprobe")
int queue_pair_modify_return(registers_t *registers)
{
    __u64 pointer = 0;
    struct verbs_call *call = verbs_call_done(registers, &pointer);
    if (call == NULL)
        return 0;
    struct event_queue_pair_modify *event = ring_reserve(EVENT_QUEUE_PAIR_MODIFY, sizeof *event);
    if (event == NULL)
        return 0;
    event->pointer = pointer;
    event->mask = call->mask;
    event->reserved[0] = 0;
    event->reserved[1] = 0;
    read_attributes(event, call->attributes);
    ring_submit(event);
    return 0;
}

SEC("uprobe")
int queue_pair_destroy(registers_t *registers)
{
    struct verbs_call *call = verbs_call(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (call != NULL)
        call->queue_pair = argument(registers, 0);
    return 0;
}

SEC("uretprobe")
int queue_pair_destroy_return(registers_t *registers)
{
    __u64 pointer = 0;
    if (verbs_call_done(registers, &pointer) == NULL)
        return 0;
    struct event_queue_pair_destroy *event = ring_reserve(EVENT_QUEUE_PAIR_DESTROY, sizeof *event);
    if (event == NULL)
        return 0;
    event->pointer = pointer;
    ring_submit(event);
    return 0;
}
