/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for the GPU's runtime and driver in one library: handles count up, waits take a millisecond, and the
 * runtime asks the driver through its public entries, as the real one may.
 */
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default"), noinline))

typedef void *handle_t;
struct dimensions {
    unsigned x, y, z;
};

static uintptr_t last = 0x9000;

static handle_t next(void)
{
    return (handle_t)__atomic_add_fetch(&last, 0x10, __ATOMIC_RELAXED);
}

EXPORT int cuStreamBeginCapture_v2(handle_t stream, int mode)
{
    (void)stream;
    return mode == 9 ? 1 : 0;
}

EXPORT int cudaStreamBeginCapture(handle_t stream, int mode)
{
    return cuStreamBeginCapture_v2(stream, mode);
}

EXPORT int cuStreamEndCapture(handle_t stream, handle_t *graph)
{
    (void)stream;
    *graph = next();
    return 0;
}

EXPORT int cudaStreamEndCapture(handle_t stream, handle_t *graph)
{
    return cuStreamEndCapture(stream, graph);
}

EXPORT int cudaGraphInstantiate(handle_t *executable, handle_t graph, unsigned long long flags)
{
    (void)graph, (void)flags;
    *executable = next();
    return 0;
}

EXPORT int cuGraphLaunch(handle_t executable, handle_t stream)
{
    (void)executable, (void)stream;
    __asm__ volatile("");
    return 0;
}

EXPORT int cudaGraphLaunch(handle_t executable, handle_t stream)
{
    return cuGraphLaunch(executable, stream);
}

EXPORT int cudaStreamSynchronize_ptsz(handle_t stream)
{
    (void)stream;
    usleep(1000);
    return 0;
}

EXPORT int cudaDeviceSynchronize(void)
{
    usleep(1000);
    return 700;
}

EXPORT int cuLaunchKernel(handle_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, handle_t stream, void **arguments, void **extra)
{
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream;
    (void)arguments, (void)extra;
    __asm__ volatile("");
    return 0;
}

EXPORT int cudaLaunchKernel(const void *function, struct dimensions grid, struct dimensions block, void **arguments,
                            size_t shared, handle_t stream)
{
    return cuLaunchKernel((handle_t)(uintptr_t)function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                          (unsigned)shared, stream, arguments, NULL);
}

EXPORT int cudaMalloc(handle_t *memory, size_t bytes)
{
    (void)bytes;
    *memory = next();
    return 0;
}
