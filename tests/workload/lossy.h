/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that waits for an answer over TCP while what it sends is lost. */
#pragma once

#include "job.h"

#include <stdint.h>

/*
 * Sends a byte to itself over lo, which loses all frames for a third of the time (by the job's tc(8), so nothing else
 * may use lo then), waits for it, and sleeps for what is left. The kernel sends it again after 0.2, 0.6, 1.4 s and so
 * on.
 */
void lossy_wait_for(const struct job *job, uint64_t duration_ns);
