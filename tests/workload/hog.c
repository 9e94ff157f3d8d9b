/* SPDX-License-Identifier: BSD-2-Clause */
/* Contention. Invariant: afterwards the calling thread may run on all CPUs. */
#include "hog.h"

#include "truth.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { HOG_PRIORITY = 10, EVERYWHERE = -1 };

static pthread_t hog_thread;
static uint64_t hog_until_ns;
static atomic_bool hog_done;

static void *hog_run(void *unused)
{
    (void)unused;
    while (truth_now_ns() < hog_until_ns)
        ;
    atomic_store(&hog_done, true);
    return NULL;
}

static void hog_fail(const char *what)
{
    fprintf(stderr, "train: cannot hog a CPU: %s\n", what);
    _exit(1);
}

static void keep_on(int cpu)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (cpu == EVERYWHERE || i == cpu)
            CPU_SET(i, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
}

static void hog_start(int cpu, uint64_t duration_ns)
{
    struct sched_param priority = {.sched_priority = HOG_PRIORITY};
    pthread_attr_t attributes;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &priority);
    pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
    atomic_store(&hog_done, false);
    hog_until_ns = truth_now_ns() + duration_ns;
    if (pthread_create(&hog_thread, &attributes, hog_run, NULL))
        hog_fail("no real-time thread can be made");
    pthread_attr_destroy(&attributes);
}

void hog_own_cpu(uint64_t duration_ns)
{
    int cpu = sched_getcpu();

    keep_on(cpu);
    hog_start(cpu, duration_ns);
    while (!atomic_load(&hog_done))
        ; /* runnable all the time, which sleeping would not be */
    pthread_join(hog_thread, NULL);
    keep_on(EVERYWHERE);
}
