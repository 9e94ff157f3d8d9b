/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On the wire as NCCL's: the receiver writes its credits, 64 bytes each, side by side into a slot of the sender's fifo;
 * the sender answers one credit with one write with immediate data, or above 8 KiB with a write and then an empty one
 * with immediate data; several credits with a write each and then one with immediate data that writes the messages'
 * sizes into the receiver's size record. Received data of a device is flushed by reading one byte over a queue pair
 * that is connected to itself.
 */
#include "net/transfer.h"

#include "net/warning.h"

#include "setting.h"
#include "truth.h"

#include <errno.h>
#include <string.h>

enum { SPLIT_ALIGN_BYTES = 128, AR_THRESHOLD_BYTES = 8192, ID_BITS = 8 };
enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

int transfer_register(struct transfer *transfer, void *memory, size_t size_bytes)
{
    if (transfer->memories_count == MEMORIES_MAX)
        return -ENOSPC;
    struct ibv_mr *mr = verbs.reg_mr(verbs_devices[transfer->device].pd, memory, size_bytes, ACCESS);
    if (!mr)
        return -errno;
    transfer->memory_mrs[transfer->memories_count++] = mr;
    return 0;
}

static const struct ibv_mr *memory_find(const struct transfer *transfer, const void *memory)
{
    for (int i = 0; i < transfer->memories_count; i++) {
        const struct ibv_mr *mr = transfer->memory_mrs[i];
        if ((uintptr_t)memory - (uintptr_t)mr->addr < mr->length)
            return mr;
    }
    return NULL;
}

static struct request *request_take(struct transfer *transfer, int users, int *number)
{
    for (int i = 0; i < NET_REQUESTS; i++) {
        if (transfer->requests[i].users)
            continue;
        transfer->requests[i] = (struct request){.users = users};
        *number = i;
        return &transfer->requests[i];
    }
    return NULL;
}

/* Of what completes several requests: each is a byte, one higher than its number. */
static uint64_t id_of(int request)
{
    return (uint64_t)request + 1;
}

/* Messages go over one queue pair after the other, or in parts over all of them. */
static int queues_used(const struct transfer *transfer)
{
    return setting_read("NCCL_IB_SPLIT_DATA_ON_QPS", 0) ? transfer->queues_count : 1;
}

static struct queue_pair *queue_next(struct transfer *transfer)
{
    struct queue_pair *queue = &transfer->queues[transfer->next_queue];

    transfer->next_queue = (transfer->next_queue + 1) % transfer->queues_count;
    return queue;
}

/* Part `number` of a message that goes in `parts`. */
static void part_set(const struct transfer *transfer, const struct credit *credit, const struct net_piece *piece,
                     uint64_t parts, uint64_t number, struct ibv_sge *sge, struct ibv_send_wr *write)
{
    uint64_t each = (piece->size_bytes + parts - 1) / parts;

    each = (each + SPLIT_ALIGN_BYTES - 1) / SPLIT_ALIGN_BYTES * SPLIT_ALIGN_BYTES;
    uint64_t offset = number * each < piece->size_bytes ? number * each : piece->size_bytes;
    uint64_t length_bytes = piece->size_bytes - offset < each ? piece->size_bytes - offset : each;
    const struct ibv_mr *mr = memory_find(transfer, piece->memory);
    *sge = (struct ibv_sge){(uintptr_t)piece->memory + offset, (uint32_t)length_bytes, mr ? mr->lkey : 0};
    *write = (struct ibv_send_wr){.sg_list = sge, .num_sge = length_bytes > 0, .opcode = IBV_WR_RDMA_WRITE};
    write->wr.rdma.remote_addr = credit->address + offset;
    write->wr.rdma.rkey = credit->rkeys[0];
}

static void size_record_set(struct transfer *transfer, int count, struct ibv_sge *sge, struct ibv_send_wr *write)
{
    uint64_t slot = transfer->fifo_next % NET_REQUESTS;

    *sge = (struct ibv_sge){(uintptr_t)transfer->sizes[slot], (uint32_t)((size_t)count * sizeof(uint32_t)),
                            transfer->sizes_mr->lkey};
    write->sg_list = sge;
    write->num_sge = 1;
    write->wr.rdma.remote_addr = transfer->remote_sizes + slot * sizeof transfer->sizes[0];
    write->wr.rdma.rkey = transfer->remote_sizes_rkey;
}

/* One part of each message that was asked for, and the write that tells the receiver. */
static int group_post(struct transfer *transfer, int count, uint64_t parts, uint64_t number, uint64_t id)
{
    const struct credit *credits = transfer->fifo[transfer->fifo_next % NET_REQUESTS];
    struct ibv_send_wr writes[NET_RECEIVES + 1];
    struct ibv_sge sges[NET_RECEIVES + 1];
    struct ibv_send_wr *last = &writes[count];
    struct queue_pair *queue = queue_next(transfer);
    size_t size_bytes = transfer->outgoing[0].piece.size_bytes;

    for (int i = 0; i < count; i++) {
        part_set(transfer, &credits[i], &transfer->outgoing[i].piece, parts, number, &sges[i], &writes[i]);
        writes[i].next = &writes[i + 1];
    }
    *last = (struct ibv_send_wr){.num_sge = 0};
    if (count > 1)
        size_record_set(transfer, count, &sges[count], last);
    else if (size_bytes <= AR_THRESHOLD_BYTES)
        last = &writes[0];
    last->wr_id = id;
    last->next = NULL;
    last->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    last->send_flags = IBV_SEND_SIGNALED;
    last->imm_data = count > 1 ? 0 : (uint32_t)size_bytes;
    queue->size_records += count > 1;
    return queue_pair_post(queue, writes);
}

static int outgoing_post(struct transfer *transfer, int count)
{
    uint64_t slot = transfer->fifo_next % NET_REQUESTS, parts = (uint64_t)queues_used(transfer), id = 0;
    int error = 0;

    for (int i = 0; i < count; i++) {
        struct outgoing *outgoing = &transfer->outgoing[i];
        transfer->sizes[slot][i] = (uint32_t)outgoing->piece.size_bytes;
        transfer->requests[outgoing->request].events = (int)parts;
        id |= id_of(outgoing->request) << (ID_BITS * i);
        outgoing->is_there = false;
    }
    for (uint64_t i = 0; !error && i < parts; i++)
        error = group_post(transfer, count, parts, i, id);
    transfer->outgoing_count = 0;
    transfer->fifo_next++;
    return error;
}

/* Which of the credits of the next slot is for this tag; -EAGAIN when they are not there, or are for others. */
static int credit_find(const struct transfer *transfer, uint32_t tag)
{
    const struct credit *credits = transfer->fifo[transfer->fifo_next % NET_REQUESTS];
    int found = -EAGAIN, count = 1;

    for (int i = 0; i < count; i++) {
        if (__atomic_load_n(&credits[i].index, __ATOMIC_ACQUIRE) != transfer->fifo_next + 1)
            return -EAGAIN;
        count = credits[0].count <= NET_RECEIVES ? (int)credits[0].count : 1;
        if (credits[i].tag == tag && !transfer->outgoing[i].is_there)
            found = i;
    }
    return found;
}

int transfer_send(struct transfer *transfer, const struct net_piece *piece, int *request)
{
    const struct credit *credits = transfer->fifo[transfer->fifo_next % NET_REQUESTS];
    int place = credit_find(transfer, piece->tag), number;

    if (place < 0)
        return place;
    struct request *mine = request_take(transfer, 1, &number);
    if (!mine)
        return -EAGAIN;
    mine->events = 1; /* until it is posted */
    mine->size_bytes = piece->size_bytes;
    *request = number * NET_RECEIVES;
    transfer->outgoing[place] = (struct outgoing){*piece, number, true};
    transfer->outgoing_count++;
    return transfer->outgoing_count < (int)credits[0].count ? 0 : outgoing_post(transfer, (int)credits[0].count);
}

static int receives_post(struct transfer *transfer, struct request *request, int number)
{
    struct ibv_recv_wr wanted = {.wr_id = id_of(number)}, *bad;
    int error = 0;

    for (int i = 0, parts = queues_used(transfer); !error && i < parts; i++) {
        struct ibv_qp *qp = queue_next(transfer)->qp;
        request->events++;
        error = -qp->context->ops.post_recv(qp, &wanted, &bad);
    }
    return error;
}

/* Writes the credits into the sender's fifo; every 32nd is signalled, so that the send queue is emptied. */
static int credits_post(struct transfer *transfer, struct request *request, int number, int count)
{
    uint64_t slot = transfer->fifo_next % NET_REQUESTS;
    struct credit *credits = transfer->fifo[slot];
    struct ibv_sge piece = {(uintptr_t)credits, (uint32_t)((size_t)count * sizeof *credits), transfer->fifo_mr->lkey};
    struct ibv_send_wr write = {.wr_id = id_of(number), .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

    write.wr.rdma.remote_addr = transfer->remote_fifo + slot * sizeof transfer->fifo[0];
    write.wr.rdma.rkey = transfer->remote_fifo_rkey;
    if (slot == 0) {
        write.send_flags = IBV_SEND_SIGNALED;
        request->events++;
    }
    transfer->fifo_next++;
    return queue_pair_post(&transfer->queues[0], &write);
}

int transfer_receive(struct transfer *transfer, const struct net_piece *pieces, int count, int *request)
{
    uint64_t slot = transfer->fifo_next % NET_REQUESTS;
    int number;
    struct request *mine = request_take(transfer, count, &number);

    if (!mine)
        return -EAGAIN;
    mine->has_sizes = count > 1;
    mine->slot = (int)slot;
    *request = number * NET_RECEIVES;
    for (int i = 0; i < count; i++) {
        const struct ibv_mr *mr = memory_find(transfer, pieces[i].memory);
        transfer->fifo[slot][i] = (struct credit){.address = (uintptr_t)pieces[i].memory,
                                                  .room_bytes = pieces[i].size_bytes,
                                                  .rkeys = {mr ? mr->rkey : 0},
                                                  .count = (uint32_t)count,
                                                  .tag = pieces[i].tag,
                                                  .index = transfer->fifo_next + 1};
    }
    int error = receives_post(transfer, mine, number);
    return error ? error : credits_post(transfer, mine, number, count);
}

int transfer_flush(struct transfer *transfer, void *memory, int *request)
{
    struct ibv_sge piece = {(uintptr_t)&transfer->flush_byte, 1, transfer->flush_mr ? transfer->flush_mr->lkey : 0};
    struct ibv_send_wr read = {
        .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
    const struct ibv_mr *mr = memory_find(transfer, memory);
    int number;

    if (!transfer->needs_flush)
        return -EOPNOTSUPP;
    struct request *mine = request_take(transfer, 1, &number);
    if (!mine)
        return -EAGAIN;
    mine->events = 1;
    *request = number * NET_RECEIVES;
    read.wr_id = id_of(number);
    read.wr.rdma.remote_addr = (uintptr_t)memory;
    read.wr.rdma.rkey = mr ? mr->rkey : 0;
    return queue_pair_post(&transfer->flush, &read);
}

static void failure_note(const struct transfer *transfer, const struct ibv_wc *completion)
{
    const char *device = verbs_devices[transfer->device].name;
    struct truth_line line;

    warning_log(WARNING_LEVEL, WARNING_NET, __func__, __LINE__,
                "NET/IB: Got completion from peer with status=%d opcode=%d vendor_err=%u qp=%u hca %s",
                completion->status, completion->opcode, completion->vendor_err, completion->qp_num, device);
    truth_begin(&line, "completion_error");
    truth_text(&line, "device", device);
    truth_number(&line, "qpn", completion->qp_num);
    truth_pointer(&line, "comm", transfer->comm);
    truth_signed(&line, "status", completion->status);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
}

static int completion_take(struct transfer *transfer, const struct ibv_wc *completion)
{
    if (completion->status != IBV_WC_SUCCESS) {
        failure_note(transfer, completion);
        return -EREMOTEIO;
    }
    for (uint64_t id = completion->wr_id; id; id >>= ID_BITS) {
        struct request *request = &transfer->requests[((id & UINT8_MAX) - 1) % NET_REQUESTS];
        if (completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
            request->size_bytes = completion->imm_data;
        request->events--;
    }
    return 0;
}

int transfer_test(struct transfer *transfer, int request, size_t *size_bytes)
{
    struct ibv_wc completions[4];
    struct request *mine = &transfer->requests[request / NET_RECEIVES];

    while (mine->events > 0) {
        int found = transfer->cq->context->ops.poll_cq(transfer->cq, 4, completions);
        if (found <= 0)
            return found < 0 ? -EIO : -EAGAIN;
        for (int i = 0; i < found; i++)
            if (completion_take(transfer, &completions[i]))
                return -EREMOTEIO;
    }
    *size_bytes = mine->has_sizes ? transfer->sizes[mine->slot][request % NET_RECEIVES] : mine->size_bytes;
    mine->users--;
    return 0;
}
