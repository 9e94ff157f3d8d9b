/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job's communicators, as one rank sees them: several of all ranks, and one of this rank and its partner. Which
 * ranks are partners, the order in which communicators are made, and the order within the group that makes the first
 * two at once come from the job's seed. Used by the rank's own thread.
 */
#pragma once

#include "job.h"
#include "library.h"

enum { WORLDS_MAX = 8, COMMUNICATORS_MAX = WORLDS_MAX + 1 };

struct communicator {
    void *handle; /* ncclComm_t */
    char name[16];
    struct unique_id id;
    int rank; /* this rank's number in it */
    int ranks;
    int world_rank;
    uint64_t collectives; /* started so far on this communicator */
    uint64_t sends[RANKS_MAX], receives[RANKS_MAX];
};

struct communicators {
    struct communicator worlds[WORLDS_MAX];
    struct communicator pair; /* handle NULL when this rank has no partner */
};

/* Rank 0 of the job publishes an id for each communicator; called once in its process, before the ranks start. */
void communicators_publish(const struct job *job);

/* Makes all of this rank's communicators and notes them in the truth. Blocks until all ranks do the same. */
void communicators_create(struct communicators *communicators, const struct job *job, int world_rank);

void communicators_destroy(struct communicators *communicators, const struct job *job);
