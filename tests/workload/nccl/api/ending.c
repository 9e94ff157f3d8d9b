/* SPDX-License-Identifier: BSD-2-Clause */
/* What ends communicators. The service thread destroys the queue pairs. */
#include "api/api.h"

#include "communicator/communicator.h"

NCCL_API(ncclResult_t, CommFinalize, ncclComm_t comm)
{
    if (!communicator_is_valid(comm) || comm->is_finalized)
        return ncclInvalidArgument;
    communicator_drain(comm);
    comm->is_finalized = 1;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommDestroy, ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    if (!communicator_is_valid(comm))
        return ncclInvalidArgument;
    communicator_drain(comm);
    communicator_free(comm);
    return ncclSuccess;
}

static void operations_abort(ncclComm_t comm)
{
    comm->kernel_abort_flag = 1;
    comm->abort_flag = 1;
}

NCCL_API(ncclResult_t, CommAbort, ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    if (!communicator_is_valid(comm))
        return ncclInvalidArgument;
    operations_abort(comm);
    communicator_free(comm);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommRevoke, ncclComm_t comm, int flags)
{
    if (!communicator_is_valid(comm) || flags)
        return ncclInvalidArgument;
    comm->is_revoked = 1;
    comm->kernel_abort_flag = 1;
    return ncclSuccess;
}
