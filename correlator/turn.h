/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns: each rank's operations in the order in which it enqueued them; those of one rank stand together. Pure; any
 * thread.
 */
#pragma once

#include "correlator/job/job.h"

/* All rank operations of the job, by rank (those of unknown rank, -1, first). `turns` is empty before; the caller ends
 * it. */
void turn_list_all(turn_list *turns, const struct job *job);
