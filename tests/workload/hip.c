/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for libamdhip64.so.5: the functions of the public HIP runtime API that RCCL imports and the few that the job
 * needs, on a device made of host memory and threads. Kernels are in hip_launch.c. Layouts and numbers are those of the
 * public headers of HIP 5.
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
typedef void hip_callback(void *stream, hipError_t status, void *data);

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101 };
enum { PEER_UNSUPPORTED = 217, NOT_READY = 600, NOT_SUPPORTED = 801 };
enum { ATTRIBUTE_MAJOR = 23, ATTRIBUTE_WARP = 87, ATTRIBUTE_HDP_FLUSH = 10005 };
enum { MEMORY_HOST = 0, MEMORY_DEVICE = 1 };

struct properties { /* hipDeviceProp_t, the fields that RCCL reads */
    char name[256];
    size_t total_memory;
    char unused_1[12];
    int warp_size;
    char unused_2[48];
    int major, minor, processors;
    char unused_3[16];
    uint32_t arch;
    char unused_4[4];
    int pci_domain, pci_bus, pci_device;
    char unused_5[16];
    int gcn_arch;
    char gcn_name[256], unused_6[140];
};

_Static_assert(sizeof(struct properties) == 792 && offsetof(struct properties, major) == 328, "properties");
_Static_assert(offsetof(struct properties, arch) == 356, "properties");
_Static_assert(offsetof(struct properties, pci_domain) == 364, "properties");
_Static_assert(offsetof(struct properties, gcn_arch) == 392, "properties");

struct pointer_attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
};

struct ipc_handle {
    char reserved[64];
};

struct copy {
    void *to;
    const void *from; /* NULL: every byte becomes `value` */
    size_t size_bytes;
    int value;
};

struct callback {
    hip_callback *function;
    void *stream, *data;
};

hipError_t hipGetDeviceCount(int *count);
hipError_t hipGetDevice(int *device);
hipError_t hipDeviceGetPCIBusId(char *text, int size_bytes, int device);
hipError_t hipDeviceGetByPCIBusId(int *device, const char *text);
hipError_t hipDeviceGetAttribute(int *value, int attribute, int device);
hipError_t hipGetDeviceProperties(struct properties *properties, int device);
hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer);
hipError_t hipDeviceEnablePeerAccess(int device, unsigned flags);
const char *hipGetErrorString(hipError_t error);
hipError_t hipGetLastError(void);
hipError_t hipThreadExchangeStreamCaptureMode(int *mode);
hipError_t hipExtMallocWithFlags(void **memory, size_t size_bytes, unsigned flags);
hipError_t hipHostMalloc(void **memory, size_t size_bytes, unsigned flags);
hipError_t hipHostFree(void *memory);
hipError_t hipHostRegister(void *memory, size_t size_bytes, unsigned flags);
hipError_t hipHostUnregister(void *memory);
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags);
hipError_t hipPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer);
hipError_t hipIpcGetMemHandle(struct ipc_handle *handle, void *memory);
hipError_t hipIpcOpenMemHandle(void **memory, struct ipc_handle handle, unsigned flags);
hipError_t hipIpcCloseMemHandle(void *memory);
hipError_t hipMemcpyAsync(void *to, const void *from, size_t size_bytes, int kind, void *stream);
hipError_t hipMemcpy(void *to, const void *from, size_t size_bytes, int kind);
hipError_t hipMemsetAsync(void *to, int value, size_t size_bytes, void *stream);
hipError_t hipStreamWaitEvent(void *stream, void *event, unsigned flags);
hipError_t hipStreamAddCallback(void *stream, hip_callback *function, void *data, unsigned flags);
hipError_t hipEventCreateWithFlags(void **event, unsigned flags);
hipError_t hipEventCreate(void **event);
hipError_t hipEventDestroy(void *event);
hipError_t hipEventRecord(void *event, void *stream);
hipError_t hipEventQuery(void *event);

API hipError_t hipGetDeviceCount(int *count)
{
    *count = device_count();
    return SUCCESS;
}

API hipError_t hipGetDevice(int *device)
{
    *device = device_current();
    return SUCCESS;
}

API hipError_t hipSetDevice(int device)
{
    return device_select(device) ? SUCCESS : INVALID_DEVICE;
}

API hipError_t hipDeviceGetPCIBusId(char *text, int size_bytes, int device)
{
    if (device < 0 || device >= device_count())
        return INVALID_DEVICE;
    snprintf(text, (size_t)size_bytes, "0000:%02x:00.0", device_bus(device));
    return SUCCESS;
}

API hipError_t hipDeviceGetByPCIBusId(int *device, const char *text)
{
    char id[32];

    for (*device = 0; *device < device_count(); ++*device) {
        hipDeviceGetPCIBusId(id, sizeof id, *device);
        if (!strcasecmp(id, text))
            return SUCCESS;
    }
    return INVALID_DEVICE;
}

API hipError_t hipDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    if (attribute == ATTRIBUTE_HDP_FLUSH) { /* here a pointer is returned: there is no such register */
        memset(value, 0, sizeof(void *));
        return SUCCESS;
    }
    *value = attribute == ATTRIBUTE_MAJOR ? 9 : attribute == ATTRIBUTE_WARP ? WARP : 0;
    return SUCCESS;
}

API hipError_t hipGetDeviceProperties(struct properties *properties, int device)
{
    *properties = (struct properties){.name = "CPU stand-in",
                                      .total_memory = 8ull << 30,
                                      .warp_size = WARP,
                                      .major = 9,
                                      .processors = 64,
                                      .pci_bus = device_bus(device),
                                      .gcn_arch = 900,
                                      .gcn_name = "gfx900"};
    return SUCCESS;
}

API hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    (void)device, (void)peer;
    *can = 0;
    return SUCCESS;
}

API hipError_t hipDeviceEnablePeerAccess(int device, unsigned flags)
{
    (void)device, (void)flags;
    return PEER_UNSUPPORTED;
}

API const char *hipGetErrorString(hipError_t error)
{
    return error ? "error of the stand-in HIP runtime" : "no error";
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

static hipError_t allocate(void **memory, size_t size_bytes, bool host)
{
    *memory = memory_allocate(size_bytes, host, device_current());
    setting_say(2, "%s memory %p, %zu bytes", host ? "host" : "device", *memory, size_bytes);
    return *memory ? SUCCESS : OUT_OF_MEMORY;
}

API hipError_t hipMalloc(void **memory, size_t size_bytes)
{
    return allocate(memory, size_bytes, false);
}

API hipError_t hipExtMallocWithFlags(void **memory, size_t size_bytes, unsigned flags)
{
    (void)flags;
    return allocate(memory, size_bytes, false);
}

API hipError_t hipHostMalloc(void **memory, size_t size_bytes, unsigned flags)
{
    (void)flags;
    return allocate(memory, size_bytes, true);
}

API hipError_t hipFree(void *memory)
{
    return memory_free(memory) ? SUCCESS : INVALID_VALUE;
}

API hipError_t hipHostFree(void *memory)
{
    return memory_free(memory) ? SUCCESS : INVALID_VALUE;
}

API hipError_t hipHostRegister(void *memory, size_t size_bytes, unsigned flags)
{
    (void)flags;
    memory_register(memory, size_bytes);
    return SUCCESS;
}

API hipError_t hipHostUnregister(void *memory)
{
    return memory_unregister(memory) ? SUCCESS : INVALID_VALUE;
}

API hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    *device = host;
    return SUCCESS;
}

API hipError_t hipPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer)
{
    struct memory_block block;

    if (!memory_find(pointer, &block))
        return INVALID_VALUE;
    *attributes = (struct pointer_attributes){.type = block.host ? MEMORY_HOST : MEMORY_DEVICE,
                                              .device = block.device,
                                              .device_pointer = (void *)pointer,
                                              .host_pointer = block.host ? (void *)pointer : NULL};
    return SUCCESS;
}

/* Nobody can open the handle: there is no access to peers. */
API hipError_t hipIpcGetMemHandle(struct ipc_handle *handle, void *memory)
{
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &memory, sizeof memory);
    return SUCCESS;
}

API hipError_t hipIpcOpenMemHandle(void **memory, struct ipc_handle handle, unsigned flags)
{
    (void)memory, (void)handle, (void)flags;
    return NOT_SUPPORTED;
}

API hipError_t hipIpcCloseMemHandle(void *memory)
{
    (void)memory;
    return SUCCESS;
}

static void copy_run(void *argument)
{
    struct copy *copy = argument;

    if (copy->from)
        memmove(copy->to, copy->from, copy->size_bytes);
    else
        memset(copy->to, copy->value, copy->size_bytes);
    free(copy);
}

static hipError_t copy_push(struct copy copy, void *stream)
{
    struct copy *kept = malloc(sizeof *kept);

    *kept = copy;
    stream_push(device_stream(stream), copy_run, kept);
    return SUCCESS;
}

API hipError_t hipMemcpyAsync(void *to, const void *from, size_t size_bytes, int kind, void *stream)
{
    (void)kind;
    return size_bytes ? copy_push((struct copy){to, from, size_bytes, 0}, stream) : SUCCESS;
}

API hipError_t hipMemcpy(void *to, const void *from, size_t size_bytes, int kind)
{
    hipMemcpyAsync(to, from, size_bytes, kind, NULL);
    stream_drain(device_stream(NULL));
    return SUCCESS;
}

API hipError_t hipMemsetAsync(void *to, int value, size_t size_bytes, void *stream)
{
    return copy_push((struct copy){to, NULL, size_bytes, value}, stream);
}

API hipError_t hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    (void)flags;
    *stream = stream_create(device_current());
    return SUCCESS;
}

API hipError_t hipStreamDestroy(void *stream)
{
    stream_destroy(stream);
    return SUCCESS;
}

API hipError_t hipStreamSynchronize(void *stream)
{
    stream_drain(device_stream(stream));
    return SUCCESS;
}

API hipError_t hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    event_stream_wait(event, device_stream(stream));
    return SUCCESS;
}

static void callback_run(void *argument)
{
    struct callback *callback = argument;

    callback->function(callback->stream, SUCCESS, callback->data);
    free(callback);
}

API hipError_t hipStreamAddCallback(void *stream, hip_callback *function, void *data, unsigned flags)
{
    struct callback *callback = malloc(sizeof *callback);

    (void)flags;
    *callback = (struct callback){function, stream, data};
    stream_push(device_stream(stream), callback_run, callback);
    return SUCCESS;
}

API hipError_t hipEventCreateWithFlags(void **event, unsigned flags)
{
    (void)flags;
    *event = event_create();
    return SUCCESS;
}

API hipError_t hipEventCreate(void **event)
{
    return hipEventCreateWithFlags(event, 0);
}

API hipError_t hipEventDestroy(void *event)
{
    event_release(event);
    return SUCCESS;
}

API hipError_t hipEventRecord(void *event, void *stream)
{
    event_record(event, device_stream(stream));
    return SUCCESS;
}

API hipError_t hipEventQuery(void *event)
{
    return event_is_done(event) ? SUCCESS : NOT_READY;
}
