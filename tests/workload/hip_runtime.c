/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for libamdhip64.so.5: the functions of the public HIP runtime API that RCCL imports and the few that the job
 * needs, on a device made of host memory and threads. Kernels are in hip_launch.c.
 */
#include "hip.h"

#include "device.h"
#include "event.h"
#include "memory.h"
#include "rccl_layout.h"
#include "setting.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define API __attribute__((visibility("default")))
typedef int hipError_t;
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101 };
enum { PEER_UNSUPPORTED = 217, NOT_READY = 600, NOT_SUPPORTED = 801 };
enum { ATTR_MAJOR = 23, ATTR_MINOR = 61, ATTR_WARP = 87, ATTR_HDP_FLUSH = 10005 };

struct properties { /* hipDeviceProp_t of HIP 5, the fields RCCL reads */
    char name[256];
    size_t total_memory;
    char a[12];
    int warp_size;
    char b[48];
    int major, minor, processors;
    char c[16];
    uint32_t arch;
    char d[4];
    int pci_domain, pci_bus, pci_device;
    char e[16];
    int gcn_arch;
    char gcn_name[256], f[140];
};
_Static_assert(sizeof(struct properties) == 792 && offsetof(struct properties, major) == 328, "properties");
_Static_assert(offsetof(struct properties, arch) == 356 && offsetof(struct properties, pci_domain) == 364,
               "properties");
_Static_assert(offsetof(struct properties, gcn_arch) == 392, "properties");

struct pointer_attributes {
    int type, device; /* type 0: host, 1: device */
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
};

struct ipc_handle {
    char reserved[64];
};

API hipError_t hipGetDeviceCount(int *n)
{
    *n = device_count();
    return SUCCESS;
}

API hipError_t hipGetDevice(int *d)
{
    *d = device_current();
    return SUCCESS;
}

API hipError_t hipSetDevice(int d)
{
    return device_select(d) ? SUCCESS : INVALID_DEVICE;
}

API hipError_t hipDeviceGetPCIBusId(char *text, int size, int d)
{
    if (d < 0 || d >= device_count())
        return INVALID_DEVICE;
    snprintf(text, (size_t)size, "0000:%02x:00.0", device_bus(d));
    return SUCCESS;
}

API hipError_t hipDeviceGetByPCIBusId(int *d, const char *text)
{
    char id[32];
    for (*d = 0; *d < device_count(); ++*d) {
        hipDeviceGetPCIBusId(id, sizeof id, *d);
        if (!strcasecmp(id, text))
            return SUCCESS;
    }
    return INVALID_DEVICE;
}

API hipError_t hipDeviceGetAttribute(int *value, int attribute, int d)
{
    (void)d;
    if (attribute == ATTR_HDP_FLUSH) { /* by this one a pointer is returned: there is no such register here */
        memset(value, 0, sizeof(void *));
        return SUCCESS;
    }
    *value = attribute == ATTR_MAJOR ? 9 : attribute == ATTR_WARP ? WARP : 0;
    return SUCCESS;
}

API hipError_t hipGetDeviceProperties(struct properties *p, int d)
{
    *p = (struct properties){.name = "CPU stand-in",
                             .total_memory = 8ull << 30,
                             .warp_size = WARP,
                             .major = 9,
                             .processors = 64,
                             .pci_bus = device_bus(d),
                             .gcn_arch = 900,
                             .gcn_name = "gfx900"};
    return SUCCESS;
}

API hipError_t hipDeviceCanAccessPeer(int *can, int a, int b)
{
    (void)a, (void)b;
    *can = 0;
    return SUCCESS;
}

API hipError_t hipDeviceEnablePeerAccess(int d, unsigned flags)
{
    (void)d, (void)flags;
    return PEER_UNSUPPORTED;
}

API const char *hipGetErrorString(hipError_t e)
{
    return e ? "error of the stand-in HIP runtime" : "no error";
}

API hipError_t hipGetLastError(void)
{
    return SUCCESS;
}

API hipError_t hipThreadExchangeStreamCaptureMode(int *mode)
{
    (void)mode;
    return SUCCESS;
}

static hipError_t allocate(void **p, size_t size, bool host)
{
    *p = memory_allocate(size, host, device_current());
    setting_say(2, "%s memory %p, %zu bytes", host ? "host" : "device", *p, size);
    return *p ? SUCCESS : OUT_OF_MEMORY;
}

API hipError_t hipMalloc(void **p, size_t size)
{
    return allocate(p, size, false);
}

API hipError_t hipExtMallocWithFlags(void **p, size_t size, unsigned flags)
{
    (void)flags;
    return allocate(p, size, false);
}

API hipError_t hipHostMalloc(void **p, size_t size, unsigned flags)
{
    (void)flags;
    return allocate(p, size, true);
}

API hipError_t hipFree(void *p)
{
    return memory_free(p) ? SUCCESS : INVALID_VALUE;
}

API hipError_t hipHostFree(void *p)
{
    return memory_free(p) ? SUCCESS : INVALID_VALUE;
}

API hipError_t hipHostRegister(void *p, size_t size, unsigned flags)
{
    (void)flags;
    memory_register(p, size);
    return SUCCESS;
}

API hipError_t hipHostUnregister(void *p)
{
    return memory_unregister(p) ? SUCCESS : INVALID_VALUE;
}

API hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    *device = host;
    return SUCCESS;
}

API hipError_t hipPointerGetAttributes(struct pointer_attributes *a, const void *p)
{
    struct memory_block b;
    if (!memory_find(p, &b))
        return INVALID_VALUE;
    *a = (struct pointer_attributes){.type = b.host ? 0 : 1, .device = b.device, .device_pointer = (void *)p};
    if (b.host)
        a->host_pointer = (void *)p;
    return SUCCESS;
}

API hipError_t hipIpcGetMemHandle(struct ipc_handle *h, void *p)
{ /* nobody can open it: there is no peer access */
    memset(h, 0, sizeof *h);
    memcpy(h, &p, sizeof p);
    return SUCCESS;
}

API hipError_t hipIpcOpenMemHandle(void **p, struct ipc_handle h, unsigned flags)
{
    (void)p, (void)h, (void)flags;
    return NOT_SUPPORTED;
}

API hipError_t hipIpcCloseMemHandle(void *p)
{
    (void)p;
    return SUCCESS;
}

struct copy {
    void *to;
    const void *from;
    size_t size;
    int value;
};

static void do_copy(void *arg)
{
    struct copy *c = arg;
    if (c->from)
        memmove(c->to, c->from, c->size);
    else
        memset(c->to, c->value, c->size);
    free(c);
}

static hipError_t push_copy(struct copy c, void *stream)
{
    struct copy *kept = malloc(sizeof *kept);
    *kept = c;
    stream_push(device_stream(stream), do_copy, kept);
    return SUCCESS;
}

API hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream)
{
    (void)kind;
    return size ? push_copy((struct copy){to, from, size, 0}, stream) : SUCCESS;
}

API hipError_t hipMemcpy(void *to, const void *from, size_t size, int kind)
{
    hipMemcpyAsync(to, from, size, kind, NULL);
    stream_drain(device_stream(NULL));
    return SUCCESS;
}

API hipError_t hipMemsetAsync(void *to, int value, size_t size, void *stream)
{
    return push_copy((struct copy){to, NULL, size, value}, stream);
}

API hipError_t hipStreamCreateWithFlags(void **s, unsigned flags)
{
    (void)flags;
    *s = stream_create(device_current());
    return SUCCESS;
}

API hipError_t hipStreamDestroy(void *s)
{
    stream_destroy(s);
    return SUCCESS;
}

API hipError_t hipStreamSynchronize(void *s)
{
    stream_drain(device_stream(s));
    return SUCCESS;
}

API hipError_t hipStreamWaitEvent(void *s, void *event, unsigned flags)
{
    (void)flags;
    event_stream_wait(event, device_stream(s));
    return SUCCESS;
}

struct callback {
    void (*fn)(void *stream, hipError_t status, void *data);
    void *stream, *data;
};

static void callback_run(void *arg)
{
    struct callback *c = arg;
    c->fn(c->stream, SUCCESS, c->data);
    free(c);
}

API hipError_t hipStreamAddCallback(void *s, void (*fn)(void *, hipError_t, void *), void *data, unsigned flags)
{
    (void)flags;
    struct callback *c = malloc(sizeof *c);
    *c = (struct callback){fn, s, data};
    stream_push(device_stream(s), callback_run, c);
    return SUCCESS;
}

API hipError_t hipEventCreateWithFlags(void **e, unsigned flags)
{
    (void)flags;
    *e = event_create();
    return SUCCESS;
}

API hipError_t hipEventCreate(void **e)
{
    return hipEventCreateWithFlags(e, 0);
}

API hipError_t hipEventDestroy(void *e)
{
    event_release(e);
    return SUCCESS;
}

API hipError_t hipEventRecord(void *e, void *s)
{
    event_record(e, device_stream(s));
    return SUCCESS;
}

API hipError_t hipEventQuery(void *e)
{
    return event_is_done(e) ? SUCCESS : NOT_READY;
}
