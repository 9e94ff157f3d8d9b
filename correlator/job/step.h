/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps: one repeat of the job's pattern of operations (pattern.h). The ranks' repeats are laid beside each other
 * through the operations that they share.
 *
 * A rank's step starts at the end of its last operation of the step before (the first one, and the first one on other
 * communicators: at its first enqueue) and ends with the end of its last operation (the last data that it receives
 * there; sends, where it receives none). What comes before the first repeat belongs to no step; so does a last repeat
 * that has not ended. Part of the job stage.
 */
#pragma once

#include "correlator/job/job.h"

/* Fills steps, rank steps, and the step and place of operations. */
void step_find(struct job *job);
