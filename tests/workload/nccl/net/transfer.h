/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages over the queue pairs of one connection. The receiver asks for one message, or for one of each of several
 * ranks that share the connection (their tags tell them apart); the sender answers when it has all of them. Used by the
 * progress thread; what it consists of is made and freed by the service thread. Errors as in net.h.
 */
#pragma once

#include "net/queue_pair.h"

#include <stdbool.h>

enum { QUEUES_MAX = 128, MEMORIES_MAX = 8 };

struct credit { /* one message that the receiver has room for */
    _Alignas(64) uint64_t address;
    uint64_t room_bytes;
    uint32_t rkeys[4];
    uint32_t count, tag; /* count: of the credits that are given together */
    uint64_t index;
};

_Static_assert(sizeof(struct credit) == 64, "a credit's place on the wire");

struct request {
    int events, users, slot; /* users: who still wants to know that it is done; 0: free */
    uint64_t size_bytes;
    bool has_sizes; /* they are in the slot's size record */
};

struct outgoing { /* a message that waits for those that are asked for together with it */
    struct net_piece piece;
    int request;
    bool is_there;
};

struct transfer {
    bool sends, needs_flush;
    int device, queues_count, next_queue, memories_count, outgoing_count, flush_byte;
    const void *comm;
    struct ibv_cq *cq;
    struct ibv_mr *fifo_mr, *sizes_mr, *flush_mr, *memory_mrs[MEMORIES_MAX];
    struct queue_pair queues[QUEUES_MAX], flush;
    struct credit fifo[NET_REQUESTS][NET_RECEIVES]; /* the sender's; the receiver's copies of it */
    uint32_t sizes[NET_REQUESTS][NET_RECEIVES];     /* the receiver's; the sender's copies of it */
    uint64_t fifo_next, remote_fifo, remote_sizes;
    uint32_t remote_fifo_rkey, remote_sizes_rkey;
    struct request requests[NET_REQUESTS];
    struct outgoing outgoing[NET_RECEIVES];
};

int transfer_register(struct transfer *transfer, void *memory, size_t size_bytes);
int transfer_send(struct transfer *transfer, const struct net_piece *piece, int *request);
int transfer_receive(struct transfer *transfer, const struct net_piece *pieces, int count, int *request);
int transfer_flush(struct transfer *transfer, void *memory, int *request);
int transfer_test(struct transfer *transfer, int request, size_t *size_bytes);
