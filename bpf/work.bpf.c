// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is posted to queue pairs and what completes: at the provider's functions that ibv_post_send and ibv_poll_cq
 * jump to. Set for a bounded time in wanted processes only. Invariant: after `work_left` hits nothing is read or told
 * any more; a poll that finds nothing is a hit too, since a poll is a loop that spins.
 */
#include "bpf/argument.h"
#include "bpf/layout.h"
#include "bpf/ring.h"

#define REQUESTS_MAX    32 /* read of one list */
#define PIECES_MAX      4  /* read of one request */
#define COMPLETIONS_MAX 32 /* read of one poll */

struct request {
    __u64 work;
    __u64 next;
    __u64 pieces;
    __s32 pieces_count;
    __u32 opcode;
};

struct piece {
    __u64 address;
    __u32 length_bytes;
    __u32 key;
};

struct completion { /* the whole of ibv_wc, so that they follow each other */
    __u64 work;
    __u32 status;
    __u32 opcode;
    __u32 vendor_error;
    __u32 length_bytes;
    __u32 immediate;
    __u32 qpn;
    __u32 from_qpn;
    __u32 flags;
    __u16 partition;
    __u16 local_id;
    __u8 level_and_path[4];
};

_Static_assert(OFFSET_ibv_send_wr_next == 8 && OFFSET_ibv_send_wr_sg_list == 16 && OFFSET_ibv_send_wr_num_sge == 24 &&
                   OFFSET_ibv_send_wr_opcode == 28,
               "request");
_Static_assert(OFFSET_ibv_sge_length == 8, "piece");
_Static_assert(OFFSET_ibv_wc_status == 8 && OFFSET_ibv_wc_opcode == 12 && OFFSET_ibv_wc_byte_len == 20 &&
                   OFFSET_ibv_wc_qp_num == 28,
               "completion");
_Static_assert(sizeof(struct completion) == 48, "completion");

struct poll {
    __u64 queue;
    __u64 completions;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct poll);
} polls SEC(".maps");

__s64 work_left = 0; /* hits that may still be; user space fills it */

static __always_inline bool is_within_budget(void)
{
    return work_left > 0 && __sync_fetch_and_add(&work_left, -1) > 0;
}

static __always_inline void add_pieces(struct event_work *event, const struct request *request)
{
    for (int i = 0; i < PIECES_MAX && i < request->pieces_count; i++) {
        struct piece piece = {};
        ring_read(&piece, sizeof piece, request->pieces + (__u64)i * sizeof piece);
        event->bytes += piece.length_bytes;
    }
    if (request->pieces_count > PIECES_MAX)
        event->flags |= EVENT_WORK_CUT;
}

/* The list's requests together; its last one names the work. */
static __always_inline void add_requests(struct event_work *event, __u64 address)
{
    for (int i = 0; i < REQUESTS_MAX && address != 0; i++) {
        struct request request = {};
        ring_read(&request, sizeof request, address);
        add_pieces(event, &request);
        event->work = request.work;
        event->opcode = (__u8)request.opcode;
        event->requests++;
        address = request.next;
    }
    if (address != 0)
        event->flags |= EVENT_WORK_CUT;
}

static __always_inline struct event_work *begin(__u64 pointer, __u8 what)
{
    struct event_work *event = ring_reserve(EVENT_WORK, sizeof *event);
    if (event == NULL)
        return NULL;
    event->pointer = pointer;
    event->work = 0;
    event->bytes = 0;
    event->qpn = 0;
    event->requests = 0;
    event->what = what;
    event->opcode = 0;
    event->status = 0;
    event->flags = 0;
    event->reserved = 0;
    return event;
}

/* post_send(queue pair, list of requests, where to say which failed) */
SEC("uprobe")
int work_post(registers_t *registers)
{
    if (!is_within_budget())
        return 0;
    struct event_work *event = begin(argument(registers, 0), EVENT_WORK_POSTED);
    if (event == NULL)
        return 0;
    add_requests(event, argument(registers, 1));
    ring_submit_lazily(event);
    return 0;
}

/* poll_cq(queue, how many at most, where to put them) */
SEC("uprobe")
int work_poll(registers_t *registers)
{
    if (!is_within_budget())
        return 0;
    struct poll *poll =
        bpf_task_storage_get(&polls, (void *)bpf_get_current_task_btf(), NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (poll == NULL)
        return 0;
    poll->queue = argument(registers, 0);
    poll->completions = argument(registers, 2);
    return 0;
}

static __always_inline void tell_completion(__u64 queue, __u64 address)
{
    struct completion completion = {};
    struct event_work *event = begin(queue, EVENT_WORK_COMPLETED);
    if (event == NULL)
        return;
    ring_read(&completion, sizeof completion, address);
    event->work = completion.work;
    event->qpn = completion.qpn;
    event->bytes = completion.length_bytes;
    event->requests = 1;
    event->opcode = (__u8)completion.opcode;
    event->status = (__u8)completion.status;
    ring_submit_lazily(event);
}

SEC("uretprobe")
int work_poll_return(registers_t *registers)
{
    const __s32 count = (__s32)argument_result(registers);
    struct poll *poll = bpf_task_storage_get(&polls, (void *)bpf_get_current_task_btf(), NULL, 0);
    if (poll == NULL || poll->completions == 0)
        return 0;
    const __u64 completions = poll->completions;
    poll->completions = 0;
    for (int i = 0; i < COMPLETIONS_MAX && i < count; i++)
        tell_completion(poll->queue, completions + (__u64)i * sizeof(struct completion));
    return 0;
}
