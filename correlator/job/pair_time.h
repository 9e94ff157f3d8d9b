/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each directed pair of ranks took too long in each step: the numbers that verdicts on links are made of. Part of
 * the job stage; pure, any thread.
 */
#pragma once

#include "correlator/job/job.h"

struct pair_time { /* one directed pair of ranks in one step */
    int32_t step;
    int32_t from;
    int32_t to;
    uint64_t bytes;
    uint64_t active_ns;
    uint64_t pace;      /* picoseconds a byte: median over the step's operations */
    int64_t transit_ns; /* from the last frame sent to the last received, median over them; 0 = not known */
    uint64_t transit_bound_ns;
    int64_t excess_ns; /* active_ns minus what the bytes take at the job's median pace, or, of slower, at its own */
    int64_t cost_ns;   /* set by who judges: by how much its steps are longer, where messages wait on their way */
    bool at_receiver;  /* the receiver's port shows it, the sender's does not */
    bool slow;         /* set by who judges */
    bool slower;       /* the same: slow compared with its own usual pace or transit */
    bool delayed;      /* the same: by its transit */
    int32_t operation; /* where most of the excess is */
    uint64_t from_ns;  /* first data sent to last data there */
    uint64_t to_ns;
    char device[DEVICE_NAME_BYTES];
};
typedef ARRAY(struct pair_time) pair_time_list;

/* What bytes take at a pace. */
uint64_t pair_time_usual_ns(uint64_t bytes, uint64_t pace);

/* By step, from, to. Returns the median pace in picoseconds a byte. */
uint64_t pair_time_find(const struct job *job, pair_time_list *pairs);
