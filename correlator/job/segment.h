/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A long job can be judged window by window, so that a new step costs a window's work and not that of all that is held.
 * A window holds so many records in order of enqueue, and SEGMENT_STEPS steps at least. Of a full one the steps but for
 * its last quarter are the job's; the next one begins a quarter before that, so that each step is judged with a quarter
 * of a window before and behind it. What is usual is told by the steps of the window. Unless
 * it is asked for, a job has one window: what windows miss is in doc/results.md.
 *
 * Invariant: the job follows from the records and the evidence alone: it is the same whether they came at once or step
 * by step. A job that fits into one window is judged as a whole. One thread.
 */
#pragma once

#include "correlator/job/stitch.h"

#define SEGMENT_STEPS 16

struct segment_records { /* in order of enqueue; `base` more were there before, and are not needed any more */
    const struct record_rank_operation *items;
    const uint32_t *order; /* by position less base: index in items; NULL: as they are, of fewer than a window */
    size_t count;
    size_t base;
    size_t same; /* so many, with base, are what they were in the run before */
    bool tells;  /* the job's rank_operation_of is wanted; base is 0 then */
};

struct segments;

/* `records`: in a window; 0: as many as there are. */
struct segments *segments_create(size_t records);
void segments_destroy(struct segments **segments); /* a no-op on NULL */

/* Forgets what it knows of earlier runs: the next one begins anew, with base 0. */
void segments_forget(struct segments *segments);

/*
 * Makes the job of the records: what has not changed since the run before stays, with what it said. `job` is that
 * run's, or zeroed. False: a record that is not at hand any more is needed; then nothing was done.
 */
bool segments_run(struct segments *segments, struct job *job, struct job_ranks ranks, const struct evidence *evidence,
                  const struct segment_records *records);

/* Positions before this one are not needed by the next run, unless the past changes. */
size_t segments_needed_from(const struct segments *segments);

/* A window's records. */
size_t segments_size(const struct segments *segments);

/* How many windows the last run judged. */
size_t segments_judged(const struct segments *segments);

/* So many of the job's first rows of each table are what they were in the run before. */
struct extent segments_same(const struct segments *segments);
