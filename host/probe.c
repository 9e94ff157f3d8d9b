/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: libbpf 1.1's documentation, bpf(2), perf_event_open(2). A library is named to the kernel by
 * /proc/self/fd/N, so that what was read is what is probed. Invariant: links_count links are set.
 */
#include "host/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/qpscope.skel.h"
#include "host/rights.h"
#include "wire/clock.h"
#include "wire/log.h"

#define CLOCK_READINGS 50
#define FILE_TRIES     100

struct probe {
    struct qpscope *kernel;
    struct ring_buffer *ring;
    struct bpf_link **links;
    size_t links_count;
    size_t links_capacity;
    probe_sink *sink;
    void *context;
};

static int print_library_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    if (level == LIBBPF_WARN)
        log_debug("%s", text);
    return 0;
}

static int deliver(void *context, void *event, size_t length_bytes)
{
    const struct probe *probe = context;
    probe->sink(probe->context, event, length_bytes);
    return 0;
}

static uint64_t ring_bytes(uint64_t wanted_bytes)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    while (bytes < wanted_bytes)
        bytes *= 2;
    return bytes;
}

static int load(struct probe *probe, const struct probe_options *options)
{
    const uint64_t buffer_bytes = ring_bytes(options->buffer_bytes);
    probe->kernel = qpscope__open();
    if (probe->kernel == NULL)
        return -errno;
    probe->kernel->rodata->wake_bytes = buffer_bytes / 4;
    int error = bpf_map__set_max_entries(probe->kernel->maps.events, (uint32_t)buffer_bytes);
    if (error == 0)
        error = qpscope__load(probe->kernel);
    if (error == 0)
        error = qpscope__attach(probe->kernel); /* tp_btf only: a uprobe's section names no place */
    if (error != 0)
        return error;
    probe->ring = ring_buffer__new(bpf_map__fd(probe->kernel->maps.events), deliver, probe, NULL);
    return probe->ring == NULL ? -errno : 0;
}

int probe_open(struct probe **probe, const struct probe_options *options)
{
    struct probe *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the probes");
    fresh->sink = options->sink;
    fresh->context = options->context;
    libbpf_set_print(print_library_message);
    const int error = load(fresh, options);
    if (error != 0) {
        log_error("cannot load the probes: %s", strerror(-error));
        rights_explain();
        probe_close(&fresh);
        return error;
    }
    *probe = fresh;
    return 0;
}

void probe_close(struct probe **probe)
{
    if (*probe == NULL)
        return;
    for (size_t i = 0; i < (*probe)->links_count; i++)
        bpf_link__destroy((*probe)->links[i]);
    free((*probe)->links);
    ring_buffer__free((*probe)->ring);
    qpscope__destroy((*probe)->kernel);
    free(*probe);
    *probe = NULL;
}

int probe_descriptor(const struct probe *probe)
{
    return ring_buffer__epoll_fd(probe->ring);
}

int probe_read(struct probe *probe)
{
    const int taken = ring_buffer__consume(probe->ring);
    return taken < 0 ? log_error_return(taken, "cannot read the probes' events: %s", strerror(-taken)) : 0;
}

static int keep_link(struct probe *probe, struct bpf_link *link)
{
    if (probe->links_count == probe->links_capacity) {
        const size_t capacity = probe->links_capacity == 0 ? 64 : 2 * probe->links_capacity;
        struct bpf_link **links = realloc(probe->links, capacity * sizeof(struct bpf_link *));
        if (links == NULL) {
            bpf_link__destroy(link);
            return -ENOMEM;
        }
        probe->links = links;
        probe->links_capacity = capacity;
    }
    probe->links[probe->links_count++] = link;
    return 0;
}

static int attach_place(struct probe *probe, uint64_t library, const char *path, const struct library_place *place)
{
    const struct probe_spec *spec = &probe_specs[place->spec];
    const struct bpf_program *program = bpf_object__find_program_by_name(probe->kernel->obj, spec->program);
    LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = library, .retprobe = spec->at_return);
    struct bpf_link *link =
        program == NULL ? NULL
                        : bpf_program__attach_uprobe_opts(program, -1, path, (size_t)place->file_offset, &options);
    return link == NULL ? -errno : keep_link(probe, link);
}

static void report_place(const struct probe_spec *spec, int error)
{
    log_warning("cannot set the probe at the %s of %s: %s; not known: %s", spec->at_return ? "return" : "entry",
                spec->symbol, strerror(-error), spec->reads);
}

size_t probe_attach(struct probe *probe, uint64_t library, int descriptor, const struct library_places *places)
{
    size_t attached = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    for (size_t i = 0; i < places->count; i++) {
        const int error = attach_place(probe, library, path, &places->places[i]);
        if (error == 0)
            attached++;
        else
            report_place(&probe_specs[places->places[i].spec], error);
    }
    return attached;
}

/* The mapping is held while it is looked up; the kernel may be unable to look just then (-EBUSY). */
static int read_mapped_file(struct probe *probe, const void *page, struct file_key *file)
{
    probe->kernel->bss->file_address = (uint64_t)(uintptr_t)page;
    for (int i = 0; i < FILE_TRIES; i++) {
        LIBBPF_OPTS(bpf_test_run_opts, options);
        const int error = bpf_prog_test_run_opts(bpf_program__fd(probe->kernel->progs.file_read), &options);
        if (error != 0)
            return error;
        if ((int32_t)options.retval == 0) {
            const uint32_t device = probe->kernel->bss->file_device;
            *file = (struct file_key){device >> 20, device & 0xfffff, probe->kernel->bss->file_inode};
            return 0;
        }
        if ((int32_t)options.retval != -EBUSY)
            return (int32_t)options.retval;
    }
    return -EBUSY;
}

int probe_file_key(struct probe *probe, int descriptor, struct file_key *file)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, page_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, descriptor, 0);
    if (page == MAP_FAILED)
        return -errno;
    const int error = read_mapped_file(probe, page, file);
    munmap(page, page_bytes);
    return error;
}

void probe_losses(const struct probe *probe, struct probe_losses *losses)
{
    losses->events = __atomic_load_n(&probe->kernel->bss->events_lost, __ATOMIC_RELAXED);
    losses->events_at_ns = __atomic_load_n(&probe->kernel->bss->events_lost_at_ns, __ATOMIC_RELAXED);
    losses->reads = __atomic_load_n(&probe->kernel->bss->reads_failed, __ATOMIC_RELAXED);
    losses->processes = __atomic_load_n(&probe->kernel->bss->processes_refused, __ATOMIC_RELAXED);
}

int probe_clock_offset(struct probe *probe, int64_t *offset_ns, uint64_t *bound_ns)
{
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < CLOCK_READINGS; i++) {
        LIBBPF_OPTS(bpf_test_run_opts, options);
        const uint64_t before_ns = clock_now_ns();
        const int error = bpf_prog_test_run_opts(bpf_program__fd(probe->kernel->progs.clock_read), &options);
        const uint64_t after_ns = clock_now_ns();
        if (error != 0)
            return log_error_return(error, "cannot read the probes' clock: %s", strerror(-error));
        if (after_ns - before_ns >= best_ns)
            continue;
        best_ns = after_ns - before_ns;
        *offset_ns = (int64_t)(probe->kernel->bss->clock_now_ns - (before_ns + best_ns / 2));
    }
    *bound_ns = best_ns / 2;
    return 0;
}
