/* SPDX-License-Identifier: BSD-2-Clause */
/* A memfd for each lane: counters and operations first, then the buffer. */
#include "proxy/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, WAIT_NS = 100000 };
enum { REGION_BYTES = (sizeof(struct lane_region) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES };

static size_t lane_bytes(int step_bytes)
{
    return REGION_BYTES + (size_t)step_bytes * STEPS;
}

static int lane_map(struct lane *lane, int fd, int step_bytes)
{
    void *memory = mmap(NULL, lane_bytes(step_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return -errno;
    *lane =
        (struct lane){.region = memory, .buffer = (char *)memory + REGION_BYTES, .fd = fd, .step_bytes = step_bytes};
    return 0;
}

int lane_create(struct lane *lane, int step_bytes)
{
    int fd = memfd_create("lane", MFD_CLOEXEC);

    if (fd < 0)
        return -errno;
    int error = ftruncate(fd, (off_t)lane_bytes(step_bytes)) ? -errno : lane_map(lane, fd, step_bytes);
    if (error)
        close(fd);
    return error;
}

int lane_attach(struct lane *lane, int pid, int fd, int step_bytes)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    int mine = open(path, O_RDWR | O_CLOEXEC);
    if (mine < 0)
        return -errno;
    int error = lane_map(lane, mine, step_bytes);
    if (error)
        close(mine);
    return error;
}

void lane_close(struct lane *lane)
{
    if (!lane->region)
        return;
    munmap(lane->region, lane_bytes(lane->step_bytes));
    close(lane->fd);
    lane->region = NULL;
}

void lane_describe(const struct lane *lane, struct conn *conn)
{
    memset(conn, 0, sizeof *conn);
    conn->buffs[SIMPLE] = lane->buffer;
    conn->head = &lane->region->head;
    conn->tail = &lane->region->tail;
    conn->sizes_fifo = lane->region->sizes;
}

void lane_push(struct lane *lane, uint64_t unit, uint64_t steps, uint32_t slice_steps)
{
    struct lane_region *region = lane->region;
    uint64_t base = (lane->next_step + unit - 1) / unit * unit, pushed = region->pushed;

    while (pushed - region->finished >= LANE_OPS)
        nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
    region->ops[pushed % LANE_OPS] = (struct lane_op){base, steps, slice_steps};
    region->pushed = pushed + 1;
    lane->next_step = base + steps;
}

const struct lane_op *lane_peek(const struct lane *lane)
{
    const struct lane_region *region = lane->region;

    return region->pushed == region->finished ? NULL : &region->ops[region->finished % LANE_OPS];
}

void lane_finish(struct lane *lane)
{
    lane->region->finished++;
}

char *lane_slot(const struct lane *lane, uint64_t step)
{
    return lane->buffer + step % STEPS * (uint64_t)lane->step_bytes;
}
