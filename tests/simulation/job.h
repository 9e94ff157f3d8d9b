/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole run: all ranks from their first step to their last. One thread. */
#pragma once

#include "tests/simulation/setting.h"

struct job_outcome {
    uint64_t events, records;
    uint64_t step_ns; /* median over the steps that all ranks ended */
    double seconds;   /* of this program's time */
};

/*
 * Writes captures and truth.json into the setting's folder, if it has one. 0, or -errno
 * after logging.
 */
int job_run(const struct setting *setting, struct job_outcome *outcome);
