/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank: its training thread, which gives out a step's deeds and waits for their end, and its GPU's streams. Faults
 * of ranks act here. One thread.
 */
#pragma once

#include "tests/simulation/program.h"
#include "tests/simulation/truth.h"

struct rank;

struct rank *rank_create(struct world *world, struct program *program, struct truth *truth, uint32_t number);
void rank_destroy(struct rank *rank);

/* Begins its first step then; goes on by itself until its last one has ended. */
void rank_begin(struct rank *rank, uint64_t at_ns);

/* Steps that have ended. */
uint64_t rank_steps(const struct rank *rank);

/* Whether it has ended. */
bool rank_is_done(const struct rank *rank);
