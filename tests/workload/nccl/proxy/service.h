/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service thread of a proxy: makes and closes connections at the request of ranks, its own and, with PXN, those of
 * neighbours. One for each communicator, or for a family of communicators that share it. The thread that makes a
 * communicator creates it.
 */
#pragma once

#include "net/net.h"
#include "proxy/progress.h"

#include <netinet/in.h>

/* The argument of the thread; begins as NCCL's ncclProxyState of 2.30. */
struct service {
    int references;
    const void *comm;
    int tp_rank, tp_ranks, tp_local_ranks, cuda_device;
    uint64_t comm_hash;
    int listen_fd, step_bytes;
    struct sockaddr_in address;
    pthread_t thread;
    struct progress progress;
    struct connection *connections;
};

/* The object behind a connection; the process that asked for it may set the label before it connects. */
struct connection {
    struct service *service;
    struct carrier carrier;
    struct net_listener *listener;
    struct net_label label;
    int device, needs_flush, is_shared, is_ready;
    int far_proxy; /* the rank whose service has the other end */
    char handle[NET_HANDLE_BYTES];
    struct connection *next;
};

/* `first` gives what it is for; the rest is filled in. 0 or -errno. */
int service_create(struct service **service, const struct service *first);

/* Gives up one reference; the last one ends the thread, which closes what is left. The message STOP ends it. */
void service_join(struct service *service);
