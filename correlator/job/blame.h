/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each rank added itself at each operation: the numbers that verdicts on ranks are made of. Part of the job stage.
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
    int64_t hidden_ns[BLAME_PARTS]; /* how much longer it may have taken: the GPU's while there was no credit, the
                                       host's behind operations that nobody sees */
    int64_t own_ns[BLAME_PARTS];    /* what the rank added itself: took_ns beyond the usual one at this place */
    int64_t late_ns[BLAME_PARTS];   /* how far that made the rank late, compared with the others */
    int64_t longer_ns; /* by how much its step so far took longer, since that began for the rank (carry.h); INT64_MAX:
                          nobody else sends in the operation, and nothing tells */
    int64_t spread_ns[BLAME_PARTS]; /* of took_ns at this place, over ranks and steps */
};

/* One blame for each of job->rank_operations; the caller frees it. */
struct blame *blame_ranks(const struct job *job);
