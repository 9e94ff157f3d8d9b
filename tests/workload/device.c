/* SPDX-License-Identifier: BSD-2-Clause */
/* As in HIP, the current device belongs to the thread and is 0 at first. */
#include "device.h"

#include "setting.h"

#include <stddef.h>

static __thread int current;

int device_count(void)
{
    return setting_read("STANDIN_DEVICES", 1);
}

int device_bus(int device)
{
    return (setting_read("STANDIN_BUS", 0xc1) & 0xff) + device;
}

int device_current(void)
{
    return current;
}

bool device_select(int device)
{
    if (device < 0 || device >= device_count())
        return false;
    current = device;
    return true;
}

struct stream *device_stream(void *handle)
{
    return handle ? handle : stream_default(current);
}
