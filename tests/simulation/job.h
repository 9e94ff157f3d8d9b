/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole run: all ranks from their first step to their last. One thread. */
#pragma once

#include "tests/simulation/setting.h"

/*
 * Writes captures and truth.json into the setting's folder, and prints one line of JSON with the sums. 0, or -errno
 * after logging.
 */
int job_run(const struct setting *setting);
