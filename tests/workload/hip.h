/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the stand-in HIP runtime that the job itself calls. The hip* functions are those of the public HIP
 * runtime API (0 is success); the standin_* one exists in the stand-in only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int hipSetDevice(int device);
int hipMalloc(void **memory, size_t size_bytes);
int hipFree(void *memory);
int hipStreamCreateWithFlags(void **stream, unsigned flags);
int hipStreamSynchronize(void *stream);
int hipStreamDestroy(void *stream);

/* The next kernel that the calling thread launches begins `delay_us` late on its stream: a late GPU. */
void standin_delay_next_launch(uint64_t delay_us);
