/* SPDX-License-Identifier: BSD-2-Clause */
/* The stand-in's devices: how many (STANDIN_DEVICES), at which PCI bus (STANDIN_BUS), and each thread's current one. */
#pragma once

#include "stream.h"

#include <stdbool.h>

int device_count(void);
int device_bus(int device);
int device_current(void);

/* False when there is no such device. */
bool device_select(int device);

/* The stream behind a hipStream_t; NULL is the current device's default stream. */
struct stream *device_stream(void *handle);
