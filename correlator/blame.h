/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each rank added itself at each operation, and what each directed pair of ranks took too long in each step: the
 * numbers that verdicts are made of. Part of the job stage.
 */
#pragma once

#include "correlator/job.h"

struct blame { /* of one rank operation; ns */
    bool known;
    int64_t wait_ns;           /* arrival minus the end of the rank's operation before */
    int64_t gpu_wait_ns;       /* arrival minus the later of host ready and the end of the operation before */
    int64_t own_ns;            /* lateness that the rank added itself; may be negative */
    int64_t gpu_ns;            /* the part of it that came after its host was ready */
    int64_t usual_gpu_wait_ns; /* lower median of gpu_wait_ns at this place of the step */
};

struct pair_time { /* one directed pair of ranks in one step */
    int32_t step;
    int32_t from;
    int32_t to;
    uint64_t bytes;
    uint64_t active_ns;
    int64_t excess_ns; /* active_ns minus what the bytes take at the job's median pace */
    bool at_receiver;  /* the receiver's port shows it, the sender's does not */
    int32_t operation; /* where most of the excess is */
    char device[DEVICE_NAME_BYTES];
};
typedef ARRAY(struct pair_time) pair_time_list;

/* One blame for each of job->rank_operations; the caller frees it. */
struct blame *blame_ranks(const struct job *job);

/* By step, from, to. Returns the median pace in picoseconds a byte. */
uint64_t blame_pairs(const struct job *job, pair_time_list *pairs);
