/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which training steps are slow by nature: the first ones, while memory, kernels and connections are made (they take
 * longer than the second half of the job's steps ever do), and those before which all ranks paused. Part of the job
 * stage.
 */
#pragma once

#include "correlator/job/job.h"

/* Needs the steps' times. */
void step_kind_find(struct job *job);
