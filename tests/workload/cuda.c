/* SPDX-License-Identifier: BSD-2-Clause */
/* Stand-in for libcudart.so.12, on the same threads and host memory as the HIP one. */
#include "cuda.h"

#include "capture.h"
#include "device.h"
#include "event.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_READY = 600, EVENT_NAP_NS = 200000 };

struct copy {
    void *to;
    const void *from;
    size_t size_bytes;
};

API int cudaGetDevice(int *device)
{
    *device = device_current();
    return SUCCESS;
}

API int cudaSetDevice(int device)
{
    return device_select(device) ? SUCCESS : CUDA_INVALID_VALUE;
}

API int cudaGetDeviceCount(int *count)
{
    *count = device_count();
    return SUCCESS;
}

API int cudaDeviceSynchronize(void)
{
    stream_drain(stream_default(device_current()));
    return SUCCESS;
}

API int cudaMalloc(void **memory, size_t size_bytes)
{
    *memory = calloc(1, size_bytes);
    return *memory ? SUCCESS : 2;
}

API int cudaFree(void *memory)
{
    free(memory);
    return SUCCESS;
}

API int cudaMemcpy(void *to, const void *from, size_t size_bytes, int kind)
{
    (void)kind;
    memmove(to, from, size_bytes);
    return SUCCESS;
}

static void copy_run(void *argument)
{
    const struct copy *copy = argument;

    memmove(copy->to, copy->from, copy->size_bytes);
}

/* The copy's description stays, since a graph may run it again. */
API int cudaMemcpyAsync(void *to, const void *from, size_t size_bytes, int kind, void *stream)
{
    struct copy *copy = malloc(sizeof *copy);

    (void)kind;
    *copy = (struct copy){to, from, size_bytes};
    capture_push(device_stream(stream), copy_run, copy);
    return SUCCESS;
}

API int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
    (void)flags;
    *stream = stream_create(device_current());
    return SUCCESS;
}

API int cudaStreamCreate(void **stream)
{
    return cudaStreamCreateWithFlags(stream, 0);
}

API int cudaStreamDestroy(void *stream)
{
    stream_destroy(stream);
    return SUCCESS;
}

API int cudaStreamSynchronize(void *stream)
{
    stream_drain(device_stream(stream));
    return SUCCESS;
}

API int cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    event_stream_wait(event, device_stream(stream));
    return SUCCESS;
}

API int cudaStreamIsCapturing(void *stream, int *status)
{
    *status = capture_is_on(device_stream(stream)) ? CUDA_CAPTURE_ACTIVE : CUDA_CAPTURE_NONE;
    return SUCCESS;
}

API int cudaStreamBeginCapture(void *stream, int mode)
{
    (void)mode;
    return capture_begin(device_stream(stream)) ? SUCCESS : CUDA_ILLEGAL_STATE;
}

API int cudaStreamEndCapture(void *stream, void **graph)
{
    *graph = capture_end(device_stream(stream));
    return *graph ? SUCCESS : CUDA_ILLEGAL_STATE;
}

API int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags)
{
    (void)flags;
    *executable = graph_copy(graph);
    return SUCCESS;
}

API int cudaGraphLaunch(void *executable, void *stream)
{
    graph_launch(executable, device_stream(stream));
    return SUCCESS;
}

API int cudaGraphExecDestroy(void *executable)
{
    graph_free(executable);
    return SUCCESS;
}

API int cudaGraphDestroy(void *graph)
{
    graph_free(graph);
    return SUCCESS;
}

API int cudaLaunchHostFunc(void *stream, cuda_function *function, void *argument)
{
    capture_push(device_stream(stream), function, argument);
    return SUCCESS;
}

API int cudaLaunchKernel(const void *function, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments,
                         size_t shared_bytes, void *stream)
{
    (void)grid, (void)block, (void)shared_bytes;
    capture_push(device_stream(stream), (stream_work *)function, arguments ? *(void **)arguments[0] : NULL);
    return SUCCESS;
}

API int cudaEventCreateWithFlags(void **event, unsigned flags)
{
    (void)flags;
    *event = event_create();
    return SUCCESS;
}

API int cudaEventCreate(void **event)
{
    return cudaEventCreateWithFlags(event, 0);
}

API int cudaEventDestroy(void *event)
{
    event_release(event);
    return SUCCESS;
}

API int cudaEventRecord(void *event, void *stream)
{
    event_record(event, device_stream(stream));
    return SUCCESS;
}

API int cudaEventSynchronize(void *event)
{
    while (!event_is_done(event))
        nanosleep(&(struct timespec){.tv_nsec = EVENT_NAP_NS}, NULL);
    return SUCCESS;
}

API int cudaEventQuery(void *event)
{
    return event_is_done(event) ? SUCCESS : NOT_READY;
}
