/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the stand-in HIP runtime that knows and launches kernels. A kernel that RCCL registers is known by its
 * name and emulated by kernel.c; any other kernel cannot be launched.
 */
#include "device.h"
#include "event.h"
#include "hip.h"
#include "kernel.h"
#include "setting.h"
#include "truth.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { SUCCESS = 0, NO_KERNEL = 98 };

/* Where ncclComm keeps the pointer to its device communicator: the first argument of a launch is the address of that
 * field. Measured (argument minus ncclComm_t); the truth's self-check shows if it is wrong. */
enum { COMM_DEVCOMM_OFFSET = 0x1b28 };

struct dim3 {
    uint32_t x, y, z;
};

struct func_attributes {
    int binary_version, cache_mode;
    size_t const_size, local_size;
    int dynamic_max, max_threads, num_regs, shared_carveout, ptx_version;
    size_t shared_size;
};

_Static_assert(sizeof(struct func_attributes) == 56 && offsetof(struct func_attributes, local_size) == 16,
               "function attributes");

struct kernel_name {
    const void *stub; /* the host function whose address stands for the kernel */
    char *name;
    struct kernel_name *next;
};

static struct kernel_name *kernels;
static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread uint64_t next_delay_us;

void **__hipRegisterFatBinary(const void *binary);
void __hipUnregisterFatBinary(void **handle);
void __hipRegisterFunction(void **handle, const void *stub, char *device_name, const char *name, unsigned limit,
                           void *tid, void *bid, void *block, void *grid, int *warp);
int __hipPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void **stream);
int hipFuncGetAttributes(struct func_attributes *attributes, const void *stub);
int hipFuncSetAttribute(const void *stub, int attribute, int value);
int hipLaunchKernel(const void *stub, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                    void *stream);
int hipExtLaunchKernel(const void *stub, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                       void *stream, void *before, void *after, int flags);

static const char *kernel_name_find(const void *stub)
{
    const char *name = NULL;

    pthread_mutex_lock(&kernels_lock);
    for (struct kernel_name *kernel = kernels; kernel && !name; kernel = kernel->next)
        if (kernel->stub == stub)
            name = kernel->name;
    pthread_mutex_unlock(&kernels_lock);
    return name;
}

API void **__hipRegisterFatBinary(const void *binary)
{
    static void *handle;

    (void)binary;
    return &handle;
}

API void __hipUnregisterFatBinary(void **handle)
{
    (void)handle;
}

API void __hipRegisterFunction(void **handle, const void *stub, char *device_name, const char *name, unsigned limit,
                               void *tid, void *bid, void *block, void *grid, int *warp)
{
    struct kernel_name *kernel = malloc(sizeof *kernel);

    (void)handle, (void)device_name, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    pthread_mutex_lock(&kernels_lock);
    *kernel = (struct kernel_name){stub, strdup(name), kernels};
    kernels = kernel;
    pthread_mutex_unlock(&kernels_lock);
    setting_say(2, "kernel %s at %p", name, stub);
}

API int __hipPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void **stream)
{
    *grid = *block = (struct dim3){1, 1, 1};
    *shared = 0;
    *stream = NULL;
    return SUCCESS;
}

API int hipFuncGetAttributes(struct func_attributes *attributes, const void *stub)
{
    (void)stub;
    *attributes = (struct func_attributes){.max_threads = 1024};
    return SUCCESS;
}

API int hipFuncSetAttribute(const void *stub, int attribute, int value)
{
    (void)stub, (void)attribute, (void)value;
    return SUCCESS;
}

API void standin_delay_next_launch(uint64_t delay_us)
{
    next_delay_us = delay_us;
}

static void launch_run(void *argument)
{
    struct launch *launch = argument;

    kernel_run(launch);
    free(launch);
}

static int launch_enqueue(const void *stub, void **arguments, void *stream)
{
    const char *name = kernel_name_find(stub);

    if (!name || !kernel_is_known(name)) {
        fprintf(stderr, "standin: cannot launch %s\n", name ? name : "a kernel that was never registered");
        return NO_KERNEL;
    }
    struct launch *launch = malloc(sizeof *launch);
    *launch = (struct launch){.devcomm = *(void **)arguments[0],
                              .channels = *(uint64_t *)arguments[1],
                              .works = *(void **)arguments[2],
                              .times = {.enqueued_ns = truth_now_ns(), .delay_us = next_delay_us}};
    next_delay_us = 0;
    launch->facts =
        facts_create((char *)arguments[0] - COMM_DEVCOMM_OFFSET, launch->devcomm, launch->channels, launch->works);
    stream_push(device_stream(stream), launch_run, launch);
    return SUCCESS;
}

API int hipLaunchKernel(const void *stub, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                        void *stream)
{
    (void)grid, (void)block, (void)shared;
    return launch_enqueue(stub, arguments, stream);
}

API int hipExtLaunchKernel(const void *stub, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                           void *stream, void *before, void *after, int flags)
{
    (void)grid, (void)block, (void)shared, (void)flags;
    if (before)
        event_record(before, device_stream(stream));
    int result = launch_enqueue(stub, arguments, stream);
    if (after)
        event_record(after, device_stream(stream));
    return result;
}
