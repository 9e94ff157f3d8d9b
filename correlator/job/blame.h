/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each rank added itself at each operation, and what each directed pair of ranks took too long in each step: the
 * numbers that verdicts are made of. Part of the job stage.
 */
#pragma once

#include "correlator/job/job.h"

enum blame_part {
    BLAME_HOST, /* until the rank's host was ready: first credit, not before the end of the operation before */
    BLAME_GPU,  /* from the latest of enqueue, end of the operation before and credit to the first data */
    BLAME_PARTS,
};

struct blame { /* of one rank operation; ns */
    bool known;
    uint64_t place;               /* equal for the same operation of every step */
    int64_t ready_ns;             /* when its host was ready */
    int64_t wait_ns[BLAME_PARTS]; /* how long each part took; of the GPU's, while it held credit */
    int64_t took_ns[BLAME_PARTS]; /* what is compared: wait_ns, and of a GPU known to be ready later, from its start */
    int64_t hidden_ns[BLAME_PARTS]; /* how much longer it may have taken: the GPU's while there was no credit */
    int64_t own_ns[BLAME_PARTS];    /* what the rank added itself: took_ns beyond the usual one at this place */
    int64_t late_ns[BLAME_PARTS];   /* how far that made the rank late, compared with the others */
    int64_t spread_ns[BLAME_PARTS]; /* of took_ns at this place, over ranks and steps */
};

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
    bool at_receiver;  /* the receiver's port shows it, the sender's does not */
    bool slow;         /* set by who judges */
    bool slower;       /* the same: slow compared with its own usual pace or transit */
    int32_t operation; /* where most of the excess is */
    uint64_t from_ns;  /* first data sent to last data there */
    uint64_t to_ns;
    char device[DEVICE_NAME_BYTES];
};
typedef ARRAY(struct pair_time) pair_time_list;

/* One blame for each of job->rank_operations; the caller frees it. */
struct blame *blame_ranks(const struct job *job);

/* What bytes take at a pace. */
uint64_t blame_usual_ns(uint64_t bytes, uint64_t pace);

/* By step, from, to. Returns the median pace in picoseconds a byte. */
uint64_t blame_pairs(const struct job *job, pair_time_list *pairs);
