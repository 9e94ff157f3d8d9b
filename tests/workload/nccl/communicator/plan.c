/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends and receives follow a schedule that all ranks share: in round i a rank sends to the i-th rank after it and
 * receives from the i-th before it.
 */
#include "communicator/plan.h"

#include "communicator/shape.h"
#include "cuda.h"
#include "kernel.h"
#include "setting.h"
#include "truth.h"

#include <stdlib.h>
#include <string.h>

enum { P2P_CHUNK_BYTES = 128 << 10, P2P_PART_BYTES = 32 << 10 };

struct push {
    struct wire *wire;
    uint64_t unit, steps;
    uint32_t slice_steps;
};

struct copy { /* what a communicator of one rank does */
    void *to;
    const void *from;
    size_t size_bytes;
};

struct list {
    struct work *works;
    int count;
};

struct plan {
    struct ncclComm *comm;
    struct list lists[CHANNELS_MAX];
    struct work *works; /* all lists in one piece */
    uint64_t channels;
    struct push *pushes;
    int pushes_count;
    struct copy *copies;
    int copies_count;
    bool is_captured;
};

static void work_add(struct plan *plan, int channel, const struct work *work)
{
    struct list *list = &plan->lists[channel];

    list->works = realloc(list->works, (size_t)(list->count + 1) * sizeof *work);
    list->works[list->count++] = *work;
    plan->channels |= 1ul << channel;
}

static void push_add(struct plan *plan, struct wire *wire, const struct shape *shape, uint64_t steps)
{
    if (!steps)
        return;
    plan->pushes = realloc(plan->pushes, (size_t)(plan->pushes_count + 1) * sizeof *plan->pushes);
    plan->pushes[plan->pushes_count++] = (struct push){wire, shape->unit, steps, shape->slice_steps};
}

static void copy_add(struct plan *plan, void *to, const void *from, size_t size_bytes)
{
    plan->copies = realloc(plan->copies, (size_t)(plan->copies_count + 1) * sizeof *plan->copies);
    plan->copies[plan->copies_count++] = (struct copy){to, from, size_bytes};
}

static void tree_push(struct plan *plan, int channel, const struct shape *shape)
{
    const struct tree *tree = &plan->comm->channels[channel].tree;
    const int peers[] = {tree->up, tree->down[0], tree->down[1], tree->down[2]};

    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++)
        for (int sends = 0; peers[i] >= 0 && sends < 2; sends++)
            push_add(plan, communicator_wire(plan->comm, channel, peers[i], 0, sends), shape, shape->send_steps);
}

static void collective_add(struct plan *plan, const struct task *task)
{
    struct ncclComm *comm = plan->comm;
    struct shape shape = shape_of(comm, task);
    struct work work = {.type = WORK_COLL, .func = (uint16_t)shape.function};

    work.coll = (struct coll_elem){.is_used = 1,
                                   .nwarps = (uint8_t)(shape.threads / WARP) & 31,
                                   .nchannels = (uint8_t)shape.channels,
                                   .root = (uint32_t)(task->peer < 0 ? 0 : task->peer) & 0xfffffff,
                                   .sendbuff = task->from,
                                   .recvbuff = task->to,
                                   .count = task->count,
                                   .last_chunk_size = shape.chunk_elements,
                                   .op_count = comm->operations_count++};
    for (int i = 0; i < shape.channels; i++) {
        const struct channel *channel = &comm->channels[i];
        work.coll.bid = (uint8_t)i;
        work_add(plan, i, &work);
        if (shape.is_tree) {
            tree_push(plan, i, &shape);
            continue;
        }
        push_add(plan, communicator_wire(comm, i, channel->ring.prev, 0, false), &shape, shape.receive_steps);
        push_add(plan, communicator_wire(comm, i, channel->ring.next, 0, true), &shape, shape.send_steps);
    }
}

static void p2p_elem_set(struct p2p_elem *elem, const struct task *task, int peer, int64_t from, int64_t bytes)
{
    bool sends = task && task->kind == TASK_SEND;
    uintptr_t at = task ? (uintptr_t)(sends ? task->from : task->to) + (uintptr_t)from : 0;

    *elem = (struct p2p_elem){.peer = task ? peer : -1,
                              .conn_index = P2P_CONN,
                              .type = !task   ? P2P_UNUSED
                                      : sends ? P2P_SEND
                                              : P2P_RECV,
                              .nwarps = 1,
                              .ngroups = 1,
                              .buff_hi = (uint32_t)(at >> 32),
                              .buff_lo = (uint32_t)at,
                              .count_hi = (uint32_t)((uint64_t)bytes >> 32),
                              .count_lo = (uint32_t)bytes,
                              .chunk_size = P2P_CHUNK_BYTES};
}

static int64_t task_bytes(const struct task *task)
{
    return task ? (int64_t)task->count * type_size_bytes((enum dtype)task->type) : 0;
}

static void p2p_push(struct plan *plan, const struct task *task, int channel, int64_t bytes)
{
    static const struct shape single = {.unit = 1, .slice_steps = 1};
    uint64_t steps = bytes ? (uint64_t)(bytes + P2P_CHUNK_BYTES - 1) / P2P_CHUNK_BYTES : 1;

    if (task && task->peer != plan->comm->rank)
        push_add(plan, communicator_wire(plan->comm, channel, task->peer, P2P_CONN, task->kind == TASK_SEND), &single,
                 steps);
}

/* In how many parts a message goes; both its ends come to the same number. */
static int parts_of(const struct ncclComm *comm, int64_t bytes)
{
    int64_t parts = (bytes + P2P_PART_BYTES - 1) / P2P_PART_BYTES;

    return parts < 1 ? 1 : parts > comm->channels_count ? comm->channels_count : (int)parts;
}

/* Parts take turns on the channels of a pair of ranks; RCCL in the lab has one. */
static int part_channel(const struct ncclComm *comm, int round, int part)
{
    int channels = setting_read("NCCL_NCHANNELS_PER_NET_PEER", 1);

    return (round + part % (channels < 1 ? 1 : channels)) % comm->channels_count;
}

static int64_t part_at(int64_t bytes, int parts, int part)
{
    int64_t each = ((bytes + parts - 1) / parts + 511) / 512 * 512, at = each * part;

    return at < bytes ? at : bytes;
}

static bool pair_is_with(const struct p2p_elem *pair, const struct p2p_elem *other)
{
    return (pair[0].type != P2P_UNUSED && other[0].type != P2P_UNUSED && pair[0].peer == other[0].peer) ||
           (pair[1].type != P2P_UNUSED && other[1].type != P2P_UNUSED && pair[1].peer == other[1].peer);
}

/* Into the channel's last work, whose pairs all run at the same time, so no two of them with one peer; else a new one.
 */
static void pair_place(struct plan *plan, int channel, const struct p2p_elem *pair)
{
    struct list *list = &plan->lists[channel];
    struct work *last = list->count ? &list->works[list->count - 1] : NULL;
    struct work fresh = {.type = WORK_P2P, .func = FUNC_P2P};
    int at = 0;

    for (; last && last->type == WORK_P2P && at < P2P_ELEMS; at += 2) {
        if (last->p2p[at].type == P2P_UNUSED && last->p2p[at + 1].type == P2P_UNUSED) {
            memcpy(&last->p2p[at], pair, 2 * sizeof *pair);
            return;
        }
        if (pair_is_with(&last->p2p[at], pair))
            break;
    }
    memcpy(fresh.p2p, pair, 2 * sizeof *pair);
    work_add(plan, channel, &fresh);
}

/* One send and one receive of a round, either of which may be missing. Parts beyond a message's own are left out. */
static void pair_add(struct plan *plan, const struct task *send, const struct task *receive, int round)
{
    struct ncclComm *comm = plan->comm;
    int64_t bytes[2] = {task_bytes(receive), task_bytes(send)};
    int parts[2] = {parts_of(comm, bytes[0]), parts_of(comm, bytes[1])},
        most = parts[0] > parts[1] ? parts[0] : parts[1];
    const struct task *tasks[2] = {receive, send};

    for (int part = 0; part < most; part++) {
        int channel = part_channel(comm, round, part);
        struct p2p_elem pair[2];
        for (int i = 0; i < 2; i++) {
            const struct task *task = part < parts[i] ? tasks[i] : NULL;
            int64_t at = part_at(bytes[i], parts[i], part), length = part_at(bytes[i], parts[i], part + 1) - at;
            p2p_elem_set(&pair[i], task, task ? task->peer : -1, at, length);
            p2p_push(plan, task, channel, length);
        }
        pair_place(plan, channel, pair);
    }
}

static const struct task *p2p_next(const struct tasks *tasks, int kind, int peer, int *from)
{
    for (int i = *from; i < tasks->count; i++) {
        *from = i + 1;
        if (tasks->items[i].kind == kind && tasks->items[i].peer == peer)
            return &tasks->items[i];
    }
    return NULL;
}

static void p2p_add(struct plan *plan, const struct tasks *tasks)
{
    int rank = plan->comm->rank, ranks = plan->comm->ranks;

    for (int round = 0; round < ranks; round++) {
        int to = (rank + round) % ranks, from = (rank + ranks - round) % ranks, next_send = 0, next_receive = 0;
        for (;;) {
            const struct task *send = p2p_next(tasks, TASK_SEND, to, &next_send);
            const struct task *receive = p2p_next(tasks, TASK_RECEIVE, from, &next_receive);
            if (!send && !receive)
                break;
            if (round == 0 && send && receive)
                copy_add(plan, receive->to, send->from, (size_t)task_bytes(send));
            else
                pair_add(plan, send, receive, round);
        }
    }
}

/* First works of all channels first, then the rest; `next` leads from one to the other. */
static void works_flatten(struct plan *plan)
{
    int total = 0, used = 0, number = 0;

    for (int i = 0; i < CHANNELS_MAX; i++) {
        total += plan->lists[i].count;
        used += plan->lists[i].count > 0;
    }
    plan->works = calloc((size_t)total + 1, sizeof *plan->works);
    for (int i = 0; i < CHANNELS_MAX; i++) {
        struct list *list = &plan->lists[i];
        struct work *at = list->count ? &plan->works[number++] : NULL;
        for (int k = 0; k < list->count; k++) {
            *at = list->works[k];
            at->is_last = k == list->count - 1;
            if (at->is_last)
                break;
            at->next = used;
            at = &plan->works[used++];
        }
        free(list->works);
    }
}

static void plan_free(struct plan *plan)
{
    free(plan->works);
    free(plan->pushes);
    free(plan->copies);
    free(plan);
}

/* On the stream's thread: the kernel itself. A captured plan is run again, and never freed. */
static void plan_run(void *argument)
{
    struct plan *plan = argument;
    struct launch launch = {.devcomm = &plan->comm->devcomm,
                            .channels = plan->channels,
                            .works = plan->works,
                            .times = {.enqueued_ns = truth_now_ns()}};

    plan->comm->plans_running += plan->is_captured;
    for (int i = 0; i < plan->copies_count; i++)
        memmove(plan->copies[i].to, plan->copies[i].from, plan->copies[i].size_bytes);
    if (plan->channels) {
        launch.facts = facts_create(plan->comm, launch.devcomm, launch.channels, launch.works);
        kernel_run(&launch);
    }
    atomic_int *running = &plan->comm->plans_running;
    if (!plan->is_captured)
        plan_free(plan);
    --*running;
}

static void plan_push(void *argument)
{
    struct plan *plan = argument;

    for (int i = 0; i < plan->pushes_count; i++)
        lane_push(&plan->pushes[i].wire->lane, plan->pushes[i].unit, plan->pushes[i].steps,
                  plan->pushes[i].slice_steps);
}

static void plan_fill(struct plan *plan, const struct tasks *tasks)
{
    for (int i = 0; i < tasks->count; i++) {
        const struct task *task = &tasks->items[i];
        if (task->kind >= NCOLLS || !task->count)
            continue;
        if (plan->comm->ranks > 1)
            collective_add(plan, task);
        else if (task->to != task->from)
            copy_add(plan, task->to, task->from, (size_t)task_bytes(task));
    }
    p2p_add(plan, tasks);
    works_flatten(plan);
}

ncclResult_t plan_launch(struct ncclComm *comm)
{
    struct plan *plan = calloc(1, sizeof *plan);
    void *argument = plan, *arguments[] = {&argument}, *stream = comm->tasks.stream;
    struct cuda_dim3 one = {1, 1, 1};
    int capture = CUDA_CAPTURE_NONE;

    plan->comm = comm;
    plan_fill(plan, &comm->tasks);
    tasks_clear(&comm->tasks);
    cudaStreamIsCapturing(stream, &capture);
    plan->is_captured = capture != CUDA_CAPTURE_NONE;
    comm->plans_running += !plan->is_captured;
    if (plan->is_captured)
        cudaLaunchHostFunc(stream, plan_push, plan);
    else
        plan_push(plan);
    return cudaLaunchKernel((const void *)plan_run, one, one, arguments, 0, stream) ? ncclUnhandledCudaError
                                                                                    : ncclSuccess;
}
