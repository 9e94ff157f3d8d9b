/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: libbpf 1.1's documentation, bpf(2), perf_event_open(2). A library is named to the kernel by
 * /proc/self/fd/N, so that what was read is what is probed.
 */
#include "host/probe/probe.h"

#include <bpf/bpf.h>
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

/* A library with probes, kept for those that come and go. */
struct probed {
    uint64_t library;
    int descriptor;
    struct library_place *places;
    size_t places_count;
};

struct probe {
    struct qpscope *kernel;
    struct ring_buffer *ring;
    int *programs; /* descriptor of each row of probe_specs */
    struct attachment_set attachments[DUTIES];
    struct attachment_set work;
    bool on[DUTIES];
    struct bpf_link *delays[DELAY_PROGRAMS_MAX];
    struct probed *probed;
    size_t probed_count;
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
    const bool multiple = attachment_multiple_is_possible();
    for (enum probe_duty duty = 0; duty < DUTIES; duty++)
        probe->attachments[duty].multiple = multiple;
    probe->work.multiple = multiple;
    bpf_object__for_each_program(program, probe->kernel->obj)
    {
        if (multiple && bpf_program__type(program) == BPF_PROG_TYPE_KPROBE)
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

static bool can_be_at_kernel_return(const struct bpf_program *program)
{
    static const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    const char *function = strchr(bpf_program__section_name(program), '/') + 1;
    const int number = libbpf_find_vmlinux_btf_id(function, BPF_TRACE_FEXIT);
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

static bool expect_kernel_returns(const struct probe *probe)
{
    struct bpf_program *program;
    bool possible = true;
    bpf_object__for_each_program(program, probe->kernel->obj)
    {
        if (possible && is_at_kernel_return(program))
            possible = can_be_at_kernel_return(program);
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
static void expect_sends(const struct probe *probe)
{
    struct bpf_program *exit = probe->kernel->progs.delay_send_exit;
    const bool traced = libbpf_find_vmlinux_btf_id("sock_send_length", BPF_TRACE_RAW_TP) > 0;
    const bool possible = traced || can_be_at_kernel_return(exit);
    bpf_program__set_autoload(probe->kernel->progs.delay_send, traced);
    bpf_program__set_autoload(exit, !traced && possible);
    for (size_t i = 0; i < DELAY_PROGRAMS_MAX; i++)
        bpf_program__set_autoattach(bpf_object__find_program_by_name(probe->kernel->obj, delay_programs[i]), false);
    if (!possible)
        log_info("this kernel does not show what is sent over TCP: no step can be told to run over sockets");
}

static int load(struct probe *probe, const struct probe_options *options)
{
    const uint64_t buffer_bytes = ring_bytes(options->buffer_bytes);
    probe->kernel = qpscope__open();
    if (probe->kernel == NULL)
        return -errno;
    probe->kernel->rodata->wake_bytes = buffer_bytes / 4;
    int error = bpf_map__set_max_entries(probe->kernel->maps.events, (uint32_t)buffer_bytes);
    expect_multiple(probe);
    const bool proxies = expect_kernel_returns(probe);
    expect_sends(probe);
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

int probe_open(struct probe **probe, const struct probe_options *options)
{
    struct probe *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the probes");
    for (enum probe_duty duty = 0; duty < DUTIES; duty++)
        fresh->on[duty] = duty != DUTY_DETAIL && duty != DUTY_DELAY;
    fresh->sink = options->sink;
    fresh->context = options->context;
    libbpf_set_print(print_library_message);
    raise_descriptor_limit();
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

static void set_delays(struct probe *probe, bool on)
{
    for (size_t i = 0; i < DELAY_PROGRAMS_MAX; i++) {
        const struct bpf_program *program = bpf_object__find_program_by_name(probe->kernel->obj, delay_programs[i]);
        if (!on) {
            bpf_link__destroy(probe->delays[i]);
            probe->delays[i] = NULL;
        } else if (bpf_program__fd(program) >= 0) {
            probe->delays[i] = bpf_program__attach(program);
        }
        if (on && bpf_program__fd(program) >= 0 && probe->delays[i] == NULL)
            log_warning("cannot follow what keeps threads from running (%s): %s", delay_programs[i], strerror(errno));
    }
    log_debug("what keeps threads from running is %s", on ? "followed" : "not followed any more");
}

static void forget_probed(struct probe *probe)
{
    for (size_t i = 0; i < probe->probed_count; i++) {
        close(probe->probed[i].descriptor);
        free(probe->probed[i].places);
    }
    free(probe->probed);
}

void probe_close(struct probe **probe)
{
    if (*probe == NULL)
        return;
    detach_kernel_returns(*probe);
    for (enum probe_duty duty = 0; duty < DUTIES; duty++)
        attachment_set_clear(&(*probe)->attachments[duty]);
    if ((*probe)->kernel != NULL)
        set_delays(*probe, false);
    attachment_set_clear(&(*probe)->work);
    forget_probed(*probe);
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

static void report_place(const struct probe_spec *spec, int error)
{
    log_warning("cannot set the probe at the %s of %s: %s; not known: %s", spec->at_return ? "return" : "entry",
                spec->symbol, strerror(-error), spec->reads);
}

/* All places of one row of probe.def, which lie side by side. */
static size_t attach_spec(struct probe *probe, struct attachment *attachment, const struct library_place *places,
                          size_t count)
{
    uint64_t offsets[LIBRARY_PLACES_MAX];
    int error = 0;
    const struct probe_spec *spec = &probe_specs[places[0].spec];
    for (size_t i = 0; i < count; i++)
        offsets[i] = places[i].file_offset;
    attachment->program = probe->programs[places[0].spec];
    attachment->offsets = offsets;
    attachment->offsets_count = count;
    attachment->at_return = spec->at_return;
    const size_t attached = attachment_set_add(&probe->attachments[spec->duty], attachment, &error);
    if (attached < count)
        report_place(spec, error);
    return attached;
}

static size_t attach_duty(struct probe *probe, const struct probed *probed, enum probe_duty duty)
{
    size_t attached = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", probed->descriptor);
    for (size_t from = 0; from < probed->places_count;) {
        size_t to = from + 1;
        const struct probe_spec *spec = &probe_specs[probed->places[from].spec];
        while (to < probed->places_count && probed->places[to].spec == probed->places[from].spec)
            to++;
        struct attachment attachment = {.path = path,
                                        .cookie = probed->library | (uint64_t)spec->variant << EVENT_VARIANT_SHIFT};
        if (spec->duty == duty)
            attached += attach_spec(probe, &attachment, probed->places + from, to - from);
        from = to;
    }
    return attached;
}

static int keep_probed(struct probe *probe, uint64_t library, int descriptor, const struct library_places *places)
{
    struct probed *all = realloc(probe->probed, (probe->probed_count + 1) * sizeof *all);
    if (all == NULL)
        return -ENOMEM;
    probe->probed = all;
    struct probed *probed = &all[probe->probed_count];
    probed->library = library;
    probed->places_count = places->count;
    probed->places = malloc(places->count * sizeof *probed->places);
    probed->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (probed->places == NULL || probed->descriptor < 0) {
        const int error = -errno;
        free(probed->places);
        return error;
    }
    memcpy(probed->places, places->places, places->count * sizeof *probed->places);
    probe->probed_count++;
    return 0;
}

/* Calls that are entered from now on, or no more, wait for their return. */
static void tell_returns(struct probe *probe)
{
    const bool set = probe->on[DUTY_RETURN] && probe->attachments[DUTY_RETURN].count != 0;
    __atomic_store_n(&probe->kernel->bss->call_returns, set, __ATOMIC_RELAXED);
}

static size_t count_duty(const struct library_places *places, enum probe_duty duty)
{
    size_t count = 0;
    for (size_t i = 0; i < places->count; i++)
        count += probe_specs[places->places[i].spec].duty == duty;
    return count;
}

size_t probe_attach(struct probe *probe, uint64_t library, int descriptor, const struct library_places *places)
{
    size_t attached = 0;
    const int error = keep_probed(probe, library, descriptor, places);
    if (error != 0) {
        log_warning("cannot keep a library open to probe it: %s", strerror(-error));
        return 0;
    }
    for (enum probe_duty duty = 0; duty < DUTIES; duty++)
        if (probe->on[duty])
            attached += attach_duty(probe, &probe->probed[probe->probed_count - 1], duty);
        else
            attached += count_duty(places, duty);
    tell_returns(probe);
    return attached;
}

static void *clear_set(void *context)
{
    attachment_set_clear(context);
    free(context);
    return NULL;
}

/* The kernel takes its time; events must be taken meanwhile. */
static void let_go(struct attachment_set *set)
{
    pthread_t thread;
    struct attachment_set *gone = malloc(sizeof *gone);
    if (gone == NULL) {
        attachment_set_clear(set);
        return;
    }
    *gone = *set;
    *set = (struct attachment_set){.multiple = gone->multiple};
    if (pthread_create(&thread, NULL, clear_set, gone) == 0)
        pthread_detach(thread);
    else
        clear_set(gone);
}

bool probe_duty(const struct probe *probe, enum probe_duty duty)
{
    return probe->on[duty];
}

void probe_set_duty(struct probe *probe, enum probe_duty duty, bool on)
{
    if (probe->on[duty] == on || duty == DUTY_ALWAYS)
        return;
    probe->on[duty] = on;
    if (duty == DUTY_DELAY)
        set_delays(probe, on);
    if (!on)
        let_go(&probe->attachments[duty]);
    for (size_t i = 0; i < probe->probed_count && on; i++)
        attach_duty(probe, &probe->probed[i], duty);
    if (duty == DUTY_DETAIL)
        log_debug("the frequent calls of the GPU's runtime are %s", on ? "told" : "not told any more");
    tell_returns(probe);
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

static int set_work(struct probe *probe, const struct bpf_program *program, struct attachment *attachment)
{
    int error = 0;
    attachment->program = bpf_program__fd(program);
    return attachment_set_add(&probe->work, attachment, &error) == 1 ? 0 : error;
}

int probe_follow_work(struct probe *probe, pid_t pid, int descriptor, const struct provider_place *place)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    struct attachment attachment = {.path = path, .offsets = &place->file_offset, .offsets_count = 1, .pid = pid};
    int error;
    if (place->call == PROVIDER_POST_SEND) {
        error = set_work(probe, probe->kernel->progs.work_post, &attachment);
    } else {
        error = set_work(probe, probe->kernel->progs.work_poll, &attachment);
        attachment.at_return = true;
        if (error == 0)
            error = set_work(probe, probe->kernel->progs.work_poll_return, &attachment);
    }
    if (error != 0)
        log_error("cannot follow what process %d posts: %s", (int)pid, strerror(-error));
    return error;
}

void probe_end_work(struct probe *probe)
{
    attachment_set_clear(&probe->work);
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
                 probe->attachments[DUTY_ALWAYS].multiple, cost);
}

void probe_allow_detail(struct probe *probe, enum detail_kind kind, pid_t pid, int64_t events)
{
    struct detail *details = probe->kernel->bss->details;
    details[kind].process = (uint32_t)pid;
    __atomic_store_n(&details[kind].left, events, __ATOMIC_RELAXED);
    if (kind == DETAIL_SUBMISSIONS)
        probe_set_duty(probe, DUTY_DETAIL, events > 0);
}

int64_t probe_detail_left(const struct probe *probe, enum detail_kind kind)
{
    return __atomic_load_n(&probe->kernel->bss->details[kind].left, __ATOMIC_RELAXED);
}
