/* SPDX-License-Identifier: BSD-2-Clause */
/* A rank of the exercise: who it is, where it meets the others, how many results were wrong. */
#pragma once

#include "job.h"

#include <stddef.h>
#include <stdint.h>

struct actor {
    struct job job; /* ranks, meet */
    int rank;
    void *stream;
    uint64_t wrong;
    const char *scenario;
};

/* All ranks come to the place of this name, once each. */
void actor_meet(struct actor *actor, const char *place);

/* Bytes that `from` has and all others want; ranks that have no part in it leave it out. */
void actor_share(struct actor *actor, const char *name, int from, void *bytes, size_t length_bytes);
