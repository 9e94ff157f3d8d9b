/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table by the address of the ibv_qp, open addressing; entries of destroyed queue pairs stay as tombstones.
 * In the library's protocol the last work request of a chain of several writes announces their sizes: it is counted
 * apart, as size record, and so is a write with no bytes.
 */
#include "queue.h"

#include "mark.h"
#include "truth.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { QUEUES = 8192, OPCODES = 16 };

struct posted {
    uint64_t posts, bytes;
};

struct queue {
    struct ibv_qp *qp; /* NULL when never used */
    bool gone;
    uint32_t number;
    const char *device;
    struct posted posted[OPCODES];
    struct posted size_records;
};

static struct queue queues[QUEUES];
static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t queue_place(const struct ibv_qp *qp)
{
    return (size_t)(((uintptr_t)qp >> 4) * 0x9e3779b97f4a7c15u >> 51) % QUEUES;
}

/* Entries are never taken out, so this needs no lock once the queue pair is known. */
static struct queue *queue_find(const struct ibv_qp *qp)
{
    size_t place = queue_place(qp);

    for (size_t tries = 0; tries < QUEUES; tries++) {
        struct queue *queue = &queues[(place + tries) % QUEUES];
        if (queue->qp == qp && !queue->gone)
            return queue;
        if (!queue->qp)
            return NULL;
    }
    return NULL;
}

static void queue_line(struct truth_line *line, const char *kind, const struct ibv_qp *qp)
{
    truth_begin(line, kind);
    truth_text(line, "device", qp->context->device->name);
    truth_number(line, "qpn", qp->qp_num);
    truth_number(line, "at_ns", truth_now_ns());
}

void queue_created(struct ibv_qp *qp)
{
    struct truth_line line;
    size_t place = queue_place(qp), tries = 0;
    const void *id = mark_id(mark_get());

    pthread_mutex_lock(&queues_lock);
    while (queues[(place + tries) % QUEUES].qp && tries < QUEUES)
        tries++;
    if (tries < QUEUES) {
        struct queue *queue = &queues[(place + tries) % QUEUES];
        queue->number = qp->qp_num;
        queue->device = qp->context->device->name;
        queue->qp = qp;
    }
    pthread_mutex_unlock(&queues_lock);
    if (tries == QUEUES)
        fprintf(stderr, "tracer: no room for another queue pair\n");
    queue_line(&line, "qp", qp);
    truth_signed(&line, "rank", mark_get().rank);
    truth_hex(&line, "id", id ? id : "", id ? MARK_ID_BYTES : 0);
    truth_put(&line);
}

void queue_modified(struct ibv_qp *qp, const struct ibv_qp_attr *attributes, int mask, const union ibv_gid *local)
{
    struct truth_line line;
    const union ibv_gid *remote = &attributes->ah_attr.grh.dgid;

    if (!(mask & IBV_QP_STATE))
        return;
    queue_line(&line, "qp_state", qp);
    truth_signed(&line, "state", attributes->qp_state);
    if (mask & IBV_QP_DEST_QPN && mask & IBV_QP_AV && local) {
        truth_number(&line, "remote_qpn", attributes->dest_qp_num);
        truth_hex(&line, "local_gid", local->raw, sizeof local->raw);
        truth_hex(&line, "remote_gid", remote->raw, sizeof remote->raw);
        truth_number(&line, "flush", attributes->dest_qp_num == qp->qp_num && !memcmp(local, remote, sizeof *local));
    }
    truth_put(&line);
}

static uint64_t request_bytes(const struct ibv_send_wr *request)
{
    uint64_t bytes = 0;

    for (int i = 0; i < request->num_sge; i++)
        bytes += request->sg_list[i].length;
    return bytes;
}

void queue_posted(struct ibv_qp *qp, const struct ibv_send_wr *first)
{
    struct queue *queue = queue_find(qp);

    if (!queue)
        return;
    for (const struct ibv_send_wr *request = first; request; request = request->next) {
        bool announces = request != first && !request->next && request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
        struct posted *posted = announces ? &queue->size_records : &queue->posted[request->opcode % OPCODES];
        posted->posts++;
        posted->bytes += request_bytes(request);
    }
}

static void posted_write(struct truth_line *line, const char *name, const struct posted *posted)
{
    truth_raw(line, ",\"%s_posts\":%lu,\"%s_bytes\":%lu", name, posted->posts, name, posted->bytes);
}

static void queue_write(const struct queue *queue)
{
    struct truth_line line;

    truth_begin(&line, "posted");
    truth_text(&line, "device", queue->device);
    truth_number(&line, "qpn", queue->number);
    posted_write(&line, "write", &queue->posted[IBV_WR_RDMA_WRITE]);
    posted_write(&line, "write_imm", &queue->posted[IBV_WR_RDMA_WRITE_WITH_IMM]);
    posted_write(&line, "send", &queue->posted[IBV_WR_SEND]);
    posted_write(&line, "read", &queue->posted[IBV_WR_RDMA_READ]);
    posted_write(&line, "size_record", &queue->size_records);
    truth_put(&line);
}

void queue_destroyed(struct ibv_qp *qp)
{
    struct queue *queue = queue_find(qp);

    if (!queue)
        return;
    queue_write(queue);
    queue->gone = true;
}

void queue_end(void)
{
    for (size_t i = 0; i < QUEUES; i++)
        if (queues[i].qp && !queues[i].gone)
            queue_write(&queues[i]);
}
