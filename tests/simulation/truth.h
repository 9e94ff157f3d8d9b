/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What really happened, as JSON: the setting, the fault, and of each step and rank when it began and ended and what was
 * done to it. Times: nanoseconds of the reference clock, as the correlator maps the agents' clocks to it. One thread.
 */
#pragma once

#include "tests/simulation/setting.h"

struct truth;

struct truth_row {
    uint64_t begin_ns, end_ns;          /* 0: never */
    uint64_t compute_ns;                /* all kernels but the library's */
    uint64_t gpu_late_ns, host_late_ns; /* what the fault put on it */
    uint8_t evaluates;
};

struct truth *truth_create(const struct setting *setting, uint32_t ranks, uint64_t steps);
void truth_destroy(struct truth *truth);
struct truth_row *truth_at(struct truth *truth, uint32_t rank, uint64_t step);

struct truth_sum {
    uint64_t events, records;
    double seconds;
};
/* -errno after logging. */
int truth_write(const struct truth *truth, const struct truth_sum *sum, const char *path);

/* Median over the steps of the time from the first rank's begin to the last one's end; 0 without a whole step. */
uint64_t truth_step_ns(const struct truth *truth);
