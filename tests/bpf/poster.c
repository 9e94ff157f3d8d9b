/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that posts to queue pairs and polls, and says what it did, one JSON object a line.
 *
 *   poster LIBVERBS POLLS
 *
 * For each line on stdin it posts one list of three requests to the first queue pair and one that fails to the second,
 * from a thread of its own, then polls POLLS times without finding anything.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PIECES 6

static struct ibv_qp *queue_pairs[2];
static struct ibv_cq queue;
static uint64_t round_number;
static int polls;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void say_post(int which, uint64_t request, uint32_t bytes, int requests, int opcode, int status,
                     uint64_t before_ns)
{
    printf("{\"posted\":%u,\"round\":%" PRIu64 ",\"request\":\"0x%" PRIx64 "\",\"bytes\":%u,\"requests\":%d,"
           "\"opcode\":%d,\"status\":%d,\"before_ns\":%" PRIu64 ",\"after_ns\":%" PRIu64 "}\n",
           queue_pairs[which]->qp_num, round_number, request, bytes, requests, opcode, status, before_ns, now_ns());
}

/* Two writes of one and two pieces, and a write with immediate data without any. */
static void post_list(void)
{
    struct ibv_sge pieces[3] = {{.length = 1000}, {.length = 20}, {.length = 3}};
    struct ibv_send_wr requests[3] = {
        {.wr_id = 1, .next = &requests[1], .sg_list = &pieces[0], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE},
        {.wr_id = 2, .next = &requests[2], .sg_list = &pieces[1], .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE},
        {.wr_id = 0xabcdef0000000000 + round_number,
         .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
         .send_flags = IBV_SEND_SIGNALED},
    };
    struct ibv_send_wr *refused;
    const uint64_t before_ns = now_ns();
    ibv_post_send(queue_pairs[0], requests, &refused);
    say_post(0, requests[2].wr_id, 1023, 3, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_SUCCESS, before_ns);
}

/* One request of more pieces than are read of one; it fails. */
static void post_one(void)
{
    struct ibv_sge pieces[PIECES];
    struct ibv_send_wr request = {.wr_id = round_number,
                                  .sg_list = pieces,
                                  .num_sge = PIECES,
                                  .opcode = IBV_WR_SEND,
                                  .send_flags = IBV_SEND_SIGNALED,
                                  .wr.rdma.rkey = 1};
    struct ibv_send_wr *refused;
    for (int i = 0; i < PIECES; i++)
        pieces[i] = (struct ibv_sge){.length = 1u << i};
    const uint64_t before_ns = now_ns();
    ibv_post_send(queue_pairs[1], &request, &refused);
    say_post(1, request.wr_id, (1u << PIECES) - 1, 1, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR, before_ns);
}

static void *post_and_poll(void *argument)
{
    struct ibv_wc found[4];
    (void)argument;
    post_list();
    post_one();
    const int count = ibv_poll_cq(&queue, 4, found);
    for (int i = 0; i < polls; i++)
        ibv_poll_cq(&queue, 4, found);
    printf("{\"polled\":%d,\"round\":%" PRIu64 "}\n", count, round_number);
    return NULL;
}

static void create_queue_pairs(const char *path)
{
    void *verbs = dlopen(path, RTLD_NOW);
    struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *) =
        (struct ibv_qp * (*)(struct ibv_pd *, struct ibv_qp_init_attr *)) dlsym(verbs, "ibv_create_qp");
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr attributes = {.qp_type = IBV_QPT_RC, .send_cq = &queue};
        queue_pairs[i] = create(NULL, &attributes);
    }
    queue.context = queue_pairs[0]->context;
    printf("{\"made\":[%u,%u]}\n", queue_pairs[0]->qp_num, queue_pairs[1]->qp_num);
}

int main(int argc, char **argv)
{
    char line[16];
    if (argc != 3)
        return 2;
    setlinebuf(stdout);
    polls = atoi(argv[2]);
    printf("{\"loaded\":%d}\n", getpid());
    if (fgets(line, sizeof line, stdin) == NULL)
        return 1;
    create_queue_pairs(argv[1]);
    while (fgets(line, sizeof line, stdin) != NULL) {
        pthread_t thread;
        round_number++;
        pthread_create(&thread, NULL, post_and_poll, NULL);
        pthread_join(thread, NULL);
    }
    return 0;
}
