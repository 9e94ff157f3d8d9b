/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for libibverbs that needs no device: queue pairs with the public layout, exported under two versions as
 * the real one does (the old entry runs the new one inside). Device and first QPN come from the environment.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct ibv_device device;
static struct ibv_context context = {.device = &device};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_qpn;

struct old_queue_pair {
    struct ibv_qp seen; /* what a caller of the old version gets */
    struct ibv_qp *real;
};

__attribute__((constructor)) static void start(void)
{
    const char *name = getenv("STANDIN_DEVICE");
    const char *qpn = getenv("STANDIN_FIRST_QPN");
    snprintf(device.name, sizeof device.name, "%s", name == NULL ? "standin0" : name);
    next_qpn = qpn == NULL ? 17 : (uint32_t)atoi(qpn);
}

__attribute__((noinline)) struct ibv_qp *create_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    struct ibv_qp *queue_pair = calloc(1, sizeof *queue_pair);
    pthread_mutex_lock(&mutex);
    queue_pair->qp_num = next_qpn++;
    pthread_mutex_unlock(&mutex);
    queue_pair->context = &context;
    queue_pair->pd = pd;
    queue_pair->send_cq = attributes->send_cq;
    queue_pair->recv_cq = attributes->recv_cq;
    queue_pair->qp_type = attributes->qp_type;
    return queue_pair;
}

__attribute__((noinline)) int modify_new(struct ibv_qp *queue_pair, struct ibv_qp_attr *attributes, int mask)
{
    if ((mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_UNKNOWN)
        return EINVAL;
    queue_pair->state = attributes->qp_state;
    return 0;
}

__attribute__((noinline)) int destroy_new(struct ibv_qp *queue_pair)
{
    free(queue_pair);
    return 0;
}

struct ibv_qp *create_old(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    struct old_queue_pair *old = calloc(1, sizeof *old);
    old->real = create_new(pd, attributes);
    old->seen = *old->real;
    return &old->seen;
}

int modify_old(struct ibv_qp *queue_pair, struct ibv_qp_attr *attributes, int mask)
{
    return modify_new(((struct old_queue_pair *)queue_pair)->real, attributes, mask);
}

int destroy_old(struct ibv_qp *queue_pair)
{
    const int result = destroy_new(((struct old_queue_pair *)queue_pair)->real);
    free(queue_pair);
    return result;
}

__asm__(".symver create_new, ibv_create_qp@@IBVERBS_1.1");
__asm__(".symver create_old, ibv_create_qp@IBVERBS_1.0");
__asm__(".symver modify_new, ibv_modify_qp@@IBVERBS_1.1");
__asm__(".symver modify_old, ibv_modify_qp@IBVERBS_1.0");
__asm__(".symver destroy_new, ibv_destroy_qp@@IBVERBS_1.1");
__asm__(".symver destroy_old, ibv_destroy_qp@IBVERBS_1.0");
