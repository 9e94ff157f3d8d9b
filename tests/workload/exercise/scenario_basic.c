/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios of whole communicators. */
#include "exercise/scenario.h"
#include "exercise/workout.h"

#include "cuda.h"

#include <stdio.h>

enum { COUNT = 5000, GROUPED = 3 };

void scenario_plain(struct actor *actor)
{
    struct member world;

    member_init_world(actor, &world, "world", MODE_INLINE);
    member_ready(actor, &world);
    workout_run_all(actor, &world, COUNT);
    workout_run(actor, &world, WORKOUT_AllReduce, 3000000);
    workout_run(actor, &world, WORKOUT_Exchange, 300000);
    actor_meet(actor, "done");
    member_destroy(actor, &world);
}

void scenario_group(struct actor *actor)
{
    struct member members[GROUPED];
    struct workout *workouts[GROUPED];
    char name[16];

    api.GroupStart();
    for (int i = 0; i < GROUPED; i++) {
        snprintf(name, sizeof name, "grouped%d", i);
        member_init_world(actor, &members[i], name, i % 2 ? MODE_CONFIG : MODE_INLINE);
    }
    api_check(api.GroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < GROUPED; i++)
        member_ready(actor, &members[i]);
    api.GroupStart();
    for (int i = 0; i < GROUPED; i++)
        workouts[i] = workout_begin(actor, &members[i], WORKOUT_AllReduce, COUNT);
    api_check(api.GroupEnd(), "ncclGroupEnd");
    cudaStreamSynchronize(actor->stream);
    for (int i = 0; i < GROUPED; i++)
        workout_end(workouts[i]);
    actor_meet(actor, "done");
    for (int i = 0; i < GROUPED; i++)
        member_destroy(actor, &members[i]);
}
