// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs, at libibverbs' public entries: made, changed and destroyed (only calls that returned 0 or a queue pair
 * count). One call may run another that is probed too: the old IBVERBS_1.0 entry runs the new one, and both run the
 * ibv_cmd_ entry through which every provider passes. The innermost public one tells, since layout.def describes its
 * structures. ibv_create_qp_ex and mlx5dv_create_qp have no public entry of their own: there the ibv_cmd_ entry tells,
 * whose arguments are private to rdma-core, so that what they say is told only when it fits together.
 */
#include "bpf/argument.h"
#include "bpf/layout.h"
#include "bpf/proxy.h"

#define QPN_MAX 0xffffff

__u64 queue_pairs_implausible = 0;

/* Probed calls of one purpose that run one within the other. The outermost is known by its frame: its caller's stack
 * lies above it, so a call whose return was missed cannot be taken for one that runs. */
struct nest {
    __u64 frame; /* 0 = none runs */
    __u64 told;  /* an inner one has told of it */
};

struct verbs_call {
    struct nest create;
    struct nest modify;
    struct nest destroy;
    __u64 queue_pair; /* of the innermost call */
    __u64 entered_ns;
    __u64 device_context; /* of a private entry: ibv_context */
    __u64 send_queue;
    __u64 context;
    __u32 type;
    __u32 max_send;
    __u32 max_receive;
    struct event_queue_pair_modify change; /* but for its header */
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

static __always_inline bool nest_runs(const struct nest *nest, registers_t *registers)
{
    return nest->frame != 0 && argument_frame(registers) < nest->frame;
}

static __always_inline void nest_enter(struct nest *nest, registers_t *registers)
{
    if (nest_runs(nest, registers))
        return;
    nest->frame = argument_frame(registers);
    nest->told = 0;
}

/* Whether this return is the one that tells. */
static __always_inline bool nest_leave(struct nest *nest, registers_t *registers)
{
    const bool tells = nest->frame != 0 && nest->told == 0;
    nest->told = 1;
    if (!nest_runs(nest, registers))
        nest->frame = 0;
    return tells;
}

/* ---- made ---- */

static __always_inline void read_creation(struct verbs_call *call, __u64 attributes)
{
    const __u64 capacity = attributes + OFFSET_ibv_qp_init_attr_cap;
    ring_read(&call->context, sizeof call->context, attributes + OFFSET_ibv_qp_init_attr_qp_context);
    ring_read(&call->send_queue, sizeof call->send_queue, attributes + OFFSET_ibv_qp_init_attr_send_cq);
    ring_read(&call->type, sizeof call->type, attributes + OFFSET_ibv_qp_init_attr_qp_type);
    ring_read(&call->max_send, sizeof call->max_send, capacity + OFFSET_ibv_qp_cap_max_send_wr);
    ring_read(&call->max_receive, sizeof call->max_receive, capacity + OFFSET_ibv_qp_cap_max_recv_wr);
}

static __always_inline void read_device_name(char *name, __u64 device_context)
{
    __u64 device = 0;
    __builtin_memset(name, 0, EVENT_NAME_BYTES);
    ring_read(&device, sizeof device, device_context + OFFSET_ibv_context_device);
    if (bpf_probe_read_user_str(name, EVENT_NAME_BYTES, (const void *)(device + OFFSET_ibv_device_name)) < 0)
        __sync_fetch_and_add(&reads_failed, 1);
}

static __always_inline int emit_creation(registers_t *registers, const struct verbs_call *call, __u64 pointer)
{
    __u64 device_context = 0;
    ring_note_process(registers, PROCESS_VERBS);
    struct event_queue_pair_create *event = ring_reserve(EVENT_QUEUE_PAIR_CREATE, sizeof *event);
    if (event == NULL)
        return 0;
    event->pointer = pointer;
    event->send_queue = call->send_queue;
    event->type = call->type;
    event->context = call->context;
    event->max_send = call->max_send;
    event->max_receive = call->max_receive;
    const struct proxy_thread *thread = proxy_thread(0);
    event->socket = thread == NULL ? 0 : thread->socket;
    event->reserved = 0;
    ring_read(&event->qpn, sizeof event->qpn, pointer + OFFSET_ibv_qp_qp_num);
    ring_read(&device_context, sizeof device_context, pointer + OFFSET_ibv_qp_context);
    read_device_name(event->device, device_context);
    ring_submit(event);
    return 0;
}

/* The call's entry was not noted: it came before the probe, or the kernel had no room for a note just then. */
static __always_inline int emit_unnoted_creation(registers_t *registers, __u64 pointer)
{
    struct verbs_call call = {};
    ring_read(&call.context, sizeof call.context, pointer + OFFSET_ibv_qp_qp_context);
    ring_read(&call.send_queue, sizeof call.send_queue, pointer + OFFSET_ibv_qp_send_cq);
    ring_read(&call.type, sizeof call.type, pointer + OFFSET_ibv_qp_qp_type);
    return emit_creation(registers, &call, pointer);
}

SEC("uprobe")
int queue_pair_create(registers_t *registers)
{
    struct verbs_call *call = verbs_call(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (call == NULL)
        return 0;
    nest_enter(&call->create, registers);
    read_creation(call, argument(registers, 1));
    return 0;
}

SEC("uretprobe")
int queue_pair_create_return(registers_t *registers)
{
    const __u64 pointer = argument_result(registers);
    struct verbs_call *call = verbs_call(0);
    if (pointer == 0)
        return 0;
    if (call == NULL || call->create.frame == 0)
        return emit_unnoted_creation(registers, pointer);
    return nest_leave(&call->create, registers) ? emit_creation(registers, call, pointer) : 0;
}

/* Of no public call: the call's notes with what both kinds have alike, else NULL. */
static __always_inline struct verbs_call *enter_command(registers_t *registers)
{
    struct verbs_call *call = verbs_call(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (call == NULL || nest_runs(&call->create, registers))
        return NULL;
    call->create.frame = 0;
    call->queue_pair = argument(registers, 1);
    read_creation(call, argument(registers, 2));
    return call;
}

/* ibv_cmd_create_qp(protection domain, queue pair, attributes, ...) */
SEC("uprobe")
int queue_pair_command(registers_t *registers)
{
    struct verbs_call *call = enter_command(registers);
    if (call != NULL)
        ring_read(&call->device_context, sizeof call->device_context, argument(registers, 0) + OFFSET_ibv_pd_context);
    return 0;
}

/* ibv_cmd_create_qp_ex, ibv_cmd_create_qp_ex2(device context, queue pair, attributes, ...) */
SEC("uprobe")
int queue_pair_command_ex(registers_t *registers)
{
    struct verbs_call *call = enter_command(registers);
    if (call != NULL)
        call->device_context = argument(registers, 0);
    return 0;
}

/* A queue pair of the named device with a send queue there: the arguments are still what they were. */
static __always_inline bool is_plausible(const struct verbs_call *call)
{
    __u64 of_queue = 0;
    __u64 of_pair = 0;
    __u32 qpn = 0;
    bpf_probe_read_user(&qpn, sizeof qpn, (const void *)(call->queue_pair + OFFSET_ibv_qp_qp_num));
    bpf_probe_read_user(&of_pair, sizeof of_pair, (const void *)(call->queue_pair + OFFSET_ibv_qp_context));
    bpf_probe_read_user(&of_queue, sizeof of_queue, (const void *)(call->send_queue + OFFSET_ibv_cq_context));
    return qpn != 0 && qpn <= QPN_MAX && call->device_context != 0 && of_pair == call->device_context &&
           (call->send_queue == 0 || of_queue == call->device_context);
}

SEC("uretprobe")
int queue_pair_command_return(registers_t *registers)
{
    struct verbs_call *call = verbs_call(0);
    if (call == NULL || nest_runs(&call->create, registers) || call->device_context == 0)
        return 0;
    const bool made = (__s32)argument_result(registers) == 0;
    const bool plausible = made && is_plausible(call);
    call->device_context = 0;
    if (made && !plausible)
        __sync_fetch_and_add(&queue_pairs_implausible, 1);
    return plausible ? emit_creation(registers, call, call->queue_pair) : 0;
}

/* ---- changed ---- */

static __always_inline void read_path(struct event_queue_pair_modify *event, __u64 address)
{
    const __u64 route = address + OFFSET_ibv_ah_attr_grh;
    ring_read(&event->address_port, 1, address + OFFSET_ibv_ah_attr_port_num);
    ring_read(&event->service_level, 1, address + OFFSET_ibv_ah_attr_sl);
    ring_read(&event->global, 1, address + OFFSET_ibv_ah_attr_is_global);
    ring_read(&event->address_index, 1, route + OFFSET_ibv_global_route_sgid_index);
    ring_read(&event->traffic_class, 1, route + OFFSET_ibv_global_route_traffic_class);
    ring_read(event->remote_address, sizeof event->remote_address, route + OFFSET_ibv_global_route_dgid);
}

static __always_inline void read_attributes(struct event_queue_pair_modify *event, __u64 attributes)
{
    __u32 state = 0;
    __u32 path_mtu = 0;
    ring_read(&state, sizeof state, attributes + OFFSET_ibv_qp_attr_qp_state);
    ring_read(&path_mtu, sizeof path_mtu, attributes + OFFSET_ibv_qp_attr_path_mtu);
    event->state = (__u8)state;
    event->path_mtu = (__u8)path_mtu;
    ring_read(&event->remote_qpn, sizeof event->remote_qpn, attributes + OFFSET_ibv_qp_attr_dest_qp_num);
    ring_read(&event->access_flags, sizeof event->access_flags, attributes + OFFSET_ibv_qp_attr_qp_access_flags);
    ring_read(&event->port, 1, attributes + OFFSET_ibv_qp_attr_port_num);
    ring_read(&event->timeout, 1, attributes + OFFSET_ibv_qp_attr_timeout);
    ring_read(&event->retry_count, 1, attributes + OFFSET_ibv_qp_attr_retry_cnt);
    ring_read(&event->rnr_retry, 1, attributes + OFFSET_ibv_qp_attr_rnr_retry);
    ring_read(&event->min_rnr_timer, 1, attributes + OFFSET_ibv_qp_attr_min_rnr_timer);
    read_path(event, attributes + OFFSET_ibv_qp_attr_ah_attr);
}

/*
 * What is asked for is read at the entry, with the queue pair that it is asked of: a return whose own entry was missed
 * may tell a change twice, but never one queue pair's change of another.
 */
static __always_inline void keep_change(struct verbs_call *call, registers_t *registers)
{
    call->queue_pair = argument(registers, 0);
    call->change.pointer = call->queue_pair;
    call->change.mask = (__u32)argument(registers, 2);
    read_attributes(&call->change, argument(registers, 1));
}

SEC("uprobe")
int queue_pair_modify(registers_t *registers)
{
    struct verbs_call *call = verbs_call(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (call == NULL)
        return 0;
    nest_enter(&call->modify, registers);
    keep_change(call, registers);
    return 0;
}

static __always_inline int emit_change(const struct verbs_call *call)
{
    struct event_queue_pair_modify *event = ring_reserve(EVENT_QUEUE_PAIR_MODIFY, sizeof *event);
    if (event == NULL)
        return 0;
    __builtin_memcpy(&event->pointer, &call->change.pointer,
                     sizeof *event - offsetof(struct event_queue_pair_modify, pointer));
    ring_submit(event);
    return 0;
}

SEC("uretprobe")
int queue_pair_modify_return(registers_t *registers)
{
    struct verbs_call *call = verbs_call(0);
    if (call == NULL || !nest_leave(&call->modify, registers) || (__s32)argument_result(registers) != 0)
        return 0;
    return emit_change(call);
}

/* ibv_cmd_modify_qp, ibv_cmd_modify_qp_ex(queue pair, attributes, mask, ...) of no public call */
SEC("uprobe")
int queue_pair_command_modify(registers_t *registers)
{
    struct verbs_call *call = verbs_call(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (call == NULL || nest_runs(&call->modify, registers))
        return 0;
    call->modify.frame = argument_frame(registers);
    call->modify.told = 0;
    keep_change(call, registers);
    return 0;
}

SEC("uretprobe")
int queue_pair_command_modify_return(registers_t *registers)
{
    struct verbs_call *call = verbs_call(0);
    if (call == NULL || nest_runs(&call->modify, registers))
        return 0;
    const bool tells = nest_leave(&call->modify, registers) && (__s32)argument_result(registers) == 0;
    return tells ? emit_change(call) : 0;
}

/* ---- destroyed ---- */

SEC("uprobe")
int queue_pair_destroy(registers_t *registers)
{
    struct verbs_call *call = verbs_call(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (call == NULL)
        return 0;
    nest_enter(&call->destroy, registers);
    call->queue_pair = argument(registers, 0);
    call->entered_ns = bpf_ktime_get_ns();
    return 0;
}

SEC("uretprobe")
int queue_pair_destroy_return(registers_t *registers)
{
    struct verbs_call *call = verbs_call(0);
    if (call == NULL || !nest_leave(&call->destroy, registers) || (__s32)argument_result(registers) != 0)
        return 0;
    struct event_queue_pair_destroy *event = ring_reserve(EVENT_QUEUE_PAIR_DESTROY, sizeof *event);
    if (event == NULL)
        return 0;
    event->pointer = call->queue_pair;
    event->entered_ns = call->entered_ns;
    ring_submit(event);
    return 0;
}
