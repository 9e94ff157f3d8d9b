/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids go through one file: first those of the world communicators, then one for each pair. All ranks make their
 * communicators in the same order, which the seed gives; only inside the group of the first two does each rank have an
 * order of its own, which is legal there and lets them connect in any order.
 */
#include "communicator.h"

#include "meet.h"
#include "tracer.h"
#include "truth.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { GROUPED = 2, SALT_PAIRS = 1000, SALT_ORDER = 2000, SALT_GROUP = 3000 };

static int ids_count(const struct job *job)
{
    return (int)(job->worlds + job->ranks / 2);
}

void communicators_publish(const struct job *job)
{
    struct unique_id ids[WORLDS_MAX + RANKS_MAX / 2];

    for (int i = 0; i < ids_count(job); i++)
        library_check(library.GetUniqueId(&ids[i]), "ncclGetUniqueId");
    meet_publish(job, "ids", ids, (size_t)ids_count(job) * sizeof ids[0]);
}

static void order_shuffle(const struct job *job, uint64_t salt, int *order, int count)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int other = (int)(job_random(job, salt + (uint64_t)i) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

/* The place of the rank in the shuffled row of ranks, whose neighbours two by two are partners. */
static int pair_place(const struct job *job, int world_rank)
{
    int row[RANKS_MAX], place = 0;

    order_shuffle(job, SALT_PAIRS, row, (int)job->ranks);
    while (row[place] != world_rank)
        place++;
    return place;
}

static void communicator_note(const struct communicator *communicator, uint64_t begun_ns, uint64_t ended_ns)
{
    struct truth_line line;

    truth_begin(&line, "communicator");
    truth_signed(&line, "rank", communicator->world_rank);
    truth_text(&line, "name", communicator->name);
    truth_pointer(&line, "comm", communicator->handle);
    truth_signed(&line, "comm_rank", communicator->rank);
    truth_signed(&line, "ranks", communicator->ranks);
    truth_number(&line, "init_begun_ns", begun_ns);
    truth_number(&line, "init_ended_ns", ended_ns);
    truth_hex(&line, "id", communicator->id.bytes, sizeof communicator->id.bytes);
    truth_put(&line);
}

static void communicator_init(struct communicator *communicator)
{
    library_check(
        library.CommInitRank(&communicator->handle, communicator->ranks, communicator->id, communicator->rank),
        "ncclCommInitRank");
}

static void worlds_create_group(struct communicators *communicators, const struct job *job, int world_rank)
{
    int count = job->worlds < GROUPED ? (int)job->worlds : GROUPED, order[GROUPED];
    uint64_t begun_ns = truth_now_ns();

    order_shuffle(job, SALT_GROUP + (uint64_t)world_rank * GROUPED, order, count);
    library_check(library.GroupStart(), "ncclGroupStart");
    for (int i = 0; i < count; i++)
        communicator_init(&communicators->worlds[order[i]]);
    library_check(library.GroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < count; i++)
        communicator_note(&communicators->worlds[i], begun_ns, truth_now_ns());
}

static void communicator_create_alone(struct communicator *communicator)
{
    uint64_t begun_ns = truth_now_ns();

    communicator_init(communicator);
    communicator_note(communicator, begun_ns, truth_now_ns());
}

static void tracer_tell(const struct communicators *communicators, const struct job *job, int world_rank)
{
    tracer_expect_fn *expect = (tracer_expect_fn *)dlsym(RTLD_DEFAULT, "tracer_expect");
    tracer_rank_fn *rank = (tracer_rank_fn *)dlsym(RTLD_DEFAULT, "tracer_rank");

    if (!expect || !rank)
        return;
    rank(world_rank);
    for (int i = 0; i < job->worlds; i++)
        expect(communicators->worlds[i].id.bytes, sizeof communicators->worlds[i].id.bytes);
    if (communicators->pair.ranks)
        expect(communicators->pair.id.bytes, sizeof communicators->pair.id.bytes);
}

static void communicators_plan(struct communicators *communicators, const struct job *job, int world_rank)
{
    struct unique_id ids[WORLDS_MAX + RANKS_MAX / 2];
    int place = pair_place(job, world_rank);

    meet_read(job, "ids", ids, (size_t)ids_count(job) * sizeof ids[0]);
    memset(communicators, 0, sizeof *communicators);
    for (int i = 0; i < job->worlds; i++) {
        struct communicator *world = &communicators->worlds[i];
        *world = (struct communicator){.id = ids[i], .rank = world_rank, .ranks = (int)job->ranks};
        snprintf(world->name, sizeof world->name, "world%d", i);
        world->world_rank = world_rank;
    }
    if (place / 2 >= job->ranks / 2)
        return;
    communicators->pair = (struct communicator){.id = ids[job->worlds + place / 2], .rank = place % 2, .ranks = 2};
    snprintf(communicators->pair.name, sizeof communicators->pair.name, "pair%d", place / 2);
    communicators->pair.world_rank = world_rank;
}

void communicators_create(struct communicators *communicators, const struct job *job, int world_rank)
{
    int singles = job->worlds > GROUPED ? (int)job->worlds - GROUPED : 0, order[COMMUNICATORS_MAX + 1];

    communicators_plan(communicators, job, world_rank);
    tracer_tell(communicators, job, world_rank);
    order_shuffle(job, SALT_ORDER, order, singles + 2);
    for (int i = 0; i < singles + 2; i++) {
        if (order[i] < singles)
            communicator_create_alone(&communicators->worlds[GROUPED + order[i]]);
        else if (order[i] == singles)
            worlds_create_group(communicators, job, world_rank);
        else if (communicators->pair.ranks)
            communicator_create_alone(&communicators->pair);
    }
}

void communicators_destroy(struct communicators *communicators, const struct job *job)
{
    for (int i = 0; i < job->worlds; i++)
        library_check(library.CommDestroy(communicators->worlds[i].handle), "ncclCommDestroy");
    if (communicators->pair.handle)
        library_check(library.CommDestroy(communicators->pair.handle), "ncclCommDestroy");
}
