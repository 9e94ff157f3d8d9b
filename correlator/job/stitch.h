/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts a window of a long job (segment.h), judged by itself, behind what the job has already: its steps from one on,
 * and those of its operations that are not in the job yet. One thread.
 */
#pragma once

#include "correlator/job/job.h"

struct extent { /* how much the job has */
    size_t operations;
    size_t rank_operations;
    size_t steps;
    size_t rank_steps;
    size_t path;
    size_t verdicts;
};

struct extent extent_of(const struct job *job);

/* Takes away what the job has more. */
void extent_cut(struct job *job, const struct extent *extent);

struct stitch {
    struct job *job;
    struct job *window;      /* its verdicts are moved */
    size_t first_step;       /* of the window: those before are in the job */
    size_t last_step;        /* behind it: those come with the next window */
    const uint8_t *leaves;   /* by the window's operations: 1 = it is in the job already, or comes later */
    int32_t *rank_operation; /* by the window's rank operations: where each one went, -1 = nowhere */
    bool is_open;            /* the last window: what belongs to no step counts too */
};

void stitch_window(struct stitch *stitch);
