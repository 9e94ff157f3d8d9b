/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments that are lost. Invariant: lo loses nothing any more when the wait is over. */
#include "lossy.h"

#include "tc.h"
#include "truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LOST_PERCENT = 30, SETTLE_NS = 20000000 };

struct lossy { /* the connection, made at the first wait: one rank has a fault */
    int near;
    int far;
};

static void lossy_fail(const char *what)
{
    fprintf(stderr, "train: cannot %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void sleep_for(uint64_t ns)
{
    nanosleep(&(struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)}, NULL);
}

static struct lossy lossy_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct lossy lossy = {.near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length) ||
        connect(lossy.near, (struct sockaddr *)&address, length))
        lossy_fail("connect to itself over lo");
    lossy.far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (lossy.far < 0)
        lossy_fail("connect to itself over lo");
    close(listener);
    return lossy;
}

struct healer {
    const struct job *job;
    uint64_t after_ns;
};

static void *heal(void *context)
{
    const struct healer *healer = context;

    sleep_for(healer->after_ns);
    tc_tell(healer->job, "qdisc del dev lo root");
    return NULL;
}

void lossy_wait_for(const struct job *job, uint64_t duration_ns)
{
    static struct lossy lossy = {-1, -1};
    struct healer healer = {job, duration_ns / 100 * LOST_PERCENT};
    uint64_t until_ns = truth_now_ns() + duration_ns;
    pthread_t thread;
    char byte = 1;

    if (lossy.near < 0)
        lossy = lossy_connect();
    tc_tell(job, "qdisc replace dev lo root netem loss 100%");
    sleep_for(SETTLE_NS);
    if (pthread_create(&thread, NULL, heal, &healer))
        lossy_fail("make a thread");
    if (send(lossy.near, &byte, 1, 0) != 1 || recv(lossy.far, &byte, 1, 0) != 1)
        lossy_fail("talk to itself over lo");
    pthread_join(thread, NULL);
    if (truth_now_ns() < until_ns)
        sleep_for(until_ns - truth_now_ns());
}
