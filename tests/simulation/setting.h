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

enum sight { SIGHT_BOTH, SIGHT_SENDER, SIGHT_RECEIVER };

struct setting {
    int shape; /* enum shape */
    int fault; /* enum fault */
    int sight; /* enum sight: at which ports of a flow frames are seen */
    bool tree; /* AllReduces go up and down trees */
    bool no_host;
    bool one_file;
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

/* Whether the fault holds in the step. */
bool setting_faulty(const struct setting *setting, uint64_t step);
