/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job of two ranks for bench_step.py: each step is CALLS times some computing, a data call of the stand-in library
 * and a byte to the other rank and back, so that a rank that is held up holds up both; or of one, alone. Prints of each
 * step of rank 0 when it ended, how long it took and how much of its processor, as JSON lines.
 *
 *   bench_step LIBRARY SECONDS RANKS CALLS COMPUTE_US
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bpf/standin.h"
#include "wire/clock.h"

struct job {
    __typeof__(ncclCommInitRank) *init;
    __typeof__(ncclAllReduce) *call;
    comm_t communicator;
    int mine; /* sockets */
    int other;
    uint64_t rounds; /* of computing, a call */
    long calls;
};

static uint64_t spent_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void compute(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        __asm__ volatile("" ::"r"(i));
}

/* The fastest of several tries: other work only makes it slower. */
static uint64_t rounds_for(uint64_t wanted_ns)
{
    const uint64_t rounds = 1000000;
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        const uint64_t from_ns = clock_now_ns();
        compute(rounds);
        const uint64_t took_ns = clock_now_ns() - from_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    return rounds * wanted_ns / (best_ns == 0 ? 1 : best_ns);
}

static bool meet(const struct job *job)
{
    char byte = 0;
    return write(job->other, &byte, 1) == 1 && read(job->mine, &byte, 1) == 1;
}

static bool run_step(const struct job *job)
{
    char buffer[8];
    for (long i = 0; i < job->calls; i++) {
        compute(job->rounds);
        job->call(buffer, buffer, (size_t)i, 7, 0, job->communicator, NULL);
        if (!meet(job))
            return false;
    }
    return true;
}

/* Until the time is over for rank 0; the other one follows it. */
static void run_rank(struct job *job, int rank, uint64_t until_ns)
{
    const struct unique_id id = {"bench_step"};
    if (job->init(&job->communicator, 2, id, rank) != 0)
        return;
    for (uint64_t from_ns = clock_now_ns(); rank != 0 || from_ns < until_ns;) {
        const uint64_t before_ns = spent_ns();
        if (!run_step(job))
            return;
        const uint64_t now_ns = clock_now_ns();
        if (rank == 0)
            printf("{\"at_ns\":%" PRIu64 ",\"step_ns\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 "}\n", now_ns, now_ns - from_ns,
                   spent_ns() - before_ns);
        from_ns = now_ns;
    }
}

int main(int argc, char **argv)
{
    int sockets[2];
    void *library = argc < 6 ? NULL : dlopen(argv[1], RTLD_NOW);
    if (library == NULL)
        return 2;
    struct job job = {
        .init = (__typeof__(ncclCommInitRank) *)dlsym(library, "ncclCommInitRank"),
        .call = (__typeof__(ncclAllReduce) *)dlsym(library, "ncclAllReduce"),
        .rounds = rounds_for(strtoul(argv[5], NULL, 10) * 1000),
        .calls = strtol(argv[4], NULL, 10),
    };
    if (job.init == NULL || job.call == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        return 1;
    setlinebuf(stdout); /* it is ended by a signal */
    const uint64_t until_ns = clock_now_ns() + strtoul(argv[2], NULL, 10) * 1000000000u;
    const bool alone = strtol(argv[3], NULL, 10) == 1;
    const pid_t child = alone ? getpid() : fork();
    if (child < 0)
        return 1;
    job.other = sockets[child == 0];
    job.mine = alone ? sockets[1] : job.other;
    if (!alone)
        close(sockets[child != 0]);
    run_rank(&job, child == 0, until_ns);
    if (child == 0)
        _exit(0);
    close(job.other);
    return alone || waitpid(child, NULL, 0) == child ? 0 : 1;
}
