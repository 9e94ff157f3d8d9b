/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pattern of one rank's operations: which of them are one repeat, a bar. Where the rank's host waited for its GPU
 * between operations, a bar begins at such a place, whatever the order within it, and what lies between bars is a bar
 * of another kind (an evaluation); else the shortest repeat of the sequence counts, and it begins behind the longest
 * pause. Sizes may vary from bar to bar where nothing repeats with equal ones. Pure functions, any thread.
 */
#pragma once

#include "correlator/job/job.h"

struct beat {       /* one operation of the rank; times are 0 = unknown */
    uint64_t exact; /* equal for equal calls */
    uint64_t loose; /* the same for calls that differ in size alone */
    uint64_t bytes;
    uint64_t enqueued_ns;
    uint64_t first_ns; /* first data */
    uint64_t end_ns;
    bool waited; /* before it the host waited until all operations before were over */
    bool ends;   /* a person said that a step ends with it */
};

struct bar { /* beats [from, to) */
    size_t from;
    size_t to;
    uint8_t kind; /* enum step_kind: training, evaluation or other */
};
typedef ARRAY(struct bar) bar_list;

struct pattern {
    const struct beat *beats; /* borrowed */
    size_t count;
    size_t *units; /* where a bar may begin: the first beat of each, and behind the last the end */
    size_t units_count;
    uint64_t *sums; /* over the signatures of all beats before */
    bool is_loose;
    bool is_ordered; /* the beats of a bar have one order */
    size_t period;   /* how many units a bar has; 0: nothing repeats */
    size_t model;    /* the first of two periods, one after the other, that others are compared with */
    size_t phase;    /* how many units behind it a bar most likely begins */
    size_t parts;    /* how many steps a bar is */
};

void pattern_init(struct pattern *pattern, const struct beat *beats, size_t count);

/* The bars when they begin `turn` (below period) units behind where they most likely do. `bars` is empty before. */
void pattern_bars(const struct pattern *pattern, size_t turn, bar_list *bars);
void pattern_fini(struct pattern *pattern);
