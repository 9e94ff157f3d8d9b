/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA: connections. What goes over them: transfer.c. */
#include "net/net_private.h"
#include "net/tcp.h"
#include "net/transfer.h"

#include "setting.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIFO_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

struct metadata { /* what both sides tell each other over TCP */
    uint32_t queues_count, fifo_rkey, sizes_rkey;
    uint64_t fifo_address, sizes_address;
    union ibv_gid gid;
    uint32_t mtu;
    uint32_t qpns[QUEUES_MAX];
};

struct net_listener {
    int fd, device;
};

enum end_state { END_AWAITS_METADATA, END_AWAITS_READY, END_READY };

struct net_end {
    enum end_state state;
    int fd, ends_stats;
    struct net_label label;
    struct metadata remote;
    struct transfer transfer;
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
    end->label = *label;
    end->transfer.device = device;
    end->transfer.sends = sends;
    end->transfer.comm = label->comm;
    end->transfer.queues_count = setting_read("NCCL_IB_QPS_PER_CONNECTION", 1);
    if (end->transfer.queues_count < 1 || end->transfer.queues_count > QUEUES_MAX)
        end->transfer.queues_count = 1;
    return end;
}

/* Makes the completion queue, the registrations of fifo and sizes, and the queue pairs, all in INIT. */
static int end_resources(struct net_end *end)
{
    struct transfer *transfer = &end->transfer;
    const struct verbs_device *device = &verbs_devices[transfer->device];
    int entries = 2 * NET_REQUESTS * transfer->queues_count + NET_REQUESTS, error = 0;

    transfer->cq = verbs.create_cq(device->context, entries, NULL, NULL, 0);
    transfer->fifo_mr = verbs.reg_mr(device->pd, transfer->fifo, sizeof transfer->fifo, FIFO_ACCESS);
    transfer->sizes_mr = verbs.reg_mr(device->pd, transfer->sizes, sizeof transfer->sizes, FIFO_ACCESS);
    if (!transfer->cq || !transfer->fifo_mr || !transfer->sizes_mr)
        return -errno;
    for (int i = 0; !error && i < transfer->queues_count; i++)
        error = queue_pair_create(&transfer->queues[i], transfer->device, transfer->cq, &end->ends_stats,
                                  transfer->sends ? QUEUE_SEND : QUEUE_RECEIVE);
    return error;
}

static int metadata_send(struct net_end *end)
{
    const struct transfer *transfer = &end->transfer;
    struct metadata mine = {.queues_count = (uint32_t)transfer->queues_count,
                            .fifo_rkey = transfer->fifo_mr->rkey,
                            .sizes_rkey = transfer->sizes_mr->rkey,
                            .fifo_address = (uintptr_t)transfer->fifo,
                            .sizes_address = (uintptr_t)transfer->sizes,
                            .mtu = verbs_devices[transfer->device].mtu};

    for (int i = 0; i < transfer->queues_count; i++) {
        struct queue_address address;
        int error = queue_pair_address(&transfer->queues[i], &address);
        if (error)
            return error;
        mine.qpns[i] = address.qpn;
        mine.gid = address.gid;
    }
    return tcp_send(end->fd, &mine, sizeof mine);
}

static int metadata_receive(struct net_end *end)
{
    struct transfer *transfer = &end->transfer;
    int error = tcp_receive(end->fd, &end->remote, sizeof end->remote, NULL);

    transfer->remote_fifo = end->remote.fifo_address;
    transfer->remote_fifo_rkey = end->remote.fifo_rkey;
    transfer->remote_sizes = end->remote.sizes_address;
    transfer->remote_sizes_rkey = end->remote.sizes_rkey;
    return error;
}

static int queues_connect(struct net_end *end)
{
    struct transfer *transfer = &end->transfer;
    int error = 0;

    for (int i = 0; !error && i < transfer->queues_count; i++) {
        struct queue_address remote = {end->remote.qpns[i], end->remote.gid};
        error = queue_pair_connect(&transfer->queues[i], &remote, transfer->sends ? QUEUE_SEND : QUEUE_RECEIVE,
                                   &end->label);
    }
    return error;
}

static int flush_connect(struct net_end *end)
{
    struct transfer *transfer = &end->transfer;
    struct queue_address self;
    int error = queue_pair_create(&transfer->flush, transfer->device, transfer->cq, &end->ends_stats, QUEUE_FLUSH);

    transfer->flush_mr = verbs.reg_mr(verbs_devices[transfer->device].pd, &transfer->flush_byte,
                                      sizeof transfer->flush_byte, FIFO_ACCESS);
    if (!error && !transfer->flush_mr)
        error = -errno;
    if (!error)
        error = queue_pair_address(&transfer->flush, &self);
    return error ? error : queue_pair_connect(&transfer->flush, &self, QUEUE_FLUSH, &end->label);
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
    (*end)->transfer.needs_flush = needs_flush;
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
    struct transfer *transfer = &end->transfer;

    transfer->queues_count = (int)end->remote.queues_count;
    int error = transfer->queues_count > QUEUES_MAX ? -EPROTO : end_resources(end);

    if (!error)
        error = queues_connect(end);
    if (!error && transfer->needs_flush)
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
    error = metadata_receive(end);
    if (error)
        return error;
    if (end->transfer.sends)
        return sender_goes_on(end);
    error = receiver_goes_on(end);
    return error ? error : -EAGAIN;
}

static void ib_join(const struct net_end *end, const struct net_label *label)
{
    for (int i = 0; i < end->transfer.queues_count; i++)
        queue_pair_join(&end->transfer.queues[i], label);
}

static int ib_register(struct net_end *end, void *memory, size_t size_bytes)
{
    return transfer_register(&end->transfer, memory, size_bytes);
}

static int ib_send(struct net_end *end, const struct net_piece *piece, int *request)
{
    return transfer_send(&end->transfer, piece, request);
}

static int ib_receive(struct net_end *end, const struct net_piece *pieces, int count, int *request)
{
    return transfer_receive(&end->transfer, pieces, count, request);
}

static int ib_flush(struct net_end *end, void *memory, int *request)
{
    return transfer_flush(&end->transfer, memory, request);
}

static int ib_test(struct net_end *end, int request, size_t *size_bytes)
{
    return transfer_test(&end->transfer, request, size_bytes);
}

static void registration_drop(struct ibv_mr *mr)
{
    if (mr)
        verbs.dereg_mr(mr);
}

static void ib_close(struct net_end *end)
{
    struct transfer *transfer = &end->transfer;

    for (int i = 0; i < transfer->queues_count; i++)
        queue_pair_destroy(&transfer->queues[i]);
    queue_pair_destroy(&transfer->flush);
    if (transfer->cq)
        verbs.destroy_cq(transfer->cq);
    registration_drop(transfer->fifo_mr);
    registration_drop(transfer->sizes_mr);
    registration_drop(transfer->flush_mr);
    for (int i = 0; i < transfer->memories_count; i++)
        registration_drop(transfer->memory_mrs[i]);
    close(end->fd);
    free(end);
}

const struct net_kind net_ib = {
    .name = "IB",
    .receives = NET_RECEIVES,
    .open = ib_open,
    .listen = ib_listen,
    .listener_close = ib_listener_close,
    .connect = ib_connect,
    .accept = ib_accept,
    .ready = ib_ready,
    .join = ib_join,
    .register_memory = ib_register,
    .send = ib_send,
    .receive = ib_receive,
    .flush = ib_flush,
    .test = ib_test,
    .close = ib_close,
};
