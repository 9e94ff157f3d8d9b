/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hangs, in SQL. Of several verdicts the longest one's operation stands for it; what belongs to its time are all
 * operations that hang, those of the step that it is in, and those behind the last step.
 */
#pragma once

#define HANG_OPERATION "(SELECT operation FROM verdict WHERE step IS NULL ORDER BY size_ns DESC, id LIMIT 1)"

/* The step that it is in; NULL: it is behind the last one. */
#define HANG_STEP "(SELECT step FROM operation WHERE id = " HANG_OPERATION ")"

/* The number that it goes by: that of the step, else the next one. */
#define HANG_NUMBER "coalesce(" HANG_STEP ", (SELECT max(id) + 1 FROM step))"

#define HANG_HAS(operation) "(" operation " IN (SELECT operation FROM verdict WHERE step IS NULL))"

/* Operations with whether they hang: nobody is late for those, nor are they over. */
#define HANG_OPERATIONS "(SELECT operation.*, " HANG_HAS("operation.id") " AS hangs FROM operation) "

/* Whether a rank, an expression, is one that a row of verdict is about, or one that any hang waits for, or may. */
#define HANG_IS_OF(of) "(verdict.rank = " of " OR ', ' || candidates || ',' LIKE '%, ' || " of " || ',%')"
#define HANG_NAMES(of) "EXISTS (SELECT 1 FROM verdict WHERE step IS NULL AND " HANG_IS_OF(of) ")"

/* `o`: a row of operation. */
#define HANG_SCOPE(o)                                                                                                  \
    "(" HANG_HAS(o ".id") " OR (" o ".step IS NULL AND " HANG_OPERATION " IS NOT NULL AND " o                          \
                          ".start_ns >= (SELECT max(end_ns) FROM step)) OR " o ".step = " HANG_STEP ")"

#define HANG_FROM                                                                                                      \
    "min(coalesce((SELECT start_ns FROM step WHERE id = " HANG_STEP "), (SELECT max(end_ns) FROM step)), "             \
    "(SELECT min(scope.start_ns) FROM operation AS scope WHERE " HANG_SCOPE("scope") "))"

/* Until when it was seen not to end. */
#define HANG_TO                                                                                                        \
    "(SELECT max(operation.start_ns + size_ns) FROM verdict JOIN operation ON operation.id = verdict.operation "       \
    "WHERE verdict.step IS NULL)"

/* `step`: the number of a step that does not end. */
#define HANG_IN(step)                                                                                                  \
    "(" step " IN (SELECT operation.step FROM verdict JOIN operation ON operation.id = "                               \
    "verdict.operation WHERE verdict.step IS NULL AND operation.step IS NOT NULL))"
