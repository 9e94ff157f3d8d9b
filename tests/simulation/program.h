/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each rank does in a step, by the job's shape: computing, calls of the collective library, waits. Makes the
 * communicators that it needs. One thread.
 */
#pragma once

#include "tests/simulation/group.h"

struct program;

enum deed_kind {
    DEED_COMPUTE, /* a kernel of so many ns on the compute stream */
    DEED_CALL,    /* an operation on its communicator's stream, after all computing before it */
    DEED_WAIT,    /* the compute stream waits for the communicator's stream */
    DEED_SYNC,    /* the host waits for everything: the step's end */
};

struct deed {
    enum deed_kind kind;
    uint64_t ns;
    uint32_t stream; /* a communicator's place among the rank's, from 0 */
    struct group *group;
    struct group_call call;
};

#define PROGRAM_DEEDS_MAX   128
#define PROGRAM_STREAMS_MAX 3

struct program *program_create(struct world *world);
void program_destroy(struct program *program);

/*
 * The deeds of the rank's step, which stay valid until the next call; returns how many. Computing is as the job means
 * it: chance and faults come on top. `evaluates`: without the backward pass.
 */
uint32_t program_step(struct program *program, uint32_t rank, uint64_t step, bool evaluates, const struct deed **deeds);

/* Whether the rank has left the job before that step. */
bool program_leaves(const struct program *program, uint32_t rank, uint64_t step);

/* The step that the rank joins the job in. */
uint64_t program_first_step(const struct program *program, uint32_t rank);

/* The rank's communicator on that stream, or NULL. */
struct group *program_group(const struct program *program, uint32_t rank, uint32_t stream);
