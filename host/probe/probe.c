/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: libbpf 1.1's documentation, bpf(2), perf_event_open(2). A library is named to the kernel by
 * /proc/self/fd/N, so that what was read is what is probed.
 */
#include "host/probe/probe.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bpf/event.h"
#include "bpf/qpscope.skel.h"
#include "host/probe/attachment.h"
#include "host/probe/placement.h"
#include "host/probe/rights.h"
#include "wire/clock.h"
#include "wire/log.h"

#define CLOCK_READINGS     50
#define FILE_TRIES         100
#define KERNEL_RETURNS_MAX 8

/* DUTY_DELAY. How what is sent over TCP is seen depends on the kernel. */
static const char *const delay_programs[] = {"delay_switch", "delay_wakeup", "delay_retransmit", "delay_send",
                                             "delay_send_exit"};
#define DELAY_PROGRAMS_MAX (sizeof delay_programs / sizeof delay_programs[0])

struct probe {
    struct qpscope *kernel;
    struct ring_buffer *ring;
    int *programs; /* descriptor of each row of probe_specs */
    struct placement *placement;
    bool multiple; /* attachment.h */
    bool delays_followed;
    struct bpf_link *kernel_returns[KERNEL_RETURNS_MAX];
    size_t kernel_returns_count;
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

static void expect_multiple(struct probe *probe)
{
    struct bpf_program *program;
    probe->multiple = attachment_multiple_is_possible();
    bpf_object__for_each_program(program, probe->kernel->obj)
    {
        if (probe->multiple && bpf_program__type(program) == BPF_PROG_TYPE_KPROBE)
            bpf_program__set_expected_attach_type(program, ATTACHMENT_MULTIPLE);
    }
}

static int find_programs(struct probe *probe)
{
    probe->programs = calloc(probe_specs_count, sizeof *probe->programs);
    if (probe->programs == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < probe_specs_count; i++) {
        const struct bpf_program *program =
            bpf_object__find_program_by_name(probe->kernel->obj, probe_specs[i].program);
        if (program == NULL)
            return -ENOENT;
        probe->programs[i] = bpf_program__fd(program);
    }
    return 0;
}

/* The programs at returns of the kernel's own functions: optional, and only together, since one that is missing would
 * leave wrong what the others tell. */
static bool is_at_kernel_return(const struct bpf_program *program)
{
    return bpf_program__type(program) == BPF_PROG_TYPE_TRACING &&
           bpf_program__expected_attach_type(program) == BPF_TRACE_FEXIT &&
           strcmp(bpf_program__name(program), "delay_send_exit") != 0; /* which comes and goes by itself */
}

static bool can_be_at_kernel_return(const struct btf *types, const struct bpf_program *program)
{
    static const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    const char *function = strchr(bpf_program__section_name(program), '/') + 1;
    const int number = btf__find_by_name_kind(types, function, BTF_KIND_FUNC);
    if (number < 0)
        return false;
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FEXIT,
                .attach_btf_id = (uint32_t)number);
    const int descriptor =
        bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "Dual BSD/GPL", code, sizeof code / sizeof code[0], &options);
    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
}

static bool expect_kernel_returns(const struct probe *probe, const struct btf *types)
{
    struct bpf_program *program;
    bool possible = true;
    bpf_object__for_each_program(program, probe->kernel->obj)
    {
        if (possible && is_at_kernel_return(program))
            possible = can_be_at_kernel_return(types, program);
    }
    bpf_object__for_each_program(program, probe->kernel->obj)
    {
        if (!is_at_kernel_return(program))
            continue;
        bpf_program__set_autoload(program, possible);
        bpf_program__set_autoattach(program, false);
    }
    return possible;
}

static int attach_kernel_returns(struct probe *probe)
{
    struct bpf_program *program;
    bpf_object__for_each_program(program, probe->kernel->obj)
    {
        if (!is_at_kernel_return(program) || probe->kernel_returns_count == KERNEL_RETURNS_MAX)
            continue;
        struct bpf_link *link = bpf_program__attach(program);
        if (link == NULL)
            return -errno;
        probe->kernel_returns[probe->kernel_returns_count++] = link;
    }
    return 0;
}

static void detach_kernel_returns(struct probe *probe)
{
    while (probe->kernel_returns_count > 0)
        bpf_link__destroy(probe->kernel_returns[--probe->kernel_returns_count]);
}

static void follow_proxies(struct probe *probe, bool possible)
{
    const int error = possible ? attach_kernel_returns(probe) : -ENOTSUP;
    if (error == 0)
        return;
    detach_kernel_returns(probe);
    log_info("this kernel lets no probe sit at its socket calls (%s): the channels of connections and the ranks that "
             "asked for them are not known",
             strerror(-error));
}

/* How what threads send over TCP is seen depends on the kernel; the probes can do without. */
static void expect_sends(const struct probe *probe, const struct btf *types)
{
    struct bpf_program *exit = probe->kernel->progs.delay_send_exit;
    const bool traced = btf__find_by_name_kind(types, "btf_trace_sock_send_length", BTF_KIND_TYPEDEF) > 0;
    const bool possible = traced || can_be_at_kernel_return(types, exit);
    bpf_program__set_autoload(probe->kernel->progs.delay_send, traced);
    bpf_program__set_autoload(exit, !traced && possible);
    for (size_t i = 0; i < DELAY_PROGRAMS_MAX; i++)
        bpf_program__set_autoattach(bpf_object__find_program_by_name(probe->kernel->obj, delay_programs[i]), false);
    if (!possible)
        log_info("this kernel does not show what is sent over TCP: no step can be told to run over sockets");
}

/* The kernel's types take long to read: once, for all that depends on them. Returns whether proxies can be followed. */
static int expect(struct probe *probe, bool *proxies)
{
    struct btf *types = btf__load_vmlinux_btf();
    if (types == NULL)
        return -errno;
    expect_multiple(probe);
    *proxies = expect_kernel_returns(probe, types);
    expect_sends(probe, types);
    btf__free(types);
    return 0;
}

static int load(struct probe *probe, const struct probe_options *options)
{
    bool proxies = false;
    const uint64_t buffer_bytes = ring_bytes(options->buffer_bytes);
    probe->kernel = qpscope__open();
    if (probe->kernel == NULL)
        return -errno;
    probe->kernel->rodata->wake_bytes = buffer_bytes / 4;
    int error = bpf_map__set_max_entries(probe->kernel->maps.events, (uint32_t)buffer_bytes);
    if (error == 0)
        error = expect(probe, &proxies);
    if (error == 0)
        error = qpscope__load(probe->kernel);
    if (error == 0)
        error = find_programs(probe);
    if (error == 0)
        error = qpscope__attach(probe->kernel); /* tp_btf only: a uprobe's section names no place */
    if (error != 0)
        return error;
    follow_proxies(probe, proxies);
    probe->ring = ring_buffer__new(bpf_map__fd(probe->kernel->maps.events), deliver, probe, NULL);
    return probe->ring == NULL ? -errno : 0;
}

/* A kernel that takes one place a link needs a descriptor for each. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int set_attachment(void *context, const struct attachment *attachment)
{
    const struct probe *probe = context;
    return attachment_open(attachment, probe->multiple);
}

static void let_attachments_go(void *context, const int *links, size_t count)
{
    (void)context;
    attachment_close(links, count);
}

static int place(struct probe *probe, const struct probe_options *options)
{
    const struct placement_options placement = {
        .attacher = {set_attachment, let_attachments_go, probe, probe->multiple},
        .programs = probe->programs,
        .attached = options->attached,
        .context = options->context,
    };
    int error = placement_create(&probe->placement, &placement);
    for (size_t i = 0; i < DELAY_PROGRAMS_MAX && error == 0; i++) {
        const int program = bpf_program__fd(bpf_object__find_program_by_name(probe->kernel->obj, delay_programs[i]));
        if (program >= 0)
            error = placement_add_own(probe->placement, program);
    }
    return error;
}

int probe_open(struct probe **probe, const struct probe_options *options)
{
    struct probe *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the probes");
    fresh->sink = options->sink;
    fresh->context = options->context;
    libbpf_set_print(print_library_message);
    raise_descriptor_limit();
    int error = load(fresh, options);
    if (error == 0)
        error = place(fresh, options);
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
    detach_kernel_returns(*probe);
    placement_destroy(&(*probe)->placement);
    free((*probe)->programs);
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

/* ---- where they sit ---- */

int probe_attach(struct probe *probe, uint64_t library, int descriptor, const struct library_places *places)
{
    return placement_attach(probe->placement, library, descriptor, places);
}

/* Calls that are entered from now on, or no more, wait for their return. */
static void tell_returns(struct probe *probe)
{
    if (probe->kernel->bss->call_returns == placement_duty(probe->placement, DUTY_RETURN))
        return;
    const bool set = placement_is_complete(probe->placement, DUTY_RETURN);
    __atomic_store_n(&probe->kernel->bss->call_returns, set, __ATOMIC_RELAXED);
}

static void note_delays(struct probe *probe)
{
    const bool followed = placement_is_complete(probe->placement, DUTY_DELAY);
    if (followed != probe->delays_followed)
        log_debug("what keeps threads from running is %s", followed ? "followed" : "not followed any more");
    probe->delays_followed = followed;
}

void probe_tick(struct probe *probe)
{
    placement_tick(probe->placement);
    tell_returns(probe);
    note_delays(probe);
}

bool probe_duty(const struct probe *probe, enum probe_duty duty)
{
    return placement_duty(probe->placement, duty);
}

void probe_set_duty(struct probe *probe, enum probe_duty duty, bool on)
{
    if (placement_duty(probe->placement, duty) == on)
        return;
    placement_set_duty(probe->placement, duty, on);
    if (duty == DUTY_MARKER)
        __atomic_store_n(&probe->kernel->bss->markers_off, !on, __ATOMIC_RELAXED);
    if (duty == DUTY_DELAY && on)
        __atomic_fetch_add(&probe->kernel->bss->delay_epoch, 1, __ATOMIC_RELAXED);
    tell_returns(probe);
}

bool probe_is_being_set(const struct probe *probe, enum probe_duty duty)
{
    return placement_waiting(probe->placement, duty) != 0;
}

void probe_count_places(const struct probe *probe, struct placement_counts *counts)
{
    placement_count(probe->placement, counts);
}

void probe_follow(struct probe *probe, uint32_t pid)
{
    const uint32_t no_flags = 0; /* the first call that is probed sets some, and tells of the process */
    if (bpf_map_update_elem(bpf_map__fd(probe->kernel->maps.processes), &pid, &no_flags, BPF_NOEXIST) != 0 &&
        errno != EEXIST)
        log_warning("the end of process %u will not be seen: %s", pid, strerror(errno));
}

void probe_set_layout(struct probe *probe, uint64_t library, const struct layout *layout)
{
    const uint32_t number = (uint32_t)library;
    const uint32_t value[2] = {layout->rank_bytes, layout->has_hash}; /* struct communicator_layout */
    const int descriptor = bpf_map__fd(probe->kernel->maps.communicator_layouts);
    if (bpf_map_update_elem(descriptor, &number, value, BPF_ANY) != 0)
        log_warning("the layout of communicators of library %u is not used: %s", number, strerror(errno));
}

/* ---- what is posted and completed ---- */

static int add_work(struct probe *probe, struct attachment *attachment, const struct bpf_program *program,
                    bool at_return)
{
    attachment->program = bpf_program__fd(program);
    attachment->at_return = at_return;
    return placement_follow(probe->placement, attachment);
}

int probe_follow_work(struct probe *probe, pid_t pid, int descriptor, const struct provider_place *place)
{
    struct attachment attachment = {.file = descriptor, .offsets = &place->file_offset, .offsets_count = 1, .pid = pid};
    int error;
    if (place->call == PROVIDER_POST_SEND)
        error = add_work(probe, &attachment, probe->kernel->progs.work_post, false);
    else
        error = add_work(probe, &attachment, probe->kernel->progs.work_poll, false);
    if (error == 0 && place->call != PROVIDER_POST_SEND)
        error = add_work(probe, &attachment, probe->kernel->progs.work_poll_return, true);
    if (error != 0)
        log_error("cannot follow what process %d posts: %s", (int)pid, strerror(-error));
    return error;
}

int probe_work_is_being_set(struct probe *probe)
{
    return placement_followed(probe->placement);
}

void probe_end_work(struct probe *probe)
{
    probe_allow_work(probe, 0);
    placement_end_following(probe->placement);
}

void probe_allow_work(struct probe *probe, int64_t hits)
{
    __atomic_store_n(&probe->kernel->bss->work_left, hits, __ATOMIC_RELAXED);
}

int64_t probe_work_left(const struct probe *probe)
{
    return __atomic_load_n(&probe->kernel->bss->work_left, __ATOMIC_RELAXED);
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

/* A kernel that preempts a program runs it for nobody else on that processor meanwhile, and counts how often. */
static uint64_t kernel_returns_missed(const struct probe *probe)
{
    struct bpf_program *program;
    uint64_t missed = 0;
    if (probe->kernel_returns_count == 0)
        return 0;
    bpf_object__for_each_program(program, probe->kernel->obj)
    {
        struct bpf_prog_info info = {0};
        uint32_t info_bytes = sizeof info;
        if (is_at_kernel_return(program) && bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &info_bytes) == 0)
            missed += info.recursion_misses;
    }
    return missed;
}

void probe_losses(const struct probe *probe, struct probe_losses *losses)
{
    losses->socket_calls = kernel_returns_missed(probe);
    losses->events = __atomic_load_n(&probe->kernel->bss->events_lost, __ATOMIC_RELAXED);
    losses->events_at_ns = __atomic_load_n(&probe->kernel->bss->events_lost_at_ns, __ATOMIC_RELAXED);
    losses->reads = __atomic_load_n(&probe->kernel->bss->reads_failed, __ATOMIC_RELAXED);
    losses->implausible = __atomic_load_n(&probe->kernel->bss->queue_pairs_implausible, __ATOMIC_RELAXED);
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

void probe_cost(struct probe *probe, struct cost *cost)
{
    cost_measure(bpf_program__fd(probe->kernel->progs.cost_entry), bpf_program__fd(probe->kernel->progs.cost_return),
                 probe->multiple, cost);
}

void probe_allow_detail(struct probe *probe, enum detail_kind kind, pid_t pid, int64_t events)
{
    struct detail *details = probe->kernel->bss->details;
    details[kind].process = (uint32_t)pid;
    __atomic_store_n(&details[kind].left, events, __ATOMIC_RELAXED);
    if (kind == DETAIL_SUBMISSIONS)
        log_debug("the frequent calls of the GPU's runtime are %s", events > 0 ? "told" : "not told any more");
}

int64_t probe_detail_left(const struct probe *probe, enum detail_kind kind)
{
    return __atomic_load_n(&probe->kernel->bss->details[kind].left, __ATOMIC_RELAXED);
}
