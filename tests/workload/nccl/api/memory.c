/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and registrations, which have no effect here: every buffer is host memory and goes through the slots. */
#include "api/api.h"

#include "communicator/communicator.h"
#include "cuda.h"

#include <stdlib.h>

struct ncclWindow {
    void *memory;
    size_t size_bytes;
};

NCCL_API(ncclResult_t, MemAlloc, void **memory, size_t size_bytes)
{
    return cudaMalloc(memory, size_bytes) ? ncclUnhandledCudaError : ncclSuccess;
}

NCCL_API(ncclResult_t, MemFree, void *memory)
{
    return cudaFree(memory) ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t window_new(ncclComm_t comm, void *memory, size_t size_bytes, struct ncclWindow **window)
{
    if (!communicator_is_valid(comm) || !window)
        return ncclInvalidArgument;
    *window = malloc(sizeof **window);
    **window = (struct ncclWindow){memory, size_bytes};
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommRegister, const ncclComm_t comm, void *memory, size_t size_bytes, void **handle)
{
    return window_new(comm, memory, size_bytes, (struct ncclWindow **)handle);
}

NCCL_API(ncclResult_t, CommDeregister, const ncclComm_t comm, void *handle)
{
    if (!communicator_is_valid(comm))
        return ncclInvalidArgument;
    free(handle);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommWindowRegister, ncclComm_t comm, void *memory, size_t size_bytes, ncclWindow_t *window,
         int flags)
{
    (void)flags;
    return window_new(comm, memory, size_bytes, window);
}

NCCL_API(ncclResult_t, CommWindowDeregister, ncclComm_t comm, ncclWindow_t window)
{
    if (!communicator_is_valid(comm))
        return ncclInvalidArgument;
    free(window);
    return ncclSuccess;
}
