/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A made-up job for tests: ranks in a ring with some channels, in steps of collectives and sends, as a NIC and a host
 * emitter would report it, with what is true about it. Everything is computed from the options; written apart from the
 * correlator. Times of the reference clock, unless an emitter's is meant.
 */
#pragma once

#include <stdbool.h>

#include "tests/unit/correlator/feed.h"

#define MADE_RANKS_MAX       8
#define MADE_QUEUE_PAIRS_MAX 4
#define MADE_STEPS_MAX       128
#define MADE_MS              1000000ULL

enum made_fault {
    MADE_NONE,
    MADE_HOST,  /* the rank enqueues the step's first operation late, and all after it */
    MADE_GPU,   /* its first kernel begins late */
    MADE_LINK,  /* what it sends takes ten times as long, or fault_times */
    MADE_STALL, /* what it sends on each connection stands still behind the step's first slot */
    MADE_PROXY, /* it enqueues in time, and its proxy offers buffers and sends late */
};

struct made_options {
    int ranks;
    int channels;
    int queue_pairs; /* of each connection; 0 = 1 */
    bool striped;    /* each slot goes over all of them, else over one after the other */
    int steps;
    enum made_fault fault;
    int fault_rank;
    int fault_first_step;
    uint64_t fault_ns;
    unsigned fault_times; /* 0 = 10 */
    uint64_t seed;
    int64_t nic_offset_ns;
    int64_t host_offset_ns;
    bool warm_up;   /* operations before the first step that no step has */
    bool groups;    /* a send to the next rank and a receive from the one before, in one group */
    bool inside;    /* with groups: and in each one what rank 0 sends to rank 2, to which no queue pair leads */
    bool exchanges; /* an all-to-all, a gather and a scatter, to and from rank 1 */
    bool overlaps;  /* a second communicator, whose all-reduce runs while the first one's all-gather does */
    bool pxn;       /* ranks with odd numbers send through the queue pairs of the rank before */
    bool twin;      /* a third communicator makes the calls of the first, and moves nothing over the network */
    bool echo;      /* with overlaps: a fourth one does what the second does, behind it; its calls are not told */
    bool ownerless; /* the queue pairs were there before the host side: whose they are is not told */
};

struct made_job {
    struct made_options options;
    struct feed nic;
    struct feed host;
    uint64_t sent_bytes; /* payload that all ranks sent in all operations */
    int operations;      /* of one step */
    uint64_t first_step_ns;
    uint64_t step_begin_ns[MADE_STEPS_MAX];                 /* nothing is sent before it */
    uint64_t step_end_ns[MADE_STEPS_MAX];                   /* nor after it */
    uint64_t enqueue_ns[MADE_STEPS_MAX][MADE_RANKS_MAX];    /* of the step's first operation */
    uint64_t first_data_ns[MADE_STEPS_MAX][MADE_RANKS_MAX]; /* of it, on the first channel */
    uint32_t data_flow[MADE_RANKS_MAX];                     /* from the rank to the next one, on the first channel */
    uint32_t credit_flow[MADE_RANKS_MAX]; /* to the rank from the next one: in it the answers to its data travel */
};

/* Heap; to be given to made_destroy. */
struct made_job *made_create(const struct made_options *options);
void made_destroy(struct made_job *job);
