/* SPDX-License-Identifier: BSD-2-Clause */
/* The stand-in device's memory, which is host memory: what was allocated or registered, and for whom. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_block {
    uintptr_t at;
    size_t size_bytes;
    bool host;
    int device;
    struct memory_block *next;
};

/* Zeroed memory, or NULL. Freed with memory_free. */
void *memory_allocate(size_t size_bytes, bool host, int device);

/* False when no allocation began there; NULL is fine. */
bool memory_free(void *memory);

void memory_register(void *memory, size_t size_bytes);
bool memory_unregister(void *memory);

/* Copies the description of the block that holds the address; false when there is none. */
bool memory_find(const void *address, struct memory_block *found);
