/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: bpf(2), perf_event_open(2), <linux/bpf.h> of Linux 6.6 (BPF_LINK_CREATE with BPF_TRACE_UPROBE_MULTI), whose
 * layout stands here because an older system's header lacks it. Invariant: closing a link is all that it takes to take
 * its probes away.
 */
#include "host/probe/attachment.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MULTIPLE_RETURN 1 /* BPF_F_UPROBE_MULTI_RETURN */
#define CLOSERS_MAX     64

/* The part of union bpf_attr that BPF_LINK_CREATE reads. */
struct link_attributes {
    uint32_t program;
    uint32_t target;
    uint32_t attach_type;
    uint32_t flags;
    union {
        struct {
            uint64_t cookie;
        } perf_event;
        struct {
            uint64_t path;
            uint64_t offsets;
            uint64_t reference_offsets;
            uint64_t cookies;
            uint32_t count;
            uint32_t flags;
            uint32_t pid;
        } multiple;
    };
};

static int create_link(const struct link_attributes *attributes)
{
    const int descriptor = (int)syscall(SYS_bpf, BPF_LINK_CREATE, attributes, sizeof *attributes);
    return descriptor < 0 ? -errno : descriptor;
}

/* A program that returns 0. */
static int load_nothing(void)
{
    static const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_type = BPF_PROG_TYPE_KPROBE;
    attributes.insns = (uint64_t)(uintptr_t)code;
    attributes.insn_cnt = sizeof code / sizeof code[0];
    attributes.license = (uint64_t)(uintptr_t) "Dual BSD/GPL";
    attributes.expected_attach_type = ATTACHMENT_MULTIPLE;
    return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
}

/* A kernel that knows such links says of a folder that it is no file; an older one that it knows no such link. */
bool attachment_multiple_is_possible(void)
{
    const uint64_t offset = 0;
    const int program = load_nothing();
    if (program < 0)
        return false;
    const struct link_attributes attributes = {
        .program = (uint32_t)program,
        .attach_type = ATTACHMENT_MULTIPLE,
        .multiple = {.path = (uint64_t)(uintptr_t) "/", .offsets = (uint64_t)(uintptr_t)&offset, .count = 1},
    };
    const int error = create_link(&attributes);
    close(program);
    return error == -EBADF;
}

#define PATH_BYTES 32

static void write_path(const struct attachment *attachment, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "/proc/self/fd/%d", attachment->file);
}

static int open_multiple(const struct attachment *attachment)
{
    char path[PATH_BYTES];
    uint64_t *cookies = calloc(attachment->offsets_count, sizeof *cookies);
    if (cookies == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < attachment->offsets_count; i++)
        cookies[i] = attachment->cookie;
    write_path(attachment, path);
    const struct link_attributes attributes = {
        .program = (uint32_t)attachment->program,
        .attach_type = ATTACHMENT_MULTIPLE,
        .multiple =
            {
                .path = (uint64_t)(uintptr_t)path,
                .offsets = (uint64_t)(uintptr_t)attachment->offsets,
                .cookies = (uint64_t)(uintptr_t)cookies,
                .count = (uint32_t)attachment->offsets_count,
                .flags = attachment->at_return ? MULTIPLE_RETURN : 0,
                .pid = (uint32_t)attachment->pid,
            },
    };
    const int link = create_link(&attributes);
    free(cookies);
    return link;
}

/* "7\n", "config:0\n": the number in a file of /sys. */
static int read_number(const char *path, const char *format, uint32_t *number)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -errno;
    const bool read = fscanf(file, format, number) == 1;
    fclose(file);
    return read ? 0 : -ENOENT;
}

static int open_event(const struct attachment *attachment)
{
    char path[PATH_BYTES];
    uint32_t type;
    uint32_t return_bit = 0;
    int error = read_number("/sys/bus/event_source/devices/uprobe/type", "%u", &type);
    if (error == 0 && attachment->at_return)
        error = read_number("/sys/bus/event_source/devices/uprobe/format/retprobe", "config:%u", &return_bit);
    if (error != 0)
        return error;
    write_path(attachment, path);
    struct perf_event_attr attributes = {
        .size = sizeof attributes,
        .type = type,
        .config = attachment->at_return ? 1ULL << return_bit : 0,
        .uprobe_path = (uint64_t)(uintptr_t)path,
        .probe_offset = attachment->offsets[0],
    };
    const pid_t pid = attachment->pid == 0 ? -1 : attachment->pid;
    const int descriptor =
        (int)syscall(SYS_perf_event_open, &attributes, pid, pid < 0 ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

/* The link holds the event. */
static int open_one(const struct attachment *attachment)
{
    const int event = open_event(attachment);
    if (event < 0)
        return event;
    const struct link_attributes attributes = {
        .program = (uint32_t)attachment->program,
        .target = (uint32_t)event,
        .attach_type = BPF_PERF_EVENT,
        .perf_event.cookie = attachment->cookie,
    };
    const int link = create_link(&attributes);
    close(event);
    return link;
}

/* A program that was loaded for one place of the kernel. */
static int open_own_place(const struct attachment *attachment)
{
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.raw_tracepoint.prog_fd = (uint32_t)attachment->program;
    const int link = (int)syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attributes, sizeof attributes);
    return link < 0 ? -errno : link;
}

int attachment_open(const struct attachment *attachment, bool multiple)
{
    if (attachment->file < 0)
        return open_own_place(attachment);
    return multiple ? open_multiple(attachment) : open_one(attachment);
}

struct closer {
    const int *links;
    size_t count;
    size_t first;
    size_t step;
    pthread_t thread;
};

static void *close_some(void *argument)
{
    const struct closer *closer = argument;
    for (size_t i = closer->first; i < closer->count; i += closer->step)
        close(closer->links[i]);
    return NULL;
}

void attachment_close(const int *links, size_t count)
{
    struct closer closers[CLOSERS_MAX];
    size_t started = 0;
    const size_t wanted = count < CLOSERS_MAX ? count : CLOSERS_MAX;
    for (size_t i = 0; i < wanted; i++)
        closers[i] = (struct closer){.links = links, .count = count, .first = i, .step = wanted};
    while (started + 1 < wanted && pthread_create(&closers[started].thread, NULL, close_some, &closers[started]) == 0)
        started++;
    for (size_t i = started; i < wanted; i++)
        close_some(&closers[i]);
    for (size_t i = 0; i < started; i++)
        pthread_join(closers[i].thread, NULL);
}
