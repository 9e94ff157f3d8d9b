/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair on its way through its states, in the order and with the attributes that NCCL uses, and what the truth
 * file says of it. Errors: -errno. Used by the service thread; the counters by the progress thread.
 */
#pragma once

#include "net/net.h"
#include "net/verbs.h"

struct queue_pair {
    struct ibv_qp *qp;
    const struct verbs_device *device;
    uint64_t created_ns;
    uint64_t writes, write_bytes, immediates, immediate_bytes, reads; /* posted */
    uint64_t size_records; /* of the immediates: those whose data are the sizes of several messages */
};

enum queue_role { QUEUE_SEND, QUEUE_RECEIVE, QUEUE_FLUSH };

struct queue_address { /* what the other side needs to know */
    uint32_t qpn;
    union ibv_gid gid;
};

/* Makes it and takes it to INIT. `context`: of the connection, the same for all its queue pairs. */
int queue_pair_create(struct queue_pair *queue, int device, struct ibv_cq *cq, void *context, enum queue_role role);

/* To RTR and RTS, and the truth's line for it. */
int queue_pair_connect(struct queue_pair *queue, const struct queue_address *remote, enum queue_role role,
                       const struct net_label *label);

/* The truth's line for a rank more that shares it. */
void queue_pair_join(const struct queue_pair *queue, const struct net_label *label);
int queue_pair_address(const struct queue_pair *queue, struct queue_address *address);

/* 0 or -errno; counts what it posts. */
int queue_pair_post(struct queue_pair *queue, struct ibv_send_wr *first);
void queue_pair_destroy(struct queue_pair *queue);
