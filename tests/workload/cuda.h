/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the CUDA runtime's ABI that the stand-in libcudart.so.12 has: what the stand-in NCCL needs and what the
 * exercise calls. 0 is success. A kernel is a host function that gets its first argument's value; it runs on the
 * stream's thread. Memory is host memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cuda_dim3 {
    unsigned x, y, z;
};

typedef void cuda_function(void *argument);

enum { CUDA_CAPTURE_NONE, CUDA_CAPTURE_ACTIVE, CUDA_INVALID_VALUE = 1, CUDA_ILLEGAL_STATE = 401 };

int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaGetDeviceCount(int *count);
int cudaDeviceSynchronize(void);
int cudaMalloc(void **memory, size_t size_bytes);
int cudaFree(void *memory);
int cudaMemcpy(void *to, const void *from, size_t size_bytes, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t size_bytes, int kind, void *stream);
int cudaStreamCreate(void **stream);
int cudaStreamCreateWithFlags(void **stream, unsigned flags);
int cudaStreamDestroy(void *stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
int cudaStreamIsCapturing(void *stream, int *status);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *executable, void *stream);
int cudaGraphExecDestroy(void *executable);
int cudaGraphDestroy(void *graph);
int cudaLaunchKernel(const void *function, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments,
                     size_t shared_bytes, void *stream);
int cudaLaunchHostFunc(void *stream, cuda_function *function, void *argument);
int cudaEventCreate(void **event);
int cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventDestroy(void *event);
int cudaEventRecord(void *event, void *stream);
int cudaEventSynchronize(void *event);
int cudaEventQuery(void *event);
