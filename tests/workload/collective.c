/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sizes of chunks and rounds follow RCCL's device code, since its proxies expect exactly these. Names as there:
 * a loop is one round of all channels, a chunk what a channel moves in one ring step of it.
 */
#include "collective.h"

struct task { /* one collective on one channel */
    const struct channel *channel;
    const struct coll_elem *elem;
    struct func func;
    struct links links;
    int64_t size, chunk, loop; /* elements in all, in one step at most, in one round of all channels */
    int threads, ranks;
};

typedef void ring_step(struct task *task, int64_t at, int64_t length);

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t step_bytes(const struct devcomm *devcomm, enum proto proto)
{
    int64_t step = devcomm->buff_sizes[proto] / STEPS;

    return proto == LL ? step / 2 : proto == LL128 ? step / 8 * 7 : step;
}

/* What the kernel makes the unit of a chunk in the protocols with flags, for the ring algorithm. */
static int64_t chunk_unit(const struct task *task)
{
    enum coll coll = task->func.coll;
    bool half = task->func.proto == LL128 && (coll == ALLREDUCE || coll == ALLGATHER || coll == REDUCESCATTER);

    return (int64_t)task->threads * ((task->func.proto == LL ? 8 : 28) / task->links.elem_bytes) / (half ? 2 : 1);
}

/* How many elements one ring step takes when `left` are to be done. */
static int64_t chunk_now(const struct task *task, int64_t left)
{
    int64_t parts = task->elem->nchannels * (task->func.coll == ALLREDUCE ? task->ranks : 1), unit = chunk_unit(task);

    if (task->func.proto == SIMPLE) {
        int64_t round = task->threads * 8 / task->links.elem_bytes;
        return divide_up(min64(task->chunk, divide_up(left, parts)), round) * round;
    }
    if (task->func.proto == LL && task->func.coll != ALLREDUCE)
        return left < task->loop ? (int64_t)task->elem->last_chunk_size : task->chunk;
    return min64(task->chunk, divide_up(left, parts * unit) * unit);
}

static const char *input_at(const struct task *task, int64_t element)
{
    return task->elem->sendbuff + element * task->links.elem_bytes;
}

static char *output_at(const struct task *task, int64_t element)
{
    return task->elem->recvbuff + element * task->links.elem_bytes;
}

static void ring_allreduce(struct task *task, int64_t at, int64_t chunk)
{
    int ranks = task->ranks, me = task->channel->ring.index, channel = task->elem->bid;

    for (int step = 0; step < 2 * ranks - 1; step++) {
        int part = (me + 2 * ranks - 1 - step) % ranks; /* whose part passes here in this step */
        int64_t place = task->func.proto == SIMPLE ? (int64_t)channel * ranks + part
                                                   : (int64_t)part * task->elem->nchannels + channel;
        int64_t first = at + place * chunk, length = min64(chunk, task->size - first);
        const char *input = step < ranks ? input_at(task, first) : NULL;
        char *output = step >= ranks - 1 ? output_at(task, first) : NULL;
        links_move(&task->links, step > 0, step < 2 * ranks - 2, input, output, length);
    }
}

static void ring_allgather(struct task *task, int64_t at, int64_t length)
{
    const int *ring = task->channel->ring.user_ranks;
    char *mine = output_at(task, at + ring[0] * task->size);

    links_move(&task->links, false, true, input_at(task, at), input_at(task, at) == mine ? NULL : mine, length);
    for (int step = 1; step < task->ranks; step++) {
        char *output = output_at(task, at + ring[task->ranks - step] * task->size);
        links_move(&task->links, true, step < task->ranks - 1, NULL, output, length);
    }
}

static void ring_reducescatter(struct task *task, int64_t at, int64_t length)
{
    const int *ring = task->channel->ring.user_ranks;

    for (int step = 1; step < task->ranks; step++) {
        const char *input = input_at(task, at + ring[task->ranks - step] * task->size);
        links_move(&task->links, step > 1, true, input, NULL, length);
    }
    links_move(&task->links, true, false, input_at(task, at + ring[0] * task->size), output_at(task, at), length);
}

static void ring_broadcast(struct task *task, int64_t at, int64_t length)
{
    const int *ring = task->channel->ring.user_ranks, root = (int)task->elem->root;
    bool in_place = task->elem->sendbuff == task->elem->recvbuff;

    if (ring[0] == root)
        links_move(&task->links, false, true, input_at(task, at), in_place ? NULL : output_at(task, at), length);
    else
        links_move(&task->links, true, ring[1] != root, NULL, output_at(task, at), length);
}

static void ring_reduce(struct task *task, int64_t at, int64_t length)
{
    int root = (int)task->elem->root;
    bool first = task->channel->ring.user_ranks[task->ranks - 1] == root;
    bool last = task->links.place->devcomm->rank == root;

    links_move(&task->links, !first, !last, input_at(task, at), last ? output_at(task, at) : NULL, length);
}

static void ring_run(struct task *task)
{
    static ring_step *const steps[] = {ring_broadcast, ring_reduce, ring_allgather, ring_reducescatter};
    int conn = task->func.proto == SIMPLE ? (int)task->elem->conn_index : 0;

    links_open(&task->links, conn, &task->channel->ring.prev, 1, &task->channel->ring.next, 1);
    for (int64_t at = 0; at < task->size && !task->links.aborted; at += task->loop) {
        int64_t chunk = chunk_now(task, task->size - at), mine = at + task->elem->bid * chunk;
        if (task->func.coll == ALLREDUCE)
            ring_allreduce(task, at, chunk);
        else
            steps[task->func.coll](task, mine, min64(chunk, task->size - mine));
    }
    links_close(&task->links);
}

static int64_t tree_chunk(const struct task *task)
{
    int grain = task->func.proto == LL128 ? 28 : 8;
    int64_t unit = task->func.proto == SIMPLE ? (int64_t)task->threads * 8 * (8 / task->links.elem_bytes)
                                              : (int64_t)task->threads * (grain / task->links.elem_bytes) /
                                                    (task->func.proto == LL128 ? 8 : 1);

    if (task->loop <= task->size)
        return task->chunk;
    return divide_up(task->size, task->elem->nchannels * unit) * unit;
}

/* All-reduce over the tree: first everything up to the root, then down again. */
static void tree_run(struct task *task)
{
    const struct tree *tree = &task->channel->tree;
    bool root = tree->up < 0, leaf = tree->down[0] < 0;
    int64_t chunk = tree_chunk(task), first = task->elem->bid * chunk;

    links_open(&task->links, 0, tree->down, TREE_ARITY, &tree->up, 1);
    for (int64_t at = first; at - first < task->size; at += task->loop)
        links_move(&task->links, !leaf, !root, input_at(task, at), root ? output_at(task, at) : NULL,
                   min64(chunk, task->size - at));
    links_close(&task->links);
    links_open(&task->links, 0, &tree->up, 1, tree->down, TREE_ARITY);
    for (int64_t at = first; at - first < task->size; at += task->loop)
        links_move(&task->links, !root, !leaf, root ? output_at(task, at) : NULL, root ? NULL : output_at(task, at),
                   min64(chunk, task->size - at));
    links_close(&task->links);
}

void collective_run(const struct place *place)
{
    const struct coll_elem *elem = &place->work->coll;
    struct func func = func_decode(place->work->func);
    bool is_ring = func.algo == RING;
    bool deep = is_ring && func.coll != BROADCAST && func.coll != REDUCE; /* these pipeline 2 slices of 2 steps */
    struct task task = {.channel = place->channel, .elem = elem, .func = func, .ranks = place->devcomm->nranks};

    task.threads = elem->nwarps * WARP;
    task.size = (int64_t)elem->count;
    task.links = (struct links){.place = place, .proto = func.proto, .redop = func.redop, .type = func.type};
    task.links.elem_bytes = type_size_bytes(func.type);
    task.links.slices = task.links.steps = deep ? 2 : 1;
    task.chunk =
        step_bytes(place->devcomm, func.proto) / task.links.elem_bytes * (func.proto == SIMPLE && deep ? 4 : 1);
    if (!is_ring && func.proto != LL)
        task.chunk = (int64_t)elem->last_chunk_size;
    task.loop = elem->nchannels * task.chunk * (func.coll == ALLREDUCE && is_ring ? task.ranks : 1);
    if (is_ring)
        ring_run(&task);
    else
        tree_run(&task);
}
