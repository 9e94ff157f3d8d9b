/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data calls on a communicator with what they must give: each is noted in the truth file; results are checked after the
 * stream is idle. Values are small whole numbers, so sums are exact in any order.
 */
#pragma once

#include "exercise/member.h"

enum workout_kind {
#define WORKOUT(name) WORKOUT_##name,
#include "exercise/workout.def"
#undef WORKOUT
    WORKOUTS
};

struct workout;

/* Enqueues one call (an exchange and the like: several in a group) of `count` floats. */
struct workout *workout_begin(struct actor *actor, struct member *member, enum workout_kind kind, size_t count);

/* After the stream is idle: checks, frees. */
void workout_end(struct workout *workout);

/* Of a call that will never be done: only frees. Its communicator has been aborted. */
void workout_drop(struct workout *workout);

/* One call, the wait for the stream, the check. */
void workout_run(struct actor *actor, struct member *member, enum workout_kind kind, size_t count);
void workout_run_all(struct actor *actor, struct member *member, size_t count);
