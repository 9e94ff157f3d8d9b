/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios of communicators that are made from an id, in every way. */
#include "exercise/scenario.h"
#include "exercise/workout.h"

#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    COUNT = 5000,
    LARGE_COUNT = 1000000,
    P2P_COUNT = 300000,
    GROUPED = 3,
    DEVICES_MAX = 16,
    ROUNDS = 4,
    SHARED_COUNT = 100000,
    SEATS = 2
};

static void world_run(struct actor *actor, const char *name, enum member_mode mode)
{
    struct member world;

    member_init_world(actor, &world, name, mode);
    member_ready(actor, &world);
    workout_run(actor, &world, WORKOUT_AllReduce, COUNT);
    workout_run(actor, &world, WORKOUT_Exchange, COUNT);
    actor_meet(actor, name);
    member_destroy(actor, &world);
}

void scenario_plain(struct actor *actor)
{
    struct member world;

    member_init_world(actor, &world, "world", MODE_INLINE);
    member_ready(actor, &world);
    workout_run_all(actor, &world, COUNT);
    workout_run(actor, &world, WORKOUT_AllReduce, LARGE_COUNT);
    workout_run(actor, &world, WORKOUT_Exchange, P2P_COUNT);
    actor_meet(actor, "done");
    member_destroy(actor, &world);
}

void scenario_modes(struct actor *actor)
{
    static const char *const names[MEMBER_MODES] = {"inline", "config", "scalable", "non-blocking"};

    for (int mode = 0; mode < MEMBER_MODES; mode++)
        world_run(actor, names[mode], (enum member_mode)mode);
}

/* Each rank names the communicators in an order of its own, which is legal within a group. */
static void grouped_init(struct actor *actor, struct member *members, bool is_async)
{
    char name[32];

    api.GroupStart();
    for (int i = 0; i < GROUPED; i++) {
        int number = (i + actor->rank) % GROUPED;
        enum member_mode mode = is_async ? MODE_NON_BLOCKING : number % 2 ? MODE_CONFIG : MODE_INLINE;
        snprintf(name, sizeof name, "grouped%d", number);
        member_init_world(actor, &members[number], name, mode);
    }
    api_check(api.GroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < GROUPED; i++)
        member_ready(actor, &members[i]);
}

static void grouped_run(struct actor *actor, bool is_async)
{
    struct member members[GROUPED];
    struct workout *workouts[GROUPED];

    grouped_init(actor, members, is_async);
    api.GroupStart();
    for (int i = 0; i < GROUPED; i++)
        workouts[i] = workout_begin(actor, &members[i], WORKOUT_AllReduce, COUNT);
    api_check(api.GroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < GROUPED; i++)
        member_await(&members[i]);
    cudaStreamSynchronize(actor->stream);
    for (int i = 0; i < GROUPED; i++)
        workout_end(workouts[i]);
    actor_meet(actor, "done");
    for (int i = 0; i < GROUPED; i++)
        member_destroy(actor, &members[i]);
}

void scenario_group(struct actor *actor)
{
    grouped_run(actor, false);
}

void scenario_group_async(struct actor *actor)
{
    grouped_run(actor, true);
}

/* One call on each, in a group. */
static void seats_run(struct actor *actor, struct member *members, int count, enum workout_kind kind)
{
    struct workout *workouts[DEVICES_MAX];

    api.GroupStart();
    for (int i = 0; i < count; i++)
        workouts[i] = workout_begin(actor, &members[i], kind, COUNT);
    api_check(api.GroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < count; i++)
        cudaStreamSynchronize(members[i].stream);
    for (int i = 0; i < count; i++)
        workout_end(workouts[i]);
}

static void seats_destroy(struct actor *actor, struct member *members, int count)
{
    for (int i = 0; i < count; i++) {
        cudaStreamDestroy(members[i].stream);
        member_destroy(actor, &members[i]);
    }
}

/* All members are this process's; their names and world ranks are those of its devices. */
void scenario_all(struct actor *actor)
{
    struct member members[DEVICES_MAX];
    int count = 1;

    cudaGetDeviceCount(&count);
    count = count < DEVICES_MAX ? count : DEVICES_MAX;
    member_init_all(actor, members, count);
    seats_run(actor, members, count, WORKOUT_AllReduce);
    seats_destroy(actor, members, count);
}

void scenario_tree(struct actor *actor)
{
    const char *before = getenv("NCCL_ALGO");
    char kept[32];
    struct member world;

    snprintf(kept, sizeof kept, "%s", before ? before : "Ring");
    setenv("NCCL_ALGO", "Tree", 1);
    member_init_world(actor, &world, "world", MODE_INLINE);
    member_ready(actor, &world);
    workout_run(actor, &world, WORKOUT_AllReduce, COUNT);
    workout_run(actor, &world, WORKOUT_AllReduce, LARGE_COUNT);
    workout_run(actor, &world, WORKOUT_AllGather, COUNT);
    workout_run(actor, &world, WORKOUT_AllReduce, COUNT);
    actor_meet(actor, "done");
    member_destroy(actor, &world);
    setenv("NCCL_ALGO", kept, 1);
}

void scenario_several(struct actor *actor)
{
    struct member members[SEATS];

    setenv("STANDIN_DEVICES", "2", 1);
    member_init_seats(actor, members, "world", SEATS);
    seats_run(actor, members, SEATS, WORKOUT_AllReduce);
    seats_run(actor, members, SEATS, WORKOUT_AlltoAll);
    actor_meet(actor, "done");
    seats_destroy(actor, members, SEATS);
    setenv("STANDIN_DEVICES", "1", 1);
}

void scenario_many_queues(struct actor *actor)
{
    setenv("NCCL_IB_QPS_PER_CONNECTION", "64", 1);
    world_run(actor, "wide", MODE_INLINE);
    unsetenv("NCCL_IB_QPS_PER_CONNECTION");
}

void scenario_remake(struct actor *actor)
{
    char name[32];

    for (int round = 0; round < ROUNDS; round++) {
        snprintf(name, sizeof name, "round%d", round);
        world_run(actor, name, round % 2 ? MODE_CONFIG : MODE_INLINE);
    }
}

/* Neighbours share a host, so that a proxy of one may send for the other. */
static void pxn_run(struct actor *actor, size_t count)
{
    char host[32];
    struct member world;

    snprintf(host, sizeof host, "pair%d", actor->rank / 2);
    setenv("NCCL_HOSTID", host, 1);
    setenv("NCCL_PXN_DISABLE", "0", 1);
    member_init_world(actor, &world, "world", MODE_INLINE);
    member_ready(actor, &world);
    workout_run(actor, &world, WORKOUT_AlltoAll, count);
    workout_run(actor, &world, WORKOUT_AllReduce, COUNT);
    actor_meet(actor, "done");
    member_destroy(actor, &world);
    setenv("NCCL_PXN_DISABLE", "1", 1);
}

void scenario_pxn(struct actor *actor)
{
    pxn_run(actor, COUNT);
}

/* Messages of many parts on all channels, so that those of several ranks meet on one connection. */
void scenario_pxn_shared(struct actor *actor)
{
    setenv("NCCL_NET_SHARED_COMMS", "1", 1);
    setenv("NCCL_NCHANNELS_PER_NET_PEER", "2", 1);
    pxn_run(actor, SHARED_COUNT);
    unsetenv("NCCL_NET_SHARED_COMMS");
    unsetenv("NCCL_NCHANNELS_PER_NET_PEER");
}

void scenario_sockets(struct actor *actor)
{
    setenv("NCCL_IB_DISABLE", "1", 1);
    world_run(actor, "world", MODE_INLINE);
}
