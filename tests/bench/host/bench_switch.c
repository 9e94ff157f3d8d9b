/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What following a job's threads costs every thread of the machine: two processes on one processor that wake each other
 * by pipes, in blocks of one run, without the programs at sched_switch and sched_wakeup, with them, and with them when
 * the two are followed, in the order ABCCBA, so that a drift cancels out.
 *
 *   bench_switch [BLOCKS [ROUNDS]]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/event.h"
#include "bpf/qpscope.skel.h"
#include "wire/clock.h"
#include "wire/log.h"

#define BLOCKS_MAX 100000
#define VALUE_MAX  256
#define SLICES     20 /* of a block, each of so many rounds: short ones are seldom disturbed */

enum { WITHOUT, STRANGERS, FOLLOWED, CASES };
static const char *const names[CASES] = {"without", "strangers", "followed"};

struct bench {
    struct qpscope *kernel;
    int there[2]; /* pipes */
    int back[2];
    pid_t pair[2];
    double *ns[CASES]; /* a switch */
};

/* Takes a byte from one pipe and hands it on. False when the other end is gone. */
static bool pass(int from, int to)
{
    char byte = 0;
    return read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1;
}

/* Two switches a round. */
static double measure(const struct bench *bench, size_t rounds)
{
    char byte = 0;
    if (write(bench->there[1], &byte, 1) != 1)
        return 0;
    const uint64_t from_ns = clock_now_ns();
    for (size_t i = 0; i < rounds && pass(bench->back[0], bench->there[1]); i++)
        ;
    const uint64_t spent_ns = clock_now_ns() - from_ns;
    return read(bench->back[0], &byte, 1) == 1 ? (double)spent_ns / (2.0 * (double)rounds) : 0;
}

/* A note whose times are set is one of a thread that is followed (bpf/delay.h: from_ns, since_ns). */
static int follow(const struct bench *bench, bool on)
{
    const int map = bpf_map__fd(bench->kernel->maps.delays);
    for (int i = 0; i < 2; i++) {
        uint64_t note[VALUE_MAX / 8] = {clock_now_ns(), clock_now_ns()};
        const int process = (int)syscall(SYS_pidfd_open, bench->pair[i], 0);
        const int error = process < 0 ? -errno
                          : on        ? bpf_map_update_elem(map, &process, note, BPF_ANY)
                                      : bpf_map_delete_elem(map, &process);
        close(process);
        if (error != 0)
            return error;
    }
    return 0;
}

static int run_block(struct bench *bench, int which, size_t block, size_t rounds)
{
    struct bpf_link *links[2] = {NULL};
    if (which != WITHOUT) {
        links[0] = bpf_program__attach(bench->kernel->progs.delay_switch);
        links[1] = bpf_program__attach(bench->kernel->progs.delay_wakeup);
        if (links[0] == NULL || links[1] == NULL)
            return log_error_return(-1, "cannot set the programs");
    }
    if (which == FOLLOWED && follow(bench, true) != 0)
        return log_error_return(-1, "cannot follow the pair");
    measure(bench, rounds);
    for (size_t i = 0; i < SLICES; i++)
        bench->ns[which][block * SLICES + i] = measure(bench, rounds);
    if (which == FOLLOWED)
        follow(bench, false);
    bpf_link__destroy(links[0]);
    bpf_link__destroy(links[1]);
    return 0;
}

static void stay(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static int open_bench(struct bench *bench, size_t blocks)
{
    struct bpf_program *program;
    bench->kernel = qpscope__open();
    if (bench->kernel == NULL)
        return -1;
    bench->kernel->rodata->wake_bytes = 1 << 20;
    bpf_object__for_each_program(program, bench->kernel->obj)
    {
        if (strncmp(bpf_program__section_name(program), "fexit/", 6) == 0)
            bpf_program__set_autoload(program, false);
    }
    if (qpscope__load(bench->kernel) != 0 || bpf_map__value_size(bench->kernel->maps.delays) > VALUE_MAX)
        return -1;
    for (int i = 0; i < CASES; i++) {
        bench->ns[i] = calloc(2 * blocks * SLICES, sizeof *bench->ns[i]);
        if (bench->ns[i] == NULL)
            return -1;
    }
    return pipe(bench->there) == 0 && pipe(bench->back) == 0 ? 0 : -1;
}

static int start_pair(struct bench *bench)
{
    stay();
    bench->pair[0] = getpid();
    bench->pair[1] = fork();
    if (bench->pair[1] < 0)
        return -1;
    if (bench->pair[1] == 0) {
        while (pass(bench->there[0], bench->back[1]))
            ;
        _exit(0);
    }
    return 0;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void report(struct bench *bench, size_t count)
{
    double median[CASES];
    printf("{\"row\":\"header\",\"generator\":\"bench_switch\",\"slices\":%zu}\n", count);
    for (int i = 0; i < CASES; i++) {
        qsort(bench->ns[i], count, sizeof *bench->ns[i], compare);
        median[i] = bench->ns[i][count / 2];
        printf("{\"row\":\"case\",\"case\":\"%s\",\"tenth_ns\":%.0f,\"median_ns\":%.0f,\"nine_tenths_ns\":%.0f,"
               "\"tenth_more_ns\":%.0f,\"median_more_ns\":%.0f}\n",
               names[i], bench->ns[i][count / 10], median[i], bench->ns[i][count * 9 / 10],
               bench->ns[i][count / 10] - bench->ns[WITHOUT][count / 10], median[i] - median[WITHOUT]);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    const size_t blocks = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    const size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
    log_init("bench_switch", LOG_INFO);
    if (blocks == 0 || blocks > BLOCKS_MAX || rounds == 0)
        return 2;
    if (geteuid() != 0 || open_bench(&bench, blocks) != 0 || start_pair(&bench) != 0)
        return 77;
    int error = 0;
    for (size_t block = 0; block < blocks && error == 0; block++)
        for (int i = 0; i < 2 * CASES && error == 0; i++)
            error = run_block(&bench, i < CASES ? i : 2 * CASES - 1 - i, 2 * block + (i >= CASES), rounds);
    kill(bench.pair[1], SIGKILL);
    waitpid(bench.pair[1], NULL, 0);
    if (error == 0)
        report(&bench, 2 * blocks * SLICES);
    return error == 0 ? 0 : 1;
}
