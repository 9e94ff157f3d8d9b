/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions. Rank, count and device are plain loads from the communicator, as a decoder of their code expects them. */
#include "api/api.h"

#include "communicator/communicator.h"

NCCL_API(ncclResult_t, GetVersion, int *version)
{
    if (!version)
        return ncclInvalidArgument;
    *version = NCCL_VERSION_NUMBER;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, GetUniqueId, ncclUniqueId *id)
{
    return id ? communicator_result(bootstrap_root_start(id)) : ncclInvalidArgument;
}

NCCL_API(const char *, GetErrorString, ncclResult_t result)
{
    static const char *const texts[ncclNumResults] = {"no error",
                                                      "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                                      "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                                      "internal error",
                                                      "invalid argument",
                                                      "invalid usage",
                                                      "remote process exited or there was a network error",
                                                      "NCCL operation in progress"};

    return result >= 0 && result < ncclNumResults ? texts[result] : "unknown result code";
}

NCCL_API(const char *, GetLastError, ncclComm_t comm)
{
    (void)comm;
    return "";
}

NCCL_API(ncclResult_t, CommCount, const ncclComm_t comm, int *count)
{
    if (!communicator_is_valid(comm) || !count)
        return ncclInvalidArgument;
    *count = comm->ranks;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommCuDevice, const ncclComm_t comm, int *device)
{
    if (!communicator_is_valid(comm) || !device)
        return ncclInvalidArgument;
    *device = comm->cuda_device;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommUserRank, const ncclComm_t comm, int *rank)
{
    if (!communicator_is_valid(comm) || !rank)
        return ncclInvalidArgument;
    *rank = comm->rank;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommGetAsyncError, ncclComm_t comm, ncclResult_t *error)
{
    if (!communicator_is_valid(comm) || !error)
        return ncclInvalidArgument;
    *error = (ncclResult_t)comm->async_result;
    if (*error == ncclSuccess && comm->service && comm->service->progress.error)
        *error = communicator_result(comm->service->progress.error);
    return ncclSuccess;
}

/* Only the built-in reductions are emulated. */
NCCL_API(ncclResult_t, RedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar, ncclDataType_t type, int residence,
         ncclComm_t comm)
{
    (void)op, (void)scalar, (void)type, (void)residence, (void)comm;
    return ncclInvalidUsage;
}

NCCL_API(ncclResult_t, RedOpDestroy, ncclRedOp_t op, ncclComm_t comm)
{
    (void)op;
    return communicator_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

NCCL_API(void, ResetDebugInit, void)
{
}
