/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA, on the wire as NCCL's: the receiver writes a credit of 64 bytes into the sender's fifo; the sender answers with
 * one write with immediate data, or above 8 KiB with a write and then an empty one with immediate data; received data
 * of a device is flushed by reading one byte over a queue pair that is connected to itself.
 */
#include "net/net_private.h"
#include "net/queue_pair.h"
#include "net/tcp.h"
#include "net/warning.h"

#include "setting.h"
#include "truth.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUEUES_MAX = 128, RECEIVES_MAX = 8, SPLIT_ALIGN_BYTES = 128, AR_THRESHOLD_BYTES = 8192 };
enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

struct credit { /* one message that the receiver has room for */
    _Alignas(64) uint64_t address;
    uint64_t room_bytes;
    uint32_t rkeys[4];
    uint32_t count, tag;
    uint64_t index;
};

_Static_assert(sizeof(struct credit) == 64, "a credit's place on the wire");

struct metadata { /* what both sides tell each other over TCP */
    uint32_t queues_count, fifo_rkey;
    uint64_t fifo_address;
    union ibv_gid gid;
    uint32_t mtu;
    uint32_t qpns[QUEUES_MAX];
};

struct net_listener {
    int fd, device;
};

struct request {
    bool is_used;
    int events;
    uint64_t size_bytes;
};

enum end_state { END_AWAITS_METADATA, END_AWAITS_READY, END_READY };

struct net_end {
    bool sends, needs_flush;
    enum end_state state;
    int fd, device, queues_count, next_queue, ends_stats;
    struct net_label label;
    struct ibv_cq *cq;
    struct ibv_mr *fifo_mr, *memory_mr, *flush_mr;
    struct queue_pair queues[QUEUES_MAX], flush;
    struct credit fifo[NET_REQUESTS][RECEIVES_MAX]; /* the sender's; the receiver's copies of it */
    uint64_t fifo_next;
    struct metadata remote;
    struct request requests[NET_REQUESTS];
    int flush_byte;
};

static int ib_open(void)
{
    return verbs_open();
}

static int ib_listen(int device, struct net_listener **listener, void *handle)
{
    struct sockaddr_in address;
    int fd = tcp_listen(&address);

    if (fd < 0)
        return fd;
    *listener = malloc(sizeof **listener);
    **listener = (struct net_listener){fd, device};
    memset(handle, 0, NET_HANDLE_BYTES);
    memcpy(handle, &address, sizeof address);
    return 0;
}

static void ib_listener_close(struct net_listener *listener)
{
    close(listener->fd);
    free(listener);
}

static struct net_end *end_new(int fd, int device, bool sends, const struct net_label *label)
{
    struct net_end *end = aligned_alloc(64, (sizeof *end + 63) / 64 * 64);

    memset(end, 0, sizeof *end);
    end->fd = fd;
    end->device = device;
    end->sends = sends;
    end->label = *label;
    end->queues_count = setting_read("NCCL_IB_QPS_PER_CONNECTION", 1);
    if (end->queues_count < 1 || end->queues_count > QUEUES_MAX)
        end->queues_count = 1;
    return end;
}

/* Makes the completion queue, the fifo's registration and the queue pairs, all in INIT. */
static int end_resources(struct net_end *end)
{
    const struct verbs_device *device = &verbs_devices[end->device];
    int entries = 2 * NET_REQUESTS * end->queues_count + NET_REQUESTS, error = 0;

    end->cq = verbs.create_cq(device->context, entries, NULL, NULL, 0);
    end->fifo_mr = verbs.reg_mr(device->pd, end->fifo, sizeof end->fifo, ACCESS);
    if (!end->cq || !end->fifo_mr)
        return -errno;
    for (int i = 0; !error && i < end->queues_count; i++)
        error = queue_pair_create(&end->queues[i], end->device, end->cq, &end->ends_stats,
                                  end->sends ? QUEUE_SEND : QUEUE_RECEIVE);
    return error;
}

static int metadata_send(struct net_end *end)
{
    struct metadata mine = {.queues_count = (uint32_t)end->queues_count,
                            .fifo_rkey = end->fifo_mr->rkey,
                            .fifo_address = (uintptr_t)end->fifo,
                            .mtu = verbs_devices[end->device].mtu};

    for (int i = 0; i < end->queues_count; i++) {
        struct queue_address address;
        int error = queue_pair_address(&end->queues[i], &address);
        if (error)
            return error;
        mine.qpns[i] = address.qpn;
        mine.gid = address.gid;
    }
    return tcp_send(end->fd, &mine, sizeof mine);
}

static int queues_connect(struct net_end *end)
{
    int error = 0;

    for (int i = 0; !error && i < end->queues_count; i++) {
        struct queue_address remote = {end->remote.qpns[i], end->remote.gid};
        error = queue_pair_connect(&end->queues[i], &remote, end->sends ? QUEUE_SEND : QUEUE_RECEIVE, &end->label);
    }
    return error;
}

static int flush_connect(struct net_end *end)
{
    struct queue_address self;
    int error = queue_pair_create(&end->flush, end->device, end->cq, &end->ends_stats, QUEUE_FLUSH);

    end->flush_mr = verbs.reg_mr(verbs_devices[end->device].pd, &end->flush_byte, sizeof end->flush_byte, ACCESS);
    if (!error && !end->flush_mr)
        error = -errno;
    if (!error)
        error = queue_pair_address(&end->flush, &self);
    return error ? error : queue_pair_connect(&end->flush, &self, QUEUE_FLUSH, &end->label);
}

static int ib_connect(int device, const void *handle, const struct net_label *label, struct net_end **end)
{
    struct sockaddr_in address;

    memcpy(&address, handle, sizeof address);
    int fd = tcp_connect(&address);
    if (fd < 0)
        return fd;
    *end = end_new(fd, device, true, label);
    int error = end_resources(*end);
    return error ? error : metadata_send(*end);
}

static int ib_accept(struct net_listener *listener, int needs_flush, const struct net_label *label,
                     struct net_end **end)
{
    if (!tcp_is_readable(listener->fd))
        return -EAGAIN;
    int fd = tcp_accept(listener->fd, NULL);
    if (fd < 0)
        return fd;
    *end = end_new(fd, listener->device, false, label);
    (*end)->needs_flush = needs_flush;
    return 0;
}

static int sender_goes_on(struct net_end *end)
{
    int error = queues_connect(end);

    end->state = END_READY;
    return error ? error : tcp_send(end->fd, &(int){1}, sizeof(int));
}

static int receiver_goes_on(struct net_end *end)
{
    end->queues_count = (int)end->remote.queues_count;
    int error = end->queues_count > QUEUES_MAX ? -EPROTO : end_resources(end);

    if (!error)
        error = queues_connect(end);
    if (!error && end->needs_flush)
        error = flush_connect(end);
    end->state = END_AWAITS_READY;
    return error ? error : metadata_send(end);
}

static int ib_ready(struct net_end *end)
{
    int ready, error;

    if (end->state == END_READY)
        return 0;
    if (!tcp_is_readable(end->fd))
        return -EAGAIN;
    if (end->state == END_AWAITS_READY) {
        error = tcp_receive(end->fd, &ready, sizeof ready, NULL);
        end->state = END_READY;
        return error;
    }
    error = tcp_receive(end->fd, &end->remote, sizeof end->remote, NULL);
    if (error)
        return error;
    if (end->sends)
        return sender_goes_on(end);
    error = receiver_goes_on(end);
    return error ? error : -EAGAIN;
}

static int ib_register(struct net_end *end, void *memory, size_t size_bytes)
{
    end->memory_mr = verbs.reg_mr(verbs_devices[end->device].pd, memory, size_bytes, ACCESS);
    return end->memory_mr ? 0 : -errno;
}

static struct request *request_take(struct net_end *end, int *number)
{
    for (int i = 0; i < NET_REQUESTS; i++) {
        if (end->requests[i].is_used)
            continue;
        end->requests[i] = (struct request){.is_used = true};
        *number = i;
        return &end->requests[i];
    }
    return NULL;
}

/* Messages go over one queue pair after the other, or in parts over all of them. */
static int queues_used(const struct net_end *end)
{
    return setting_read("NCCL_IB_SPLIT_DATA_ON_QPS", 0) ? end->queues_count : 1;
}

static struct queue_pair *queue_next(struct net_end *end)
{
    struct queue_pair *queue = &end->queues[end->next_queue];

    end->next_queue = (end->next_queue + 1) % end->queues_count;
    return queue;
}

static int part_post(struct net_end *end, const struct credit *credit, const char *from, uint64_t offset,
                     uint32_t length_bytes, uint32_t immediate, int request)
{
    struct ibv_sge piece = {(uintptr_t)from + offset, length_bytes, end->memory_mr->lkey};
    struct ibv_send_wr last = {.wr_id = (uint64_t)request,
                               .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                               .send_flags = IBV_SEND_SIGNALED,
                               .imm_data = immediate};
    struct ibv_send_wr write = {
        .sg_list = &piece, .num_sge = length_bytes > 0, .opcode = IBV_WR_RDMA_WRITE, .next = &last};

    write.wr.rdma.remote_addr = credit->address + offset;
    write.wr.rdma.rkey = credit->rkeys[0];
    if (immediate > AR_THRESHOLD_BYTES)
        return queue_pair_post(queue_next(end), &write);
    last.sg_list = write.sg_list;
    last.num_sge = write.num_sge;
    last.wr.rdma = write.wr.rdma;
    return queue_pair_post(queue_next(end), &last);
}

static int ib_send(struct net_end *end, const void *memory, size_t size_bytes, int *request)
{
    const struct credit *credit = end->fifo[end->fifo_next % NET_REQUESTS];
    uint64_t parts = (uint64_t)queues_used(end), offset = 0;
    uint64_t part = (size_bytes + parts - 1) / parts;
    int error = 0;

    if (__atomic_load_n(&credit->index, __ATOMIC_ACQUIRE) != end->fifo_next + 1)
        return -EAGAIN;
    struct request *mine = request_take(end, request);
    if (!mine)
        return -EAGAIN;
    part = (part + SPLIT_ALIGN_BYTES - 1) / SPLIT_ALIGN_BYTES * SPLIT_ALIGN_BYTES;
    mine->size_bytes = size_bytes;
    for (uint64_t i = 0; !error && i < parts; i++) {
        uint64_t length_bytes = size_bytes - offset < part ? size_bytes - offset : part;
        mine->events++;
        error = part_post(end, credit, memory, offset, (uint32_t)length_bytes, (uint32_t)size_bytes, *request);
        offset += length_bytes;
    }
    end->fifo_next++;
    return error;
}

static int receives_post(struct net_end *end, struct request *request, int number)
{
    struct ibv_recv_wr wanted = {.wr_id = (uint64_t)number}, *bad;
    int error = 0;

    for (int i = 0, parts = queues_used(end); !error && i < parts; i++) {
        struct ibv_qp *qp = queue_next(end)->qp;
        request->events++;
        error = -qp->context->ops.post_recv(qp, &wanted, &bad);
    }
    return error;
}

/* Writes the credit into the sender's fifo; every 32nd is signalled, so that the send queue is emptied. */
static int credit_post(struct net_end *end, struct request *request, int number)
{
    uint64_t slot = end->fifo_next % NET_REQUESTS;
    struct credit *credit = end->fifo[slot];
    struct ibv_sge piece = {(uintptr_t)credit, sizeof *credit, end->fifo_mr->lkey};
    struct ibv_send_wr write = {
        .wr_id = (uint64_t)number, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

    write.wr.rdma.remote_addr = end->remote.fifo_address + slot * sizeof end->fifo[0];
    write.wr.rdma.rkey = end->remote.fifo_rkey;
    if (slot == 0) {
        write.send_flags = IBV_SEND_SIGNALED;
        request->events++;
    }
    end->fifo_next++;
    return queue_pair_post(&end->queues[0], &write);
}

static int ib_receive(struct net_end *end, void *memory, size_t room_bytes, int *request)
{
    struct request *mine = request_take(end, request);
    struct credit *credit = end->fifo[end->fifo_next % NET_REQUESTS];

    if (!mine)
        return -EAGAIN;
    *credit = (struct credit){.address = (uintptr_t)memory,
                              .room_bytes = room_bytes,
                              .rkeys = {end->memory_mr->rkey},
                              .count = 1,
                              .tag = (uint32_t)end->label.origin,
                              .index = end->fifo_next + 1};
    int error = receives_post(end, mine, *request);
    return error ? error : credit_post(end, mine, *request);
}

static int ib_flush(struct net_end *end, void *memory, int *request)
{
    struct ibv_sge piece = {(uintptr_t)&end->flush_byte, 1, end->flush_mr ? end->flush_mr->lkey : 0};
    struct ibv_send_wr read = {
        .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};

    if (!end->needs_flush)
        return -EOPNOTSUPP;
    struct request *mine = request_take(end, request);
    if (!mine)
        return -EAGAIN;
    mine->events = 1;
    read.wr_id = (uint64_t)*request;
    read.wr.rdma.remote_addr = (uintptr_t)memory;
    read.wr.rdma.rkey = end->memory_mr->rkey;
    return queue_pair_post(&end->flush, &read);
}

static void failure_note(const struct net_end *end, const struct ibv_wc *completion)
{
    const char *device = verbs_devices[end->device].name;
    struct truth_line line;

    warning_log(WARNING_LEVEL, WARNING_NET, __func__, __LINE__,
                "NET/IB: Got completion from peer with status=%d opcode=%d vendor_err=%u qp=%u hca %s",
                completion->status, completion->opcode, completion->vendor_err, completion->qp_num, device);
    truth_begin(&line, "completion_error");
    truth_text(&line, "device", device);
    truth_number(&line, "qpn", completion->qp_num);
    truth_pointer(&line, "comm", end->label.comm);
    truth_signed(&line, "status", completion->status);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
}

static int completion_take(struct net_end *end, const struct ibv_wc *completion)
{
    if (completion->status != IBV_WC_SUCCESS) {
        failure_note(end, completion);
        return -EREMOTEIO;
    }
    struct request *request = &end->requests[completion->wr_id % NET_REQUESTS];
    if (completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        request->size_bytes = completion->imm_data;
    request->events--;
    return 0;
}

static int ib_test(struct net_end *end, int request, size_t *size_bytes)
{
    struct ibv_wc completions[4];
    struct request *mine = &end->requests[request];

    while (mine->events > 0) {
        int found = end->cq->context->ops.poll_cq(end->cq, 4, completions);
        if (found <= 0)
            return found < 0 ? -EIO : -EAGAIN;
        for (int i = 0; i < found; i++)
            if (completion_take(end, &completions[i]))
                return -EREMOTEIO;
    }
    *size_bytes = mine->size_bytes;
    mine->is_used = false;
    return 0;
}

static void ib_close(struct net_end *end)
{
    for (int i = 0; i < end->queues_count; i++)
        queue_pair_destroy(&end->queues[i]);
    queue_pair_destroy(&end->flush);
    if (end->cq)
        verbs.destroy_cq(end->cq);
    if (end->fifo_mr)
        verbs.dereg_mr(end->fifo_mr);
    if (end->memory_mr)
        verbs.dereg_mr(end->memory_mr);
    if (end->flush_mr)
        verbs.dereg_mr(end->flush_mr);
    close(end->fd);
    free(end);
}

const struct net_kind net_ib = {
    .name = "IB",
    .open = ib_open,
    .listen = ib_listen,
    .listener_close = ib_listener_close,
    .connect = ib_connect,
    .accept = ib_accept,
    .ready = ib_ready,
    .register_memory = ib_register,
    .send = ib_send,
    .receive = ib_receive,
    .flush = ib_flush,
    .test = ib_test,
    .close = ib_close,
};
