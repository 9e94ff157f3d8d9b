/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each rank cost each step. Part of the job stage; pure but for the job that is filled, any thread.
 */
#pragma once

#include "correlator/job/blame.h"

/*
 * Fills rank_step.cost_ns: by how much the step would have been shorter, had the rank taken in each operation what is
 * usual there. Only what the operation waited for it alone counts: where two are late alike, neither costs much. Where
 * ranks begin to work for an operation when the one before is over, what is added at several adds up; where they work
 * on beside it (gradients that are reduced while more are computed), a rank that is once late is so at all that follow,
 * and that costs once, and one that is slower all the time is later and later: there it costs what its own step is
 * longer by since work last waited (carry.h). Which of the two it is is seen over the steps; where nothing tells, it is
 * taken to cost once.
 */
void cost_find(struct job *job, const struct blame *blames);
