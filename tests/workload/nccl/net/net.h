/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections between proxies, over RDMA (net_ib.c) or, without a device, over TCP (net_socket.c). A receiver listens
 * and gives its handle away; a sender connects to it. An end is made and closed by the service thread and used by the
 * progress thread. Errors: -errno; -EAGAIN: not yet, ask again; -EREMOTEIO: the other side failed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { NET_HANDLE_BYTES = 128, NET_REQUESTS = 32, NET_RECEIVES = 8 };

struct net_listener;
struct net_end;

struct net_label { /* what the truth file says of the end's queue pairs */
    const void *comm;
    uint64_t comm_hash;
    int rank, peer, origin; /* ranks of the communicator; origin: whose data it carries */
    int channel, connection, is_shared, owner_rank;
    int tp_rank, tp_peer; /* as the proxy was told: ranks of the communicator that owns the service thread */
};

struct net_piece { /* a message, or the room for one; the tag: whose it is, where several ranks share a connection */
    void *memory;
    size_t size_bytes;
    uint32_t tag;
};

/* Opens the devices, once in a process; 0 or -errno. */
int net_open(void);

/* How many devices there are; 1 when it is sockets. */
int net_devices(void);
const char *net_name(void);

int net_listen(int device, struct net_listener **listener, void *handle);
void net_listener_close(struct net_listener *listener);

/* Both only begin; the end is usable when net_ready returns 0. */
int net_connect(int device, const void *handle, const struct net_label *label, struct net_end **end);
int net_accept(struct net_listener *listener, int needs_flush, const struct net_label *label, struct net_end **end);
int net_ready(struct net_end *end);

/* A rank more shares the end: for the truth file. */
void net_join(const struct net_end *end, const struct net_label *label);

/* The memory that messages come from or go to. */
int net_register(struct net_end *end, void *memory, size_t size_bytes);

/* How many messages can be asked for at once: 1 where ranks cannot share a connection. */
int net_receives(void);

/* Each gives a request for net_test. net_send: -EAGAIN while the receiver has not asked for a message with this tag.
 * net_receive asks for several messages together; the requests of the second and further ones follow the first. */
int net_send(struct net_end *end, const struct net_piece *piece, int *request);
int net_receive(struct net_end *end, const struct net_piece *pieces, int count, int *request);

/* Makes received data visible to a device; -EOPNOTSUPP when that is not needed. */
int net_flush(struct net_end *end, void *memory, int *request);

/* 0 when it is done; the request is free then. */
int net_test(struct net_end *end, int request, size_t *size_bytes);
void net_close(struct net_end *end);
