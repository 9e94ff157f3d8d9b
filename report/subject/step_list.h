/* SPDX-License-Identifier: BSD-2-Clause */
/* A row a step, then what was lost: what qpscope steps prints. */
#pragma once

#include "report/report.h"

/*
 * A row a step, those alone that began after ?1 and no later than ?2 (not bound: all). The columns that begin a row are
 * those of enum step_column; the last one is the verdicts in words.
 */
extern const struct listing step_listing;

enum step_column {
    STEP_COLUMN_NUMBER,
    STEP_COLUMN_KIND,
    STEP_COLUMN_START_NS,
    STEP_COLUMN_STARTED_UTC,
    STEP_COLUMN_STARTED_TIME,
    STEP_COLUMN_END_NS,
    STEP_COLUMN_DURATION_NS,
    STEP_COLUMN_BOUND_NS,
    STEP_COLUMN_OPERATIONS,
    STEP_COLUMN_INCOMPLETE,
    STEP_COLUMN_PARTIAL,
    STEP_COLUMN_SLOWEST_RANK,
    STEP_COLUMN_SLOWEST_ON,
    STEP_COLUMN_LATE_NS,
    STEP_COLUMN_LATE_BOUND_NS,
    STEP_COLUMN_LATE_OPERATION_WORDS,
};

/* -errno after logging. */
int step_list_print(struct report *report);
