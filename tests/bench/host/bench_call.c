/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a probe costs a call: the same call of a library without a probe, with an empty one and with ours, in turns of
 * one run, at the entry alone and at entry and return. The call itself does nothing. Also the ring's bytes a call.
 *
 *   bench_call LIBRARY [TURNS [CALLS]]
 */
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/event.h"
#include "bpf/qpscope.skel.h"
#include "host/library/library.h"
#include "tests/bench/host/empty.skel.h"
#include "tests/bpf/standin.h"
#include "wire/clock.h"
#include "wire/log.h"

#define TURNS_MAX 1000

struct bench_case {
    const char *name;
    const char *entry; /* programs; NULL = none */
    const char *at_return;
};

static const struct bench_case cases[] = {
    {"none", NULL, NULL},
    {"empty", "empty_entry", NULL},
    {"probe", "nccl_all_reduce", NULL},
    {"empty_with_return", "empty_entry", "empty_return"},
    {"probe_with_return", "nccl_all_reduce", "nccl_call_return"},
};
#define CASES (sizeof cases / sizeof cases[0])

struct bench {
    const char *path;
    struct qpscope *ours;
    struct empty *empty;
    struct ring_buffer *ring;
    __typeof__(ncclAllReduce) *call;
    uint64_t events;
    uint64_t ring_bytes;
    double ns[CASES][TURNS_MAX];
};

static int take(void *context, void *event, size_t length_bytes)
{
    struct bench *bench = context;
    (void)event;
    bench->events++;
    bench->ring_bytes += (length_bytes + 8 + 7) / 8 * 8;
    return 0;
}

static struct bpf_link *attach(const struct bench *bench, const char *name, bool at_return)
{
    LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = "ncclAllReduce", .retprobe = at_return);
    struct bpf_program *program = bpf_object__find_program_by_name(bench->ours->obj, name);
    if (program == NULL)
        program = bpf_object__find_program_by_name(bench->empty->obj, name);
    return program == NULL ? NULL : bpf_program__attach_uprobe_opts(program, -1, bench->path, 0, &options);
}

/* Fewer calls at once than the ring holds. */
static double measure(struct bench *bench, size_t calls)
{
    const size_t burst = 5000;
    uint64_t spent_ns = 0;
    char buffer[8];
    for (size_t left = calls; left > 0;) {
        const size_t count = left < burst ? left : burst;
        const uint64_t from_ns = clock_now_ns();
        for (size_t i = 0; i < count; i++)
            bench->call(buffer, buffer, i, 7, 0, (comm_t)(uintptr_t)0x1000, NULL);
        spent_ns += clock_now_ns() - from_ns;
        ring_buffer__consume(bench->ring);
        left -= count;
    }
    return (double)spent_ns / (double)calls;
}

static int run_case(struct bench *bench, size_t index, size_t turn, size_t calls)
{
    struct bpf_link *entry = cases[index].entry == NULL ? NULL : attach(bench, cases[index].entry, false);
    struct bpf_link *at_return = cases[index].at_return == NULL ? NULL : attach(bench, cases[index].at_return, true);
    if ((cases[index].entry != NULL && entry == NULL) || (cases[index].at_return != NULL && at_return == NULL))
        return log_error_return(-1, "cannot set the probe %s", cases[index].name);
    bench->ours->bss->call_returns = at_return != NULL;
    measure(bench, 100);
    bench->ns[index][turn] = measure(bench, calls);
    bpf_link__destroy(entry);
    bpf_link__destroy(at_return);
    return 0;
}

static int open_bench(struct bench *bench, const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    bench->path = path;
    bench->call = library == NULL ? NULL : (__typeof__(ncclAllReduce) *)dlsym(library, "ncclAllReduce");
    bench->empty = empty__open_and_load();
    bench->ours = qpscope__open();
    if (bench->call == NULL || bench->empty == NULL || bench->ours == NULL)
        return log_error_return(-1, "cannot open %s or the probes", path);
    bench->ours->rodata->wake_bytes = 1 << 20;
    struct bpf_program *program; /* those at the kernel's own functions are optional */
    bpf_object__for_each_program(program, bench->ours->obj)
    {
        if (strncmp(bpf_program__section_name(program), "fexit/", 6) == 0)
            bpf_program__set_autoload(program, false);
    }
    if (qpscope__load(bench->ours) != 0)
        return log_error_return(-1, "cannot load the probes");
    bench->ring = ring_buffer__new(bpf_map__fd(bench->ours->maps.events), take, bench, NULL);
    return bench->ring == NULL ? -1 : 0;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void report(struct bench *bench, size_t turns)
{
    for (size_t i = 0; i < CASES; i++)
        qsort(bench->ns[i], turns, sizeof bench->ns[i][0], compare);
    printf("{\"row\":\"header\",\"generator\":\"bench_call\",\"turns\":%zu}\n", turns);
    for (size_t i = 0; i < CASES; i++)
        printf("{\"row\":\"case\",\"case\":\"%s\",\"best_ns\":%.0f,\"median_ns\":%.0f,\"best_over_empty\":%.3f,"
               "\"median_over_empty\":%.3f}\n",
               cases[i].name, bench->ns[i][0], bench->ns[i][turns / 2], bench->ns[i][0] / bench->ns[1][0],
               bench->ns[i][turns / 2] / bench->ns[1][turns / 2]);
    printf("{\"row\":\"ring\",\"events\":%llu,\"bytes_an_event\":%.1f,\"lost\":%llu}\n",
           (unsigned long long)bench->events, (double)bench->ring_bytes / (double)bench->events,
           (unsigned long long)bench->ours->bss->events_lost);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    const size_t turns = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
    const size_t calls = argc > 3 ? strtoul(argv[3], NULL, 10) : 20000;
    log_init("bench_call", LOG_INFO);
    if (argc < 2 || turns == 0 || turns > TURNS_MAX)
        return 2;
    if (open_bench(&bench, argv[1]) != 0)
        return 77;
    for (size_t turn = 0; turn < turns; turn++)
        for (size_t i = 0; i < CASES; i++)
            if (run_case(&bench, i, turn, calls) != 0)
                return 1;
    report(&bench, turns);
    return 0;
}
