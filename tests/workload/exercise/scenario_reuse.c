/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair numbers that come back: bare queue pairs are made and destroyed until the device has gone round. */
#include "exercise/scenario.h"
#include "exercise/workout.h"

#include "nccl/net/verbs.h"
#include "truth.h"

#include <stdio.h>

enum { COUNT = 2000, TRIES_MAX = 1 << 21, NEAR = 64 };

static uint32_t number_take(const struct verbs_device *device, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    uint32_t number = 0;

    init.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    struct ibv_qp *qp = verbs.create_qp(device->pd, &init);
    if (qp) {
        number = qp->qp_num;
        verbs.destroy_qp(qp);
    }
    return number;
}

/* Until the numbers have wrapped and stand shortly before `wanted`. How many were used up. */
static int numbers_use_up(const struct verbs_device *device, struct ibv_cq *cq, uint32_t first)
{
    uint32_t wanted = first > NEAR ? first - NEAR : 1, before = first;
    bool has_wrapped = false;
    int tries = 0;

    for (; tries < TRIES_MAX; tries++) {
        uint32_t number = number_take(device, cq);
        if (!number)
            break;
        has_wrapped = has_wrapped || number < before;
        before = number;
        if (has_wrapped && number >= wanted)
            break;
    }
    return tries;
}

static void round_note(const struct actor *actor, int tries)
{
    struct truth_line line;

    truth_begin(&line, "numbers_round");
    truth_signed(&line, "rank", actor->rank);
    truth_signed(&line, "used", tries);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
}

static void world_run(struct actor *actor, const char *name)
{
    struct member world;

    member_init_world(actor, &world, name, MODE_INLINE);
    member_ready(actor, &world);
    workout_run(actor, &world, WORKOUT_AllReduce, COUNT);
    actor_meet(actor, name);
    member_destroy(actor, &world);
}

void scenario_reuse(struct actor *actor)
{
    struct ibv_cq *cq;

    if (verbs_open() < 1) {
        fprintf(stderr, "exercise: rank %d: no RDMA device, so no queue pair numbers to use up\n", actor->rank);
        return;
    }
    cq = verbs.create_cq(verbs_devices[0].context, 1, NULL, NULL, 0);
    uint32_t first = number_take(&verbs_devices[0], cq);
    world_run(actor, "before");
    round_note(actor, numbers_use_up(&verbs_devices[0], cq, first));
    world_run(actor, "after");
    verbs.destroy_cq(cq);
}
