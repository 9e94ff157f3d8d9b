/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rank's membership in a communicator, by a name that is the same on all its ranks, and what the truth file says of
 * it. Makers begin and the membership is noted when the communicator is there; in between a group may be open.
 */
#pragma once

#include "exercise/actor.h"
#include "exercise/api.h"

#include <stdbool.h>

enum { MEMBER_NAME_BYTES = 64 };

enum member_mode { MODE_INLINE, MODE_CONFIG, MODE_SCALABLE, MODE_NON_BLOCKING, MEMBER_MODES };

struct member {
    ncclComm_t comm;
    char name[MEMBER_NAME_BYTES];
    const char *creator, *mode;
    char parent[MEMBER_NAME_BYTES]; /* empty for roots */
    int rank, ranks, color, key, child_number, children_count, is_shared, device;
    int world[RANKS_MAX]; /* world ranks by rank */
    ncclUniqueId id;
    ncclConfig_t config;
    void *stream; /* its calls go there */
    uint64_t begun_ns, collectives, sends[RANKS_MAX], receives[RANKS_MAX];
};

/* A communicator of these world ranks, of which this rank must be one; the first of them makes the id. */
void member_init(struct actor *actor, struct member *member, const char *name, const int *world, int ranks,
                 enum member_mode mode);
void member_init_world(struct actor *actor, struct member *member, const char *name, enum member_mode mode);

/* The next communicators get this wish: children share their service thread. */
extern bool member_sharing;

/* ncclCommInitAll: members of all devices of this process. Each gets a stream of its own. */
void member_init_all(struct actor *actor, struct member *members, int count);

/* ncclCommInitRank in a group, for each of this process's first devices: ranks side by side. Streams as above. */
void member_init_seats(struct actor *actor, struct member *members, const char *name, int seats);

/* False when this rank gets no part in it. `colors` and `keys` by rank of the parent: all ranks know them. */
bool member_split(struct actor *actor, struct member *parent, struct member *child, const int *colors, const int *keys);

/* All but one rank of the parent. */
void member_shrink(struct actor *actor, struct member *parent, struct member *child, int excluded, int flags);

/* The parent's ranks and then new ones, who have no parent (comm NULL there, but the name and the ranks known). */
void member_grow(struct actor *actor, struct member *parent, struct member *grown, const int *world, int ranks);

/* Waits until it is no longer in progress, then writes it into the truth file. */
void member_ready(struct actor *actor, struct member *member);

/* Until nothing of it is in progress. */
void member_await(const struct member *member);

/* Notes its end and destroys or aborts it. */
void member_destroy(struct actor *actor, struct member *member);
void member_abort(struct actor *actor, struct member *member);
