/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each step's end waited for. Part of the job stage; pure but for the job that it fills, any thread.
 *
 * The critical path of a step leads from its last end back to its begin: an operation that was under way since its last
 * rank had arrived; before that, this rank on its way there from its operation before; and so on. Its parts follow each
 * other without a gap.
 */
#pragma once

#include "correlator/job/job.h"

/* Fills job->path; needs the steps. */
void path_find(struct job *job);
