/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios in which something goes wrong. */
#include "exercise/scenario.h"
#include "exercise/workout.h"

#include "meet.h"
#include "truth.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT = 2000, NAP_NS = 5000000, DYING_NS = 500000000 };

static void failure_note(const struct actor *actor, const char *what, const struct member *member, int result)
{
    struct truth_line line;

    truth_begin(&line, "failure");
    truth_signed(&line, "rank", actor->rank);
    truth_text(&line, "what", what);
    truth_text(&line, "name", member->name);
    truth_pointer(&line, "comm", member->comm);
    truth_signed(&line, "result", result);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
}

/* Whoever waits for this rank is told that it is done, and that its end is meant. */
static void rank_kill(struct actor *actor, const struct member *member)
{
    failure_note(actor, "killed", member, 0);
    meet_mark(&actor->job, "killed", actor->rank);
    meet_mark(&actor->job, "done", actor->rank);
    raise(SIGKILL);
}

/* The others come back when its queue pairs are gone too. */
static void world_until_kill(struct actor *actor, struct member *world)
{
    int victim = (int)actor->job.ranks - 1;
    char mark[32];

    member_init_world(actor, world, "world", MODE_CONFIG);
    member_ready(actor, world);
    workout_run(actor, world, WORKOUT_AllReduce, COUNT);
    actor_meet(actor, "before");
    if (actor->rank == victim)
        rank_kill(actor, world);
    snprintf(mark, sizeof mark, "killed.%d", victim);
    meet_await(&actor->job, mark);
    nanosleep(&(struct timespec){.tv_nsec = DYING_NS}, NULL);
}

void scenario_shrink(struct actor *actor)
{
    struct member world, rest;

    world_until_kill(actor, &world);
    struct workout *lost = workout_begin(actor, &world, WORKOUT_AllReduce, COUNT);
    failure_note(actor, "shrinks", &world, 0);
    member_shrink(actor, &world, &rest, world.ranks - 1, NCCL_SHRINK_ABORT);
    workout_drop(lost);
    member_ready(actor, &rest);
    workout_run(actor, &rest, WORKOUT_AllReduce, COUNT);
    workout_run(actor, &rest, WORKOUT_Exchange, COUNT);
    meet_some(&actor->job, "shrink.done", actor->rank, rest.ranks);
    member_destroy(actor, &rest);
    member_abort(actor, &world);
}

static int error_await(const struct member *member)
{
    ncclResult_t result = ncclSuccess;

    while (result == ncclSuccess || result == ncclInProgress) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        api.CommGetAsyncError(member->comm, &result);
    }
    return (int)result;
}

/* Rank 0 receives from the one that is gone. A short time-out, so that the first work completion with an error comes
 * soon. */
void scenario_failure(struct actor *actor)
{
    struct member world;

    setenv("NCCL_IB_TIMEOUT", "12", 1);
    setenv("NCCL_IB_RETRY_CNT", "2", 1);
    world_until_kill(actor, &world);
    struct workout *lost = workout_begin(actor, &world, WORKOUT_AllReduce, COUNT);
    if (actor->rank == 0)
        failure_note(actor, "error", &world, error_await(&world));
    meet_some(&actor->job, "failure.seen", actor->rank, world.ranks - 1);
    member_abort(actor, &world);
    workout_drop(lost);
}

void scenario_revoke(struct actor *actor)
{
    struct member world;

    member_init_world(actor, &world, "world", MODE_CONFIG);
    member_ready(actor, &world);
    workout_run(actor, &world, WORKOUT_AllReduce, COUNT);
    actor_meet(actor, "before");
    failure_note(actor, "revoked", &world, (int)api.CommRevoke(world.comm, 0));
    actor_meet(actor, "done");
    member_abort(actor, &world);
}
