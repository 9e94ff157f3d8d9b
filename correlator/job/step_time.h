/* SPDX-License-Identifier: BSD-2-Clause */
/* When each rank's steps began and ended (the rule: step.h), and what they add up to. Part of the job stage. */
#pragma once

#include "correlator/job/job.h"

/* Fills rank steps, and the times and sums of steps; needs the operations' steps. */
void step_time(struct job *job);
