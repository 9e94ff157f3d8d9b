/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run is made of: the command line's values. Durations in nanoseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum fault {
#define FAULT(name, text, class, place, help) FAULT_##name,
#include "tests/simulation/fault.def"
#undef FAULT
    FAULTS_COUNT,
};
enum fault_place { PLACE_RANK, PLACE_LINK, PLACE_INTO, PLACE_JOB };

enum shape {
#define SHAPE(name, text, make, help) SHAPE_##name,
#include "tests/simulation/shape.def"
#undef SHAPE
    SHAPES_COUNT,
};

/* From the fourth step on a step is the launch of a graph: whether hosts tell its calls, or only that they were
 * captured. */
enum graph { GRAPH_NONE, GRAPH_SHOWN, GRAPH_HIDDEN };

enum sight { SIGHT_BOTH, SIGHT_SENDER, SIGHT_RECEIVER, SIGHT_COUNTERS };

struct setting {
    int shape;    /* enum shape */
    int protocol; /* enum slicing_protocol */
    int nccl;     /* whose arithmetic operations are cut in: a place in nccl.def */
    int fault;    /* enum fault */
    int graph;    /* enum graph */
    int sight;    /* enum sight: at which ports of a flow frames are seen */
    bool tree;    /* AllReduces go up and down trees */
    bool pxn;     /* sends leave through the NIC of the neighbour that has the receiver's place in its node */
    bool no_host;
    bool no_version; /* hosts do not tell the library's */
    bool waits;      /* hosts tell when their threads waited for a GPU */
    bool one_file;
    bool operations; /* the truth about each of them is written, too */
    const char *folder;
    uint64_t seed;
    uint64_t nodes, gpus; /* GPUs, and NICs, of a node */
    uint64_t leaf_nodes;  /* nodes at one leaf switch */
    uint64_t steps;
    uint64_t channels;
    uint64_t fault_rank, fault_first_step, fault_last_step;
    uint64_t fault_delay_ns, fault_rate_percent, fault_loss_ppm;
    uint64_t compute_ns;     /* of a step */
    uint64_t bytes;          /* of a step's gradients, a rank */
    uint64_t exchange_bytes; /* a send of a pipeline; of an all-to-all, to all ranks together */
    uint64_t buffer_bytes, message_bytes, round_bytes;
    uint64_t link_gbps, latency_ns;
    uint64_t noise_percent; /* of the natural spread */
    uint64_t clock_offset_ns;
    uint64_t clock_drift_ppm;
};

const char *setting_fault_name(int fault);
const char *setting_fault_class(int fault);
enum fault_place setting_fault_place(int fault);
const char *setting_shape_name(int shape);

/* The library's version as ncclGetVersion has it, and whether its channels have parts of their own. */
uint32_t setting_version(const struct setting *setting);
bool setting_shares(const struct setting *setting);

/* Whether the fault holds in the step. */
bool setting_faulty(const struct setting *setting, uint64_t step);
