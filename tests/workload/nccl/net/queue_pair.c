/* SPDX-License-Identifier: BSD-2-Clause */
/* PSNs begin at 0 and all queue pairs are RC, as in every version of NCCL. */
#include "net/queue_pair.h"

#include "setting.h"
#include "truth.h"

#include <errno.h>
#include <string.h>

enum { SEND_REQUESTS = 2 * NET_REQUESTS * 4, RECEIVE_REQUESTS = NET_REQUESTS * 2, HOPS = 255, RNR_TIMER = 12 };

static const char *const role_names[] = {"send", "receive", "flush"};

int queue_pair_create(struct queue_pair *queue, int device, struct ibv_cq *cq, void *context, enum queue_role role)
{
    struct ibv_qp_init_attr init = {.qp_context = context, .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT, .port_num = VERBS_PORT};

    *queue = (struct queue_pair){.device = &verbs_devices[device], .created_ns = truth_now_ns()};
    init.cap = (struct ibv_qp_cap){.max_send_wr = SEND_REQUESTS, .max_send_sge = 1, .max_recv_sge = 1};
    init.cap.max_recv_wr = role == QUEUE_SEND ? 0 : RECEIVE_REQUESTS;
    queue->qp = verbs.create_qp(queue->device->pd, &init);
    if (!queue->qp)
        return -errno;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (role == QUEUE_RECEIVE)
        attributes.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    if (role == QUEUE_FLUSH)
        attributes.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE;
    return -verbs.modify_qp(queue->qp, &attributes,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int queue_pair_address(const struct queue_pair *queue, struct queue_address *address)
{
    address->qpn = queue->qp->qp_num;
    return -verbs.query_gid(queue->device->context, VERBS_PORT, queue->device->gid_index, &address->gid);
}

static int to_rtr(const struct queue_pair *queue, const struct queue_address *remote)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR,
                                     .path_mtu = queue->device->mtu,
                                     .dest_qp_num = remote->qpn,
                                     .max_dest_rd_atomic = 1,
                                     .min_rnr_timer = RNR_TIMER};

    attributes.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = VERBS_PORT};
    attributes.ah_attr.grh.dgid = remote->gid;
    attributes.ah_attr.grh.sgid_index = (uint8_t)queue->device->gid_index;
    attributes.ah_attr.grh.hop_limit = HOPS;
    attributes.ah_attr.grh.traffic_class = (uint8_t)setting_read("NCCL_IB_TC", 0);
    attributes.ah_attr.sl = (uint8_t)setting_read("NCCL_IB_SL", 0);
    return -verbs.modify_qp(queue->qp, &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(const struct queue_pair *queue)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTS, .rnr_retry = 7, .max_rd_atomic = 1};

    attributes.timeout = (uint8_t)setting_read("NCCL_IB_TIMEOUT", 20);
    attributes.retry_cnt = (uint8_t)setting_read("NCCL_IB_RETRY_CNT", 7);
    return -verbs.modify_qp(queue->qp, &attributes,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                IBV_QP_MAX_QP_RD_ATOMIC);
}

static void connection_note(const struct queue_pair *queue, const struct queue_address *remote, enum queue_role role,
                            const struct net_label *label)
{
    struct truth_line line;
    struct queue_address local;

    truth_begin(&line, "connection");
    truth_text(&line, "device", queue->device->name);
    truth_number(&line, "qpn", queue->qp->qp_num);
    truth_text(&line, "role", role_names[role]);
    truth_pointer(&line, "comm", label->comm);
    truth_raw(&line, ",\"comm_hash\":\"%016lx\"", label->comm_hash);
    truth_signed(&line, "comm_rank", label->rank);
    truth_signed(&line, "owner_rank", label->owner_rank);
    truth_signed(&line, "peer", label->peer);
    truth_signed(&line, "origin", label->origin);
    truth_signed(&line, "tp_rank", label->tp_rank);
    truth_signed(&line, "tp_peer", label->tp_peer);
    truth_signed(&line, "channel", label->channel);
    truth_signed(&line, "connection", label->connection);
    truth_signed(&line, "shared", label->is_shared);
    truth_number(&line, "remote_qpn", remote->qpn);
    if (!queue_pair_address(queue, &local))
        truth_hex(&line, "local_gid", local.gid.raw, sizeof local.gid.raw);
    truth_hex(&line, "remote_gid", remote->gid.raw, sizeof remote->gid.raw);
    truth_number(&line, "created_ns", queue->created_ns);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
}

void queue_pair_join(const struct queue_pair *queue, const struct net_label *label)
{
    struct truth_line line;

    truth_begin(&line, "connection_joined");
    truth_text(&line, "device", queue->device->name);
    truth_number(&line, "qpn", queue->qp->qp_num);
    truth_number(&line, "created_ns", queue->created_ns);
    truth_pointer(&line, "comm", label->comm);
    truth_signed(&line, "channel", label->channel);
    truth_signed(&line, "tp_rank", label->tp_rank);
    truth_signed(&line, "tp_peer", label->tp_peer);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
}

int queue_pair_connect(struct queue_pair *queue, const struct queue_address *remote, enum queue_role role,
                       const struct net_label *label)
{
    int error = to_rtr(queue, remote);

    if (!error)
        error = to_rts(queue);
    if (!error)
        connection_note(queue, remote, role, label);
    return error;
}

static uint64_t request_bytes(const struct ibv_send_wr *request)
{
    return request->num_sge ? request->sg_list[0].length : 0;
}

int queue_pair_post(struct queue_pair *queue, struct ibv_send_wr *first)
{
    struct ibv_send_wr *bad;

    for (const struct ibv_send_wr *request = first; request; request = request->next) {
        queue->writes += request->opcode == IBV_WR_RDMA_WRITE;
        queue->write_bytes += request->opcode == IBV_WR_RDMA_WRITE ? request_bytes(request) : 0;
        queue->immediates += request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
        queue->immediate_bytes += request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? request_bytes(request) : 0;
        queue->reads += request->opcode == IBV_WR_RDMA_READ;
    }
    return -queue->qp->context->ops.post_send(queue->qp, first, &bad);
}

void queue_pair_destroy(struct queue_pair *queue)
{
    struct truth_line line;

    if (!queue->qp)
        return;
    truth_begin(&line, "connection_end");
    truth_text(&line, "device", queue->device->name);
    truth_number(&line, "qpn", queue->qp->qp_num);
    truth_number(&line, "created_ns", queue->created_ns);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_number(&line, "writes", queue->writes);
    truth_number(&line, "write_bytes", queue->write_bytes);
    truth_number(&line, "immediates", queue->immediates);
    truth_number(&line, "immediate_bytes", queue->immediate_bytes);
    truth_number(&line, "size_records", queue->size_records);
    truth_number(&line, "reads", queue->reads);
    verbs.destroy_qp(queue->qp);
    queue->qp = NULL;
    truth_put(&line);
}
