/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a block device. */
#include "disk.h"

#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096, APART_BYTES = 1 << 18 };

static const char path[] = "/dev/nullb0";
static const off_t span_bytes = (off_t)1 << 30;
static off_t next_bytes; /* one rank has a fault */

static void disk_fail(const char *what)
{
    fprintf(stderr, "train: %s: cannot %s: %s\n", path, what, strerror(errno));
    _exit(1);
}

static int disk_open(int flags)
{
    int disk = open(path, O_RDONLY | O_CLOEXEC | flags);

    if (disk < 0)
        disk_fail("open it (modprobe null_blk)");
    return disk;
}

static off_t place_take(void)
{
    off_t place = next_bytes;

    next_bytes = (next_bytes + APART_BYTES) % span_bytes;
    return place;
}

void disk_read_for(uint64_t duration_ns)
{
    uint64_t until_ns = truth_now_ns() + duration_ns;
    int disk = disk_open(O_DIRECT);
    void *block;

    if (posix_memalign(&block, BLOCK_BYTES, BLOCK_BYTES))
        disk_fail("get memory for a block");
    while (truth_now_ns() < until_ns)
        if (pread(disk, block, BLOCK_BYTES, place_take()) != BLOCK_BYTES)
            disk_fail("read");
    free(block);
    close(disk);
}

void disk_touch_for(uint64_t duration_ns)
{
    uint64_t until_ns = truth_now_ns() + duration_ns;
    int disk = disk_open(0);
    volatile const char *pages = mmap(NULL, (size_t)span_bytes, PROT_READ, MAP_SHARED, disk, 0);

    if (pages == MAP_FAILED || madvise((void *)pages, (size_t)span_bytes, MADV_RANDOM))
        disk_fail("map it");
    while (truth_now_ns() < until_ns)
        (void)pages[place_take()];
    munmap((void *)pages, (size_t)span_bytes);
    close(disk);
}
