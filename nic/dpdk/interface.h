/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says of one of its interfaces. No DPDK inside. Any thread; each call asks anew. */
#pragma once

#include <stdint.h>

/* In bytes; 1500 when it is not to be had. */
unsigned interface_mtu(const char *name);

/* Frames that the interface has received and sent since it came up; 0 when that is not to be had. */
uint64_t interface_frames(const char *name);
