/* SPDX-License-Identifier: BSD-2-Clause */
/* Anonymous mappings, on huge pages where the kernel can. Invariant: the mapping is the
 * size, rounded up to whole huge pages. */
#include "nic/window/pages.h"

#include <stdint.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

static size_t round_up(size_t bytes)
{
    return (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

void *pages_create(size_t bytes)
{
    size_t wanted = round_up(bytes);
    uint8_t *mapped =
        mmap(NULL, wanted + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (mapped == MAP_FAILED)
        return NULL;
    size_t before = round_up((uintptr_t)mapped) - (uintptr_t)mapped;
    if (before != 0)
        munmap(mapped, before);
    if (before != HUGE_BYTES)
        munmap(mapped + before + wanted, HUGE_BYTES - before);
    if (bytes >= HUGE_BYTES)
        madvise(mapped + before, wanted,
                MADV_HUGEPAGE); /* both are wishes: an older kernel faults the pages in later */
    madvise(mapped + before, bytes, MADV_POPULATE_WRITE);
    return mapped + before;
}

void pages_prepare(void *memory, size_t bytes)
{
    madvise(memory, bytes, MADV_POPULATE_WRITE); /* a wish: Linux before 5.14 takes them at their first use */
}

void pages_destroy(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, round_up(bytes));
}
