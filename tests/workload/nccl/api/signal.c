/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided calls. They are enqueued at once, also within a group. */
#include "api/api.h"

#include "communicator/one_sided.h"

#include <errno.h>

static bool call_is_fit(const struct ncclComm *comm, int peer, int signal)
{
    return communicator_is_valid(comm) && !comm->is_revoked && peer >= 0 && peer < comm->ranks && signal >= 0 &&
           signal < SIGNALS_MAX;
}

NCCL_API(ncclResult_t, PutSignal, const void *from, size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
         size_t offset, int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream)
{
    (void)context, (void)flags;
    if (!call_is_fit(comm, peer, signal) || type < ncclInt8 || type > ncclBfloat16)
        return ncclInvalidArgument;
    size_t size_bytes = count * (size_t)type_size_bytes((enum dtype)type);
    return communicator_result(one_sided_put(comm, peer, from, size_bytes, window, offset, signal, stream));
}

NCCL_API(ncclResult_t, Signal, int peer, int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream)
{
    (void)context, (void)flags;
    if (!call_is_fit(comm, peer, signal))
        return ncclInvalidArgument;
    return communicator_result(one_sided_put(comm, peer, NULL, 0, NULL, 0, signal, stream));
}

NCCL_API(ncclResult_t, WaitSignal, int waits_count, ncclWaitSignalDesc_t *waits, ncclComm_t comm, cudaStream_t stream)
{
    int error = communicator_is_valid(comm) ? 0 : -EINVAL;

    for (int i = 0; i < waits_count && !error; i++)
        error = one_sided_wait(comm, &waits[i], stream);
    return communicator_result(error);
}
