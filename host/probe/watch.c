/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: perf_event_open(2), "MMAP layout", PERF_RECORD_MMAP2, PERF_RECORD_LOST. Invariant: a ring's tail moves only
 * past whole records that have been read.
 */
#include "host/probe/watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wire/cursor.h"
#include "wire/log.h"

#define RING_PAGES   32 /* a power of 2 */
#define RECORD_BYTES 65536

struct ring {
    int descriptor;
    struct perf_event_mmap_page *page; /* MAP_FAILED = none */
};

struct watch {
    int poll;
    size_t ring_bytes;
    size_t rings_count;
    struct ring *rings;
    uint8_t record[RECORD_BYTES];
};

static int open_event(int cpu)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME,
        .mmap = 1,
        .mmap2 = 1,
        .sample_id_all = 1,
        .exclude_kernel = 1,
        .watermark = 1,
        .wakeup_watermark = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int ring_open(struct watch *watch, struct ring *ring, int cpu)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    ring->page = MAP_FAILED;
    ring->descriptor = open_event(cpu);
    if (ring->descriptor < 0)
        return errno == ENODEV ? 0 : -errno; /* this CPU is off */
    ring->page = mmap(NULL, page_bytes + watch->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->descriptor, 0);
    struct epoll_event event = {.events = EPOLLIN};
    if (ring->page == MAP_FAILED || epoll_ctl(watch->poll, EPOLL_CTL_ADD, ring->descriptor, &event) != 0)
        return -errno;
    return 0;
}

static void ring_close(const struct watch *watch, struct ring *ring)
{
    if (ring->page != MAP_FAILED)
        munmap(ring->page, (size_t)sysconf(_SC_PAGESIZE) + watch->ring_bytes);
    if (ring->descriptor >= 0)
        close(ring->descriptor);
}

int watch_open(struct watch **watch)
{
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    struct watch *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return -ENOMEM;
    fresh->ring_bytes = RING_PAGES * (size_t)sysconf(_SC_PAGESIZE);
    fresh->poll = epoll_create1(EPOLL_CLOEXEC);
    fresh->rings = calloc((size_t)cpus, sizeof *fresh->rings);
    int error = fresh->poll < 0 || fresh->rings == NULL ? -ENOMEM : 0;
    while (error == 0 && fresh->rings_count < (size_t)cpus) {
        error = ring_open(fresh, &fresh->rings[fresh->rings_count], (int)fresh->rings_count);
        fresh->rings_count++;
    }
    if (error != 0) {
        log_warning("cannot watch for new processes: perf_event_open: %s; run as root or with CAP_PERFMON, and let a "
                    "container's seccomp profile allow it",
                    strerror(-error));
        watch_close(&fresh);
        return error;
    }
    *watch = fresh;
    return 0;
}

void watch_close(struct watch **watch)
{
    if (*watch == NULL)
        return;
    for (size_t i = 0; i < (*watch)->rings_count; i++)
        ring_close(*watch, &(*watch)->rings[i]);
    free((*watch)->rings);
    if ((*watch)->poll >= 0)
        close((*watch)->poll);
    free(*watch);
    *watch = NULL;
}

int watch_descriptor(const struct watch *watch)
{
    return watch->poll;
}

static void visit_mapping(struct cursor *record, watch_visit *visit, void *context)
{
    struct mapping mapping = {0};
    const pid_t pid = (pid_t)cursor_le32(record);
    cursor_skip(record, 4); /* tid */
    mapping.start = cursor_le64(record);
    mapping.end = mapping.start + cursor_le64(record);
    mapping.file_offset = cursor_le64(record);
    mapping.file.device_major = cursor_le32(record);
    mapping.file.device_minor = cursor_le32(record);
    mapping.file.inode = cursor_le64(record);
    cursor_skip(record, 8 + 4 + 4); /* inode generation, prot, flags */
    if (record->failed || cursor_left(record) < 8)
        return;
    const size_t path_bytes = cursor_left(record) - 8;
    const char *path = (const char *)cursor_take(record, path_bytes);
    const uint64_t at_ns = cursor_le64(record);
    if (path_bytes == 0 || path[0] != '/' || path[1] == '/' || mapping.file.inode == 0)
        return; /* anonymous, [vdso], //anon */
    snprintf(mapping.path, sizeof mapping.path, "%.*s", (int)path_bytes, path);
    visit(context, pid, &mapping, at_ns);
}

static void ring_copy(const struct watch *watch, const struct ring *ring, uint64_t at, void *into, size_t length_bytes)
{
    const uint8_t *data = (const uint8_t *)ring->page + ring->page->data_offset;
    const size_t start = at % watch->ring_bytes;
    const size_t first = length_bytes < watch->ring_bytes - start ? length_bytes : watch->ring_bytes - start;
    memcpy(into, data + start, first);
    memcpy((uint8_t *)into + first, data, length_bytes - first);
}

static uint64_t ring_read(struct watch *watch, struct ring *ring, watch_visit *visit, void *context)
{
    uint64_t lost = 0;
    const uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = ring->page->data_tail;
    while (tail < head) {
        struct perf_event_header header;
        ring_copy(watch, ring, tail, &header, sizeof header);
        if (header.size < sizeof header)
            break;
        ring_copy(watch, ring, tail, watch->record, header.size);
        struct cursor record;
        cursor_init(&record, watch->record + sizeof header, header.size - sizeof header);
        if (header.type == PERF_RECORD_MMAP2)
            visit_mapping(&record, visit, context);
        if (header.type == PERF_RECORD_LOST && cursor_skip(&record, 8))
            lost += cursor_le64(&record);
        tail += header.size;
    }
    __atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
    return lost;
}

uint64_t watch_read(struct watch *watch, watch_visit *visit, void *context)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < watch->rings_count; i++)
        if (watch->rings[i].page != MAP_FAILED)
            lost += ring_read(watch, &watch->rings[i], visit, context);
    return lost;
}
