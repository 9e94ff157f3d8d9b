/* SPDX-License-Identifier: BSD-2-Clause */
/* One list of blocks under one lock: a job has a few hundred. */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096 };

static struct memory_block *blocks;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static void block_add(void *memory, size_t size_bytes, bool host, int device)
{
    struct memory_block *block = malloc(sizeof *block);

    *block = (struct memory_block){(uintptr_t)memory, size_bytes, host, device, NULL};
    pthread_mutex_lock(&blocks_lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&blocks_lock);
}

/* The size of the block that began there, 0 if none did. */
static size_t block_remove(void *memory)
{
    size_t size_bytes = 0;

    pthread_mutex_lock(&blocks_lock);
    for (struct memory_block **at = &blocks; *at; at = &(*at)->next) {
        struct memory_block *block = *at;
        if (block->at != (uintptr_t)memory)
            continue;
        *at = block->next;
        size_bytes = block->size_bytes;
        free(block);
        break;
    }
    pthread_mutex_unlock(&blocks_lock);
    return size_bytes;
}

void *memory_allocate(size_t size_bytes, bool host, int device)
{
    size_t rounded_bytes = ((size_bytes ? size_bytes : 1) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    void *memory = mmap(NULL, rounded_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    block_add(memory, rounded_bytes, host, device);
    return memory;
}

bool memory_free(void *memory)
{
    if (!memory)
        return true;
    size_t size_bytes = block_remove(memory);
    return size_bytes && munmap(memory, size_bytes) == 0;
}

void memory_register(void *memory, size_t size_bytes)
{
    block_add(memory, size_bytes, true, 0);
}

bool memory_unregister(void *memory)
{
    return block_remove(memory) != 0;
}

bool memory_find(const void *address, struct memory_block *found)
{
    bool is_found = false;

    pthread_mutex_lock(&blocks_lock);
    for (struct memory_block *block = blocks; block && !is_found; block = block->next) {
        if ((uintptr_t)address - block->at >= block->size_bytes)
            continue;
        *found = *block;
        is_found = true;
    }
    pthread_mutex_unlock(&blocks_lock);
    return is_found;
}
