/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The present state in ten lines: daemons, store, job, steps, the last one, the worst verdict, what was lost, what to
 * do next. What qpscope prints without a subcommand. One thread.
 */
#pragma once

#include "report/report.h"

/* Without a store it says so: no error. -errno after logging when there is one that cannot be read. */
int state_print(const struct report_options *options);

/* Of an open report the lines that are about its job: steps, the last one, the worst verdict, what was lost. */
int state_print_job(struct report *report);
