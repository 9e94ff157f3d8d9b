/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When each rank arrived at each operation, and by how much it was late. The arrival is the later of host ready and GPU
 * ready where both are known; where the GPU is only known to have been ready no later than it had to be, the later of
 * host ready and the end of the rank's operation before (its last data received, or sent where it receives none; in
 * broadcasts and reductions the later of both, and where the rank sends nothing there it is unknown: what came may lie
 * there until its GPU takes it); with neither, the same from its enqueue. Late by: arrival minus the (lower) median
 * arrival of the operation's other ranks. Data that follows its credit within twice the rank's usual turn-around (the
 * lower quartile of the time from the later of credit and end of the operation before to the first data) says only that
 * the GPU was ready by then. Where hosts run ahead of their GPUs that wait is no turn-around, so it counts as one only
 * up to eight times what the rank's first credit usually takes after its enqueue. Part of the job stage.
 */
#pragma once

#include "correlator/job/job.h"

/* Data passes through the ranks of a broadcast or reduction one after the other, and needs nothing of those to come. */
static inline bool arrival_passes_on(const struct record_rank_operation *record)
{
    return record->operation == OPERATION_BROADCAST || record->operation == OPERATION_REDUCE;
}

/* Fills before_ns, arrival and lateness of every rank operation, and last_arrival_ns of operations. */
void arrival_find(struct job *job);
