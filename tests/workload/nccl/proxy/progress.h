/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress thread of a proxy: carries the operations of its lanes, posting and completing. Made by the service
 * thread when the first connection comes; lanes are added and removed by the service thread.
 */
#pragma once

#include "net/net.h"
#include "proxy/lane.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct carrier { /* one lane with its end of the network, which ranks may share */
    struct lane lane;
    struct net_end *end;
    uint32_t tag; /* whose messages these are: the sending rank, as the proxies count */
    struct progress *progress;
    bool sends, is_active, has_flush;
    uint64_t posted, received, flushed, done; /* steps of the operation that is being carried */
    int requests[STEPS], flush_request;
    struct carrier *next;
};

struct progress {
    pthread_t thread;
    pthread_mutex_t lock;
    struct carrier *carriers;
    bool is_started;
    atomic_bool stop;
    atomic_int error; /* -errno of the first connection that failed */
};

void progress_init(struct progress *progress);

/* Starts the thread if it does not run yet; 0 or -errno. */
int progress_start(struct progress *progress);
void progress_add(struct progress *progress, struct carrier *carrier);
void progress_remove(struct progress *progress, struct carrier *carrier);
void progress_stop(struct progress *progress);
