/* SPDX-License-Identifier: BSD-2-Clause */
/* Which step stands for the bad ones, and which for the good, in SQL. */
#pragma once

#include "report/subject/hang.h"

/* Of steps without a verdict those of training are worse, whatever a warm-up, a checkpoint or an evaluation takes. */
#define WORSE_FIRST(step, size_ns)                                                                                     \
    size_ns " DESC NULLS LAST, (" step ".kind <> 'training' OR " HANG_IN(step ".id") "), " step                        \
                                                                                     ".late_ns DESC NULLS LAST, " step \
                                                                                     ".duration_ns DESC, " step ".id"

/* Of verdicts: a hang before all else, then those of the worst step. */
#define VERDICTS_BY_WORST                                                                                              \
    "verdict.step IS NOT NULL, verdict.size_ns DESC, (SELECT kind <> 'training' OR " HANG_IN(                          \
        "step.id") " FROM step "                                                                                       \
                   "WHERE step.id = verdict.step), (SELECT late_ns FROM step WHERE step.id = verdict.step) DESC "      \
                   "NULLS LAST, (SELECT duration_ns FROM step WHERE step.id = verdict.step) DESC, verdict.id"

/*
 * Steps of training that are whole, ended, and have no verdict; of these the one of median duration (of two the
 * shorter) is the usual one. None: no row.
 */
#define HEALTHY_STEPS                                                                                                  \
    "(SELECT id, duration_ns, row_number() OVER (ORDER BY duration_ns, id) AS place, count(*) OVER () AS of FROM "     \
    "step "                                                                                                            \
    "WHERE kind = 'training' AND partial = 0 AND incomplete = 0 AND NOT " HANG_IN(                                     \
        "id") " AND id NOT IN (SELECT step FROM verdict WHERE step IS NOT NULL)) "
#define HEALTHY_STEP "(SELECT id, duration_ns, of FROM " HEALTHY_STEPS "WHERE place = (of + 1) / 2) "
