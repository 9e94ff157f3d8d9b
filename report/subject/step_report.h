/* SPDX-License-Identifier: BSD-2-Clause */
/* Choosing the step that a report is about. */
#pragma once

#include "report/report.h"

/*
 * The step that was asked for (-ENOENT, logged, when the store has none of that number), or, when `wanted` is
 * STORE_NULL, the worst: the one with the largest verdict, else with the latest rank, else the longest; STORE_NULL when
 * there is no step at all.
 */
int step_report_choose(struct report *report, const struct store_value *wanted, struct store_value *step);

/* -ENOENT, logged, when the store has no step from range[0] to range[1]. */
int step_report_check(struct report *report, const struct store_value range[2]);

/* How the reports of a step begin: its number, duration and operations; in JSON the member "step". */
int step_report_print(struct report *report, const struct store_value *step);
