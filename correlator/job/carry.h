/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ranks carry from one step into the next. Nothing but an operation that needs something of all its ranks holds
 * ranks together: behind a broadcast, or beside work that waits for no operation, one may be ahead of another for many
 * steps. Such a rank comes late to an operation without having taken longer in the step. Part of the job stage; pure
 * but for the blames.
 */
#pragma once

#include "correlator/job/blame.h"

/*
 * Bounds what each rank added itself by what it took longer since its own step began, where that is less than half of
 * it: its first data beside the usual of its place, or beside that of the fastest other rank in the operation,
 * whichever is more.
 */
void carry_leave_out(const struct job *job, struct blame *blames);
