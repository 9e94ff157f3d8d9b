/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and registrations. All but windows have no effect here: every buffer is host memory and goes through the
 * slots. */
#include "api/api.h"

#include "communicator/one_sided.h"
#include "cuda.h"

NCCL_API(ncclResult_t, MemAlloc, void **memory, size_t size_bytes)
{
    return cudaMalloc(memory, size_bytes) ? ncclUnhandledCudaError : ncclSuccess;
}

NCCL_API(ncclResult_t, MemFree, void *memory)
{
    return cudaFree(memory) ? ncclUnhandledCudaError : ncclSuccess;
}

NCCL_API(ncclResult_t, CommRegister, const ncclComm_t comm, void *memory, size_t size_bytes, void **handle)
{
    (void)size_bytes;
    if (!communicator_is_valid(comm) || !handle)
        return ncclInvalidArgument;
    *handle = memory;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommDeregister, const ncclComm_t comm, void *handle)
{
    if (!communicator_is_valid(comm))
        return ncclInvalidArgument;
    (void)handle;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommWindowRegister, ncclComm_t comm, void *memory, size_t size_bytes, ncclWindow_t *window,
         int flags)
{
    (void)flags;
    if (!communicator_is_valid(comm) || !window)
        return ncclInvalidArgument;
    return communicator_result(one_sided_register(comm, memory, size_bytes, window));
}

NCCL_API(ncclResult_t, CommWindowDeregister, ncclComm_t comm, ncclWindow_t window)
{
    if (!communicator_is_valid(comm))
        return ncclInvalidArgument;
    (void)window;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, WinGetUserPtr, ncclComm_t comm, ncclWindow_t window, void **memory)
{
    if (!communicator_is_valid(comm) || !window || !memory)
        return ncclInvalidArgument;
    *memory = window->memory;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommSuspend, ncclComm_t comm, int flags)
{
    (void)flags;
    return communicator_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

NCCL_API(ncclResult_t, CommResume, ncclComm_t comm)
{
    return communicator_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

NCCL_API(ncclResult_t, CommMemStats, ncclComm_t comm, int stat, uint64_t *value)
{
    (void)stat;
    if (!communicator_is_valid(comm) || !value)
        return ncclInvalidArgument;
    *value = 0;
    return ncclSuccess;
}
