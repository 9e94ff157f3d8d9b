/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs that a store saw: processes that share a communicator, or a Slurm job, make one. What qpscope jobs prints.
 * One thread.
 */
#pragma once

#include <stddef.h>

#include "report/report.h"

/* A row a job, or the JSON array "jobs". *jobs_count, when not NULL, says how many. -errno after logging. */
int job_list_print(struct report *report, size_t *jobs_count);
