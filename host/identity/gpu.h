/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which GPUs are a process's, as far as files tell: by the device files that it holds open, and by what CUDA was told
 * to show. GPUs are named by PCI address, "0000:3b:00.0". Tried on trees made by hand: never on a machine with GPUs.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "host/identity/text.h"

#define GPU_ADDRESS_BYTES 32
#define GPUS_MAX          64

/* `number` counts from 0, or is the CUDA device's. */
typedef void gpu_visit(void *context, unsigned number, const char *address);

/* NVIDIA's and AMD's GPUs whose device file the process holds open, each once. `root`: "", or a tree with proc and sys.
 */
void gpu_each_open(const char *root, pid_t pid, gpu_visit *visit, void *context);

/*
 * The devices that CUDA_VISIBLE_DEVICES lists: by UUID, and by number only where numbers follow PCI addresses
 * (`by_address`: CUDA_DEVICE_ORDER says so, and the process sees all of the machine's GPUs).
 */
void gpu_each_visible(const char *root, struct text visible, bool by_address, gpu_visit *visit, void *context);
