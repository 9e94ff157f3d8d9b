/* SPDX-License-Identifier: BSD-2-Clause */
/* Data calls. Each is a group of its own when no group is open. */
#include "api/api.h"

#include "communicator/group.h"

static bool task_is_fit(const struct ncclComm *comm, const struct task *task)
{
    bool has_peer = task->kind >= NCOLLS || task->kind == BROADCAST || task->kind == REDUCE;

    return communicator_is_valid(comm) && !comm->is_revoked && task->type >= ncclInt8 && task->type <= ncclBfloat16 &&
           task->op >= ncclSum && task->op <= ncclMin && (!has_peer || (task->peer >= 0 && task->peer < comm->ranks));
}

static ncclResult_t task_call(struct ncclComm *comm, const struct task *task, cudaStream_t stream)
{
    if (!task_is_fit(comm, task))
        return group_is_open() ? group_fail(ncclInvalidArgument) : ncclInvalidArgument;
    if (comm->async_result != ncclSuccess && !group_is_open())
        return (ncclResult_t)comm->async_result;
    group_open();
    group_add_task(comm, task, stream);
    return group_close();
}

NCCL_API(ncclResult_t, AllReduce, const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
         ncclComm_t comm, cudaStream_t stream)
{
    return task_call(comm, &(struct task){ALLREDUCE, from, to, count, type, op, -1}, stream);
}

NCCL_API(ncclResult_t, ReduceScatter, const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
         ncclComm_t comm, cudaStream_t stream)
{
    return task_call(comm, &(struct task){REDUCESCATTER, from, to, count, type, op, -1}, stream);
}

NCCL_API(ncclResult_t, AllGather, const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
         cudaStream_t stream)
{
    return task_call(comm, &(struct task){ALLGATHER, from, to, count, type, ncclSum, -1}, stream);
}

NCCL_API(ncclResult_t, Broadcast, const void *from, void *to, size_t count, ncclDataType_t type, int root,
         ncclComm_t comm, cudaStream_t stream)
{
    return task_call(comm, &(struct task){BROADCAST, from, to, count, type, ncclSum, root}, stream);
}

NCCL_API(ncclResult_t, Bcast, void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
         cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

NCCL_API(ncclResult_t, Reduce, const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
         ncclComm_t comm, cudaStream_t stream)
{
    return task_call(comm, &(struct task){REDUCE, from, to, count, type, op, root}, stream);
}

NCCL_API(ncclResult_t, Send, const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
         cudaStream_t stream)
{
    return task_call(comm, &(struct task){TASK_SEND, from, NULL, count, type, ncclSum, peer}, stream);
}

NCCL_API(ncclResult_t, Recv, void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
         cudaStream_t stream)
{
    return task_call(comm, &(struct task){TASK_RECEIVE, NULL, to, count, type, ncclSum, peer}, stream);
}

/* The place of a peer's part in a buffer of all parts. */
static char *part_at(const void *buffer, int peer, size_t count, ncclDataType_t type)
{
    return (char *)buffer + (size_t)peer * count * (size_t)type_size_bytes((enum dtype)type);
}

static void send_add(struct ncclComm *comm, const void *from, size_t count, ncclDataType_t type, int peer,
                     cudaStream_t stream)
{
    group_add_task(comm, &(struct task){TASK_SEND, from, NULL, count, type, ncclSum, peer}, stream);
}

static void receive_add(struct ncclComm *comm, void *to, size_t count, ncclDataType_t type, int peer,
                        cudaStream_t stream)
{
    group_add_task(comm, &(struct task){TASK_RECEIVE, NULL, to, count, type, ncclSum, peer}, stream);
}

static bool exchange_is_fit(const struct ncclComm *comm, ncclDataType_t type, int root)
{
    const struct task like = {.kind = TASK_SEND, .type = type, .peer = root};

    return task_is_fit(comm, &like);
}

NCCL_API(ncclResult_t, AlltoAll, const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
         cudaStream_t stream)
{
    if (!exchange_is_fit(comm, type, 0))
        return ncclInvalidArgument;
    group_open();
    for (int peer = 0; peer < comm->ranks; peer++) {
        send_add(comm, part_at(from, peer, count, type), count, type, peer, stream);
        receive_add(comm, part_at(to, peer, count, type), count, type, peer, stream);
    }
    return group_close();
}

NCCL_API(ncclResult_t, Gather, const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
         cudaStream_t stream)
{
    if (!exchange_is_fit(comm, type, root))
        return ncclInvalidArgument;
    group_open();
    send_add(comm, from, count, type, root, stream);
    for (int peer = 0; comm->rank == root && peer < comm->ranks; peer++)
        receive_add(comm, part_at(to, peer, count, type), count, type, peer, stream);
    return group_close();
}

NCCL_API(ncclResult_t, Scatter, const void *from, void *to, size_t count, ncclDataType_t type, int root,
         ncclComm_t comm, cudaStream_t stream)
{
    if (!exchange_is_fit(comm, type, root))
        return ncclInvalidArgument;
    group_open();
    for (int peer = 0; comm->rank == root && peer < comm->ranks; peer++)
        send_add(comm, part_at(from, peer, count, type), count, type, peer, stream);
    receive_add(comm, to, count, type, root, stream);
    return group_close();
}
