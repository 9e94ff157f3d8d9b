/* SPDX-License-Identifier: BSD-2-Clause */
/* The truth's lines of communicators. Names of children: the parent's, the number of the child and its color. */
#include "exercise/member.h"

#include "cuda.h"
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const mode_names[MEMBER_MODES] = {"inline", "config", "scalable", "non-blocking"};

bool member_sharing;

static void member_set(struct member *member, const char *creator, const char *name, const int *world, int ranks,
                       const struct actor *actor)
{
    *member = (struct member){.creator = creator, .mode = "inline", .ranks = ranks, .rank = -1};
    member->config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
    snprintf(member->name, sizeof member->name, "%s", name);
    memcpy(member->world, world, (size_t)ranks * sizeof *world);
    for (int i = 0; i < ranks; i++)
        if (world[i] == actor->rank)
            member->rank = i;
    member->config.splitShare = member_sharing;
    member->stream = actor->stream;
    member->begun_ns = truth_now_ns();
}

void member_init(struct actor *actor, struct member *member, const char *name, const int *world, int ranks,
                 enum member_mode mode)
{
    static const char *const creators[MEMBER_MODES] = {"CommInitRank", "CommInitRankConfig", "CommInitRankScalable",
                                                       "CommInitRankConfig"};
    ncclUniqueId id = {{0}};

    if (actor->rank == world[0])
        api_check(api.GetUniqueId(&id), "ncclGetUniqueId");
    actor_share(actor, name, world[0], &id, sizeof id);
    member_set(member, creators[mode], name, world, ranks, actor);
    member->id = id;
    member->mode = mode_names[mode];
    member->config.blocking = mode != MODE_NON_BLOCKING;
    if (mode == MODE_INLINE)
        api_check(api.CommInitRank(&member->comm, ranks, id, member->rank), "ncclCommInitRank");
    else if (mode == MODE_SCALABLE)
        api_check(api.CommInitRankScalable(&member->comm, ranks, member->rank, 1, &id, &member->config),
                  "ncclCommInitRankScalable");
    else
        api_check(api.CommInitRankConfig(&member->comm, ranks, id, member->rank, &member->config),
                  "ncclCommInitRankConfig");
}

void member_init_world(struct actor *actor, struct member *member, const char *name, enum member_mode mode)
{
    int world[RANKS_MAX];

    for (int i = 0; i < RANKS_MAX; i++)
        world[i] = i;
    member_init(actor, member, name, world, (int)actor->job.ranks, mode);
}

/* Each device's member gets a stream there. */
static void seats_ready(struct actor *actor, struct member *members, int count)
{
    for (int i = 0; i < count; i++) {
        cudaSetDevice(i);
        cudaStreamCreate(&members[i].stream);
        member_ready(actor, &members[i]);
    }
    cudaSetDevice(0);
}

void member_init_all(struct actor *actor, struct member *members, int count)
{
    ncclComm_t comms[RANKS_MAX];
    int world[RANKS_MAX];
    char name[MEMBER_NAME_BYTES];

    for (int i = 0; i < RANKS_MAX; i++)
        world[i] = actor->rank;
    snprintf(name, sizeof name, "all%d", actor->rank);
    for (int i = 0; i < count; i++) {
        member_set(&members[i], "CommInitAll", name, world, count, actor);
        members[i].rank = i;
    }
    api_check(api.CommInitAll(comms, count, NULL), "ncclCommInitAll");
    for (int i = 0; i < count; i++)
        members[i].comm = comms[i];
    seats_ready(actor, members, count);
}

void member_init_seats(struct actor *actor, struct member *members, const char *name, int seats)
{
    int world[RANKS_MAX], ranks = (int)actor->job.ranks * seats;
    ncclUniqueId id = {{0}};

    for (int i = 0; i < RANKS_MAX; i++)
        world[i] = i / seats;
    if (actor->rank == 0)
        api_check(api.GetUniqueId(&id), "ncclGetUniqueId");
    actor_share(actor, name, 0, &id, sizeof id);
    api.GroupStart();
    for (int i = 0; i < seats; i++) {
        cudaSetDevice(i);
        member_set(&members[i], "CommInitRank", name, world, ranks, actor);
        members[i].rank = actor->rank * seats + i;
        members[i].id = id;
        api_check(api.CommInitRank(&members[i].comm, ranks, id, members[i].rank), "ncclCommInitRank");
    }
    api_check(api.GroupEnd(), "ncclGroupEnd");
    seats_ready(actor, members, seats);
}

/* The ranks of the parent that have a color, by key and then by rank. */
static int members_of_color(const struct member *parent, const int *colors, const int *keys, int color, int *world)
{
    int count = 0, order[RANKS_MAX];

    for (int rank = 0; rank < parent->ranks; rank++) {
        if (colors[rank] != color)
            continue;
        int at = count++;
        for (; at > 0 && keys[order[at - 1]] > keys[rank]; at--)
            order[at] = order[at - 1];
        order[at] = rank;
    }
    for (int i = 0; i < count; i++)
        world[i] = parent->world[order[i]];
    return count;
}

static void child_set(struct actor *actor, struct member *parent, struct member *child, const char *creator,
                      const int *world, int ranks, int color)
{
    char name[2 * MEMBER_NAME_BYTES];

    parent->children_count++;
    snprintf(name, sizeof name, "%s/%d.%d", parent->name, parent->children_count, color);
    member_set(child, creator, name, world, ranks, actor);
    snprintf(child->parent, sizeof child->parent, "%s", parent->name);
    child->child_number = parent->children_count;
    child->color = color;
    child->mode = parent->mode;
    child->is_shared = parent->config.splitShare == 1;
    child->config = parent->config;
}

bool member_split(struct actor *actor, struct member *parent, struct member *child, const int *colors, const int *keys)
{
    int color = colors[parent->rank], key = keys[parent->rank], world[RANKS_MAX];
    int ranks = members_of_color(parent, colors, keys, color, world);

    child_set(actor, parent, child, "CommSplit", world, ranks, color);
    child->key = key;
    api_check(api.CommSplit(parent->comm, color, key, &child->comm, NULL), "ncclCommSplit");
    return color != NCCL_SPLIT_NOCOLOR;
}

void member_shrink(struct actor *actor, struct member *parent, struct member *child, int excluded, int flags)
{
    int world[RANKS_MAX], ranks = 0;

    for (int rank = 0; rank < parent->ranks; rank++)
        if (rank != excluded)
            world[ranks++] = parent->world[rank];
    child_set(actor, parent, child, "CommShrink", world, ranks, 0);
    child->is_shared = 0;
    api_check(api.CommShrink(parent->comm, &excluded, 1, &child->comm, NULL, flags), "ncclCommShrink");
}

void member_grow(struct actor *actor, struct member *parent, struct member *grown, const int *world, int ranks)
{
    char name[2 * MEMBER_NAME_BYTES];
    bool is_asker = parent->comm && parent->rank == 0, is_new = !parent->comm;
    ncclUniqueId id = {{0}};

    snprintf(name, sizeof name, "%s+%d", parent->name, ranks);
    if (is_asker)
        api_check(api.CommGetUniqueId(parent->comm, &id), "ncclCommGetUniqueId");
    if (is_asker || is_new)
        actor_share(actor, name, world[0], &id, sizeof id);
    member_set(grown, "CommGrow", name, world, ranks, actor);
    snprintf(grown->parent, sizeof grown->parent, "%s", parent->name);
    api_check(api.CommGrow(parent->comm, ranks, is_asker || is_new ? &id : NULL, is_new ? grown->rank : -1,
                           &grown->comm, NULL),
              "ncclCommGrow");
}

static void members_write(struct truth_line *line, const struct member *member)
{
    truth_raw(line, ",\"members\":[");
    for (int i = 0; i < member->ranks; i++)
        truth_raw(line, "%s%d", i ? "," : "", member->world[i]);
    truth_raw(line, "]");
}

static void member_note(const struct actor *actor, const struct member *member)
{
    static const ncclUniqueId none;
    bool has_id = memcmp(&member->id, &none, sizeof none);
    struct truth_line line;

    truth_begin(&line, "communicator");
    truth_signed(&line, "rank", actor->rank);
    truth_text(&line, "name", member->name);
    truth_pointer(&line, "comm", member->comm);
    truth_signed(&line, "comm_rank", member->rank);
    truth_signed(&line, "ranks", member->ranks);
    truth_number(&line, "init_begun_ns", member->begun_ns);
    truth_number(&line, "init_ended_ns", truth_now_ns());
    truth_hex(&line, "id", &member->id, has_id ? sizeof member->id : 0);
    truth_text(&line, "creator", member->creator);
    truth_text(&line, "mode", member->mode);
    truth_text(&line, "parent", member->parent);
    truth_signed(&line, "child", member->child_number);
    truth_signed(&line, "color", member->color);
    truth_signed(&line, "key", member->key);
    truth_signed(&line, "shared", member->is_shared);
    truth_signed(&line, "device", member->device);
    members_write(&line, member);
    truth_put(&line);
}

void member_await(const struct member *member)
{
    ncclResult_t state = ncclInProgress;

    for (;;) {
        api_check(api.CommGetAsyncError(member->comm, &state), "ncclCommGetAsyncError");
        api_check(state, "what goes on without the caller");
        if (state != ncclInProgress)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void member_ready(struct actor *actor, struct member *member)
{
    int rank = -1, count = -1;

    while (!*(ncclComm_t volatile *)&member->comm)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    member_await(member);
    api_check(api.CommUserRank(member->comm, &rank), "ncclCommUserRank");
    api_check(api.CommCount(member->comm, &count), "ncclCommCount");
    api_check(api.CommCuDevice(member->comm, &member->device), "ncclCommCuDevice");
    if (rank != member->rank || count != member->ranks) {
        fprintf(stderr, "exercise: %s: rank %d of %d, expected %d of %d\n", member->name, rank, count, member->rank,
                member->ranks);
        actor->wrong++;
    }
    member_note(actor, member);
}

static void end_note(const struct actor *actor, const struct member *member, const char *how)
{
    struct truth_line line;

    truth_begin(&line, "communicator_end");
    truth_signed(&line, "rank", actor->rank);
    truth_text(&line, "name", member->name);
    truth_pointer(&line, "comm", member->comm);
    truth_text(&line, "how", how);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
}

void member_destroy(struct actor *actor, struct member *member)
{
    end_note(actor, member, "CommDestroy");
    api_check(api.CommFinalize(member->comm), "ncclCommFinalize");
    member_await(member);
    api_check(api.CommDestroy(member->comm), "ncclCommDestroy");
    member->comm = NULL;
}

void member_abort(struct actor *actor, struct member *member)
{
    end_note(actor, member, "CommAbort");
    api_check(api.CommAbort(member->comm), "ncclCommAbort");
    member->comm = NULL;
}
