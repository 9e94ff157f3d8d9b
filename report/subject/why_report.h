/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdicts of a step in words, and the operation that decided it, rank by rank: what qpscope why prints. */
#pragma once

#include "report/report.h"

/*
 * Of `step`, or where that is STORE_NULL a summary over all steps, what hangs, and the worst step. -errno after
 * logging.
 */
int why_report_print(struct report *report, const struct store_value *step);

/* The same of what hangs; nothing where nothing does. -errno after logging. */
int why_report_print_hang(struct report *report);

/* The array "classes" of the JSON: each class of verdict and what it means. */
void why_report_classes(struct report *report);
