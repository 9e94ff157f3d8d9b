/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a node stage would tell of a made-up job: in each step a rank has some operations of its group of 64 ranks and
 * one of all ranks; one rank's GPU is late in the second half.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "correlator/job/job.h"

#define MADE_GROUP 64

struct made_shape {
    uint64_t ranks; /* a multiple of MADE_GROUP */
    uint64_t steps;
    uint64_t operations; /* of a rank and step */
};

/* The n-th operation of a rank in a step. */
void made_record(struct record_rank_operation *record, const struct made_shape *shape, uint64_t step, uint64_t n,
                 uint64_t rank);

/* The communicator of all, or of a rank's group. */
void made_identity(uint8_t *identity, bool of_all, uint64_t rank);

/* Job's rank of (communicator, rank in it). */
int32_t made_rank(const void *context, const uint8_t *communicator, int32_t rank);

/* How many of the late steps have that rank's verdict, and how many verdicts name another. */
void made_count(const struct job *job, const struct made_shape *shape, size_t *found, size_t *wrong);
double made_cpu_seconds(void);
double made_peak_mib(void);
