/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pairs of the job as the tracer sees them, and what was posted on them. Made and destroyed by any thread;
 * posts on one queue pair come from one thread at a time, as the library does it.
 */
#pragma once

#include <infiniband/verbs.h>

void queue_created(struct ibv_qp *qp);

/* A change of state that was asked for, and granted. */
void queue_modified(struct ibv_qp *qp, const struct ibv_qp_attr *attributes, int mask, const union ibv_gid *local);

/* One call of post_send, which may post a chain. */
void queue_posted(struct ibv_qp *qp, const struct ibv_send_wr *first);

/* Writes what was posted. To be called before the queue pair goes. */
void queue_destroyed(struct ibv_qp *qp);

/* The same for all that are still there. */
void queue_end(void);
