/* SPDX-License-Identifier: BSD-2-Clause */
/* What a step's end waited for, and what each rank cost it. */
#pragma once

#include "report/report.h"

/*
 * For people: how long the step would have been without what its costliest rank added, and the longer parts of its
 * critical path; nothing where there are none. In JSON the arrays "costs" and "critical_path". -errno after logging.
 */
int path_report_print(struct report *report, const struct store_value *step);
