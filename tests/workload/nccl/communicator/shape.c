/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers follow RCCL's: chunks of four steps in slices of two, or single steps for broadcast and reduce. */
#include "communicator/shape.h"

#include "communicator/tree.h"

enum { THREADS = 256, THREAD_BYTES = 64, DEEP_CHUNK_STEPS = 4, DEEP_SLICE_STEPS = 2 };

static int function_number(const struct task *task, enum algo algo)
{
    bool reduces = task->kind != BROADCAST && task->kind != ALLGATHER;
    int row = (task->kind * NREDOPS + (reduces ? (int)task->op : SUM)) * NTYPES + (int)task->type;

    return (row * NALGOS + (int)algo) * NPROTOS + SIMPLE;
}

/* Fewer channels, then fewer threads, for what is small. */
static void shape_shrink(struct shape *shape, uint64_t bytes)
{
    while (bytes < (uint64_t)shape->channels * (uint64_t)shape->threads * THREAD_BYTES) {
        if (shape->channels > 1)
            shape->channels--;
        else if (shape->threads > 2 * WARP)
            shape->threads /= 2;
        else
            return;
    }
}

static bool is_member_of_chain(const struct ncclComm *comm, const struct task *task, bool sends)
{
    int root = task->peer, rank = comm->rank, ranks = comm->ranks;

    if (task->kind == BROADCAST)
        return sends ? (rank + 1) % ranks != root : rank != root;
    return sends ? rank != root : (rank + ranks - 1) % ranks != root;
}

/* Chunks of a tree are a step at most, and smaller where there would be few of them for its depth. */
static uint64_t tree_chunk_bytes(const struct ncclComm *comm, int channels, uint64_t bytes)
{
    static const struct {
        uint64_t chunks_a_level, least_bytes;
    } rules[] = {{8, 131072}, {4, 65536}, {1, 32768}};
    uint64_t chunk = (uint64_t)(comm->devcomm.buff_sizes[SIMPLE] / STEPS), depth = (uint64_t)tree_depth(comm->ranks);

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        while (bytes / ((uint64_t)channels * chunk) < depth * rules[i].chunks_a_level && chunk > rules[i].least_bytes)
            chunk /= 2;
    return chunk;
}

static struct shape tree_shape(const struct ncclComm *comm, const struct task *task)
{
    uint64_t element_bytes = (uint64_t)type_size_bytes((enum dtype)task->type);
    struct shape shape = {.function = function_number(task, TREE),
                          .channels = comm->channels_count,
                          .threads = THREADS,
                          .unit = 1,
                          .slice_steps = 1,
                          .is_tree = true};

    shape_shrink(&shape, task->count * element_bytes);
    shape.chunk_elements = tree_chunk_bytes(comm, shape.channels, task->count * element_bytes) / element_bytes;
    uint64_t spread = (uint64_t)shape.channels * shape.chunk_elements;
    shape.send_steps = shape.receive_steps = (task->count + spread - 1) / spread;
    return shape;
}

struct shape shape_of(const struct ncclComm *comm, const struct task *task)
{
    if (task->kind == ALLREDUCE && tree_is_wanted())
        return tree_shape(comm, task);
    bool deep = task->kind != BROADCAST && task->kind != REDUCE;
    int element_bytes = type_size_bytes((enum dtype)task->type);
    uint64_t ranks = (uint64_t)comm->ranks, step = (uint64_t)(comm->devcomm.buff_sizes[SIMPLE] / STEPS);
    uint64_t chunk = step / (uint64_t)element_bytes * (deep ? DEEP_CHUNK_STEPS : 1), spread, chunks;
    struct shape shape = {
        .function = function_number(task, RING), .channels = comm->channels_count, .threads = THREADS};
    bool many = task->kind == ALLGATHER || task->kind == REDUCESCATTER;

    shape_shrink(&shape, task->count * (uint64_t)element_bytes * (many ? ranks : 1));
    shape.unit = deep ? DEEP_CHUNK_STEPS : 1;
    shape.slice_steps = deep ? DEEP_SLICE_STEPS : 1;
    spread = (uint64_t)shape.channels * chunk * (task->kind == ALLREDUCE ? ranks : 1);
    chunks = (task->count + spread - 1) / spread;
    if (deep)
        chunks *= task->kind == ALLREDUCE ? 2 * (ranks - 1) : ranks - 1;
    shape.send_steps = deep || is_member_of_chain(comm, task, true) ? chunks * shape.unit : 0;
    shape.receive_steps = deep || is_member_of_chain(comm, task, false) ? chunks * shape.unit : 0;
    return shape;
}
