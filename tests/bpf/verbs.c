/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for libibverbs that needs no device: queue pairs with the public layout, exported under two versions as
 * the real one does (the old entry runs the new one inside), and the private entries that all ways pass through.
 * Device and first QPN come from the environment. What is posted with IBV_SEND_SIGNALED completes at the next poll.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_device device;
static struct ibv_context context = {.device = &device};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_qpn;

struct old_queue_pair {
    struct ibv_qp seen; /* what a caller of the old version gets */
    struct ibv_qp *real;
};

#define COMPLETIONS_MAX 64
static struct ibv_wc completions[COMPLETIONS_MAX];
static int completions_count;

/* As a provider's: no symbol leads to it. */
static int post_send(struct ibv_qp *queue_pair, struct ibv_send_wr *request, struct ibv_send_wr **refused)
{
    (void)refused;
    pthread_mutex_lock(&mutex);
    for (; request != NULL; request = request->next) {
        if ((request->send_flags & IBV_SEND_SIGNALED) == 0 || completions_count == COMPLETIONS_MAX)
            continue;
        completions[completions_count++] = (struct ibv_wc){
            .wr_id = request->wr_id,
            .status = request->wr.rdma.rkey == 0 ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR,
            .opcode = IBV_WC_RDMA_WRITE,
            .qp_num = queue_pair->qp_num,
        };
    }
    pthread_mutex_unlock(&mutex);
    return 0;
}

static int poll_cq(struct ibv_cq *queue, int most, struct ibv_wc *into)
{
    (void)queue;
    pthread_mutex_lock(&mutex);
    const int count = completions_count < most ? completions_count : most;
    memcpy(into, completions, (size_t)count * sizeof *into);
    memmove(completions, completions + count, (size_t)(completions_count - count) * sizeof *into);
    completions_count -= count;
    pthread_mutex_unlock(&mutex);
    return count;
}

__attribute__((constructor)) static void start(void)
{
    context.ops.post_send = post_send;
    context.ops.poll_cq = poll_cq;
    const char *name = getenv("STANDIN_DEVICE");
    const char *qpn = getenv("STANDIN_FIRST_QPN");
    snprintf(device.name, sizeof device.name, "%s", name == NULL ? "standin0" : name);
    next_qpn = qpn == NULL ? 17 : (uint32_t)atoi(qpn);
}

#define ENTRY __attribute__((noinline, visibility("default")))

static int number(struct ibv_qp *queue_pair)
{
    pthread_mutex_lock(&mutex);
    queue_pair->qp_num = next_qpn++;
    pthread_mutex_unlock(&mutex);
    queue_pair->context = &context;
    return 0;
}

ENTRY int ibv_cmd_create_qp(struct ibv_pd *pd, struct ibv_qp *queue_pair, struct ibv_qp_init_attr *attributes)
{
    __asm__ volatile("" ::"r"(pd), "r"(attributes));
    return number(queue_pair);
}

ENTRY int ibv_cmd_create_qp_ex(struct ibv_context *of, struct ibv_qp *queue_pair,
                               struct ibv_qp_init_attr_ex *attributes)
{
    __asm__ volatile("" ::"r"(of), "r"(attributes));
    return attributes->qp_type == IBV_QPT_RC ? number(queue_pair) : ENOTSUP;
}

/* As a later libibverbs may have it: the first two arguments change places when the type is UD. */
ENTRY int ibv_cmd_create_qp_ex2(void *first, void *second, struct ibv_qp_init_attr_ex *attributes)
{
    __asm__ volatile("" ::"r"(first), "r"(attributes));
    return number(attributes->qp_type == IBV_QPT_UD ? first : second);
}

ENTRY int ibv_cmd_modify_qp(struct ibv_qp *queue_pair, struct ibv_qp_attr *attributes, int mask)
{
    if ((mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_UNKNOWN)
        return EINVAL;
    queue_pair->state = attributes->qp_state;
    return 0;
}

ENTRY int ibv_cmd_modify_qp_ex(struct ibv_qp *queue_pair, struct ibv_qp_attr *attributes, int mask)
{
    return ibv_cmd_modify_qp(queue_pair, attributes, mask);
}

/* As ibv_create_qp_ex and mlx5dv_create_qp reach the private entries: past every public one. */
ENTRY struct ibv_qp *standin_create_past(struct ibv_qp_init_attr_ex *attributes, int second)
{
    struct ibv_qp *queue_pair = calloc(1, sizeof *queue_pair);
    attributes->send_cq = calloc(1, sizeof *attributes->send_cq);
    attributes->send_cq->context = &context;
    const bool swapped = attributes->qp_type == IBV_QPT_UD;
    const int result = !second   ? ibv_cmd_create_qp_ex(&context, queue_pair, attributes)
                       : swapped ? ibv_cmd_create_qp_ex2(queue_pair, &context, attributes)
                                 : ibv_cmd_create_qp_ex2(&context, queue_pair, attributes);
    return result == 0 ? queue_pair : NULL;
}

__attribute__((noinline)) struct ibv_qp *create_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    struct ibv_qp *queue_pair = calloc(1, sizeof *queue_pair);
    ibv_cmd_create_qp(pd, queue_pair, attributes);
    queue_pair->pd = pd;
    queue_pair->send_cq = attributes->send_cq;
    queue_pair->recv_cq = attributes->recv_cq;
    queue_pair->qp_type = attributes->qp_type;
    return queue_pair;
}

__attribute__((noinline)) int modify_new(struct ibv_qp *queue_pair, struct ibv_qp_attr *attributes, int mask)
{
    const int result = ibv_cmd_modify_qp(queue_pair, attributes, mask);
    return attributes->qp_state == IBV_QPS_SQE ? EBUSY : result; /* done, and failed all the same */
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
