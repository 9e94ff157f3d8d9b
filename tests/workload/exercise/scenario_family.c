/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios of communicators that come from others. */
#include "exercise/scenario.h"
#include "exercise/workout.h"

enum { COUNT = 2000, DEPTH = 3 };

/* Halves, with the ranks of each in reverse order. */
static bool half_split(struct actor *actor, struct member *parent, struct member *child)
{
    int colors[RANKS_MAX], keys[RANKS_MAX];

    for (int rank = 0; rank < parent->ranks; rank++) {
        colors[rank] = rank % 2;
        keys[rank] = -rank;
    }
    return member_split(actor, parent, child, colors, keys);
}

static void tree_run(struct actor *actor, const char *name)
{
    struct member family[DEPTH + 1];

    member_init_world(actor, &family[0], name, MODE_INLINE);
    member_ready(actor, &family[0]);
    workout_run(actor, &family[0], WORKOUT_AllReduce, COUNT);
    for (int depth = 1; depth <= DEPTH; depth++) {
        half_split(actor, &family[depth - 1], &family[depth]);
        member_ready(actor, &family[depth]);
        workout_run(actor, &family[depth], WORKOUT_AllReduce, COUNT);
        workout_run(actor, &family[depth], WORKOUT_Exchange, COUNT);
    }
    actor_meet(actor, "done");
    for (int depth = DEPTH; depth >= 0; depth--)
        member_destroy(actor, &family[depth]);
}

void scenario_split(struct actor *actor)
{
    tree_run(actor, "tree");
}
