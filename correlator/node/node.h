/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node stage: one node's named flows and its ranks' calls -> one record a rank and operation (for point-to-point: a
 * call), which is all that goes on to the job stage. It uses what a node knows: its queue pairs, its calls, the frames
 * at its own ports, and the communicator rank at the other end of a connection.
 *
 * Writes into `naming` which record each call and each message belongs to. One thread.
 */
#pragma once

#include "correlator/intake/gap.h"
#include "correlator/naming/naming.h"

typedef ARRAY(struct record_rank_operation) rank_operation_records;

void node_run(rank_operation_records *records, struct naming *naming, const struct intake *intake,
              const struct timeline *timeline, const gap_list *gaps);
