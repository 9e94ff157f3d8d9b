/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios of communicators that come from others. */
#include "exercise/scenario.h"
#include "exercise/workout.h"

enum { COUNT = 2000, DEPTH = 3 };

/* Halves, with the ranks of each in reverse order. */
static void half_split(struct actor *actor, struct member *parent, struct member *child)
{
    int colors[RANKS_MAX], keys[RANKS_MAX];

    for (int rank = 0; rank < parent->ranks; rank++) {
        colors[rank] = rank % 2;
        keys[rank] = -rank;
    }
    member_split(actor, parent, child, colors, keys);
}

static void tree_run(struct actor *actor, const char *name, enum member_mode mode, bool is_shared)
{
    struct member family[DEPTH + 1];

    member_sharing = is_shared;
    member_init_world(actor, &family[0], name, mode);
    member_sharing = false;
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
    tree_run(actor, "tree", MODE_INLINE, false);
}

void scenario_split_async(struct actor *actor)
{
    tree_run(actor, "tree", MODE_NON_BLOCKING, false);
}

void scenario_split_shared(struct actor *actor)
{
    tree_run(actor, "tree", MODE_CONFIG, true);
}

void scenario_split_part(struct actor *actor)
{
    struct member world, children[2];
    int colors[RANKS_MAX], keys[RANKS_MAX] = {0};
    bool has_part = false;

    member_init_world(actor, &world, "world", MODE_INLINE);
    member_ready(actor, &world);
    for (int i = 0; i < 2; i++) {
        for (int rank = 0; rank < world.ranks; rank++)
            colors[rank] = rank == i ? NCCL_SPLIT_NOCOLOR : 7;
        has_part = member_split(actor, &world, &children[i], colors, keys);
        if (!has_part)
            continue;
        member_ready(actor, &children[i]);
        workout_run(actor, &children[i], WORKOUT_AllReduce, COUNT);
    }
    actor_meet(actor, "done");
    for (int i = 0; i < 2; i++)
        if (children[i].comm)
            member_destroy(actor, &children[i]);
    member_destroy(actor, &world);
}

void scenario_grow(struct actor *actor)
{
    struct member few = {.name = "few"}, grown;
    int world[RANKS_MAX], last = (int)actor->job.ranks - 1;

    for (int rank = 0; rank <= last; rank++)
        world[rank] = rank;
    if (actor->rank < last) {
        member_init(actor, &few, "few", world, last, MODE_INLINE);
        member_ready(actor, &few);
        workout_run(actor, &few, WORKOUT_AllReduce, COUNT);
    }
    member_grow(actor, &few, &grown, world, last + 1);
    member_ready(actor, &grown);
    workout_run(actor, &grown, WORKOUT_AllReduce, COUNT);
    actor_meet(actor, "done");
    if (few.comm)
        member_destroy(actor, &few);
    member_destroy(actor, &grown);
}
