/* SPDX-License-Identifier: BSD-2-Clause */
/* The critical path of a step. */
#include "report/subject/path_report.h"

#include <inttypes.h>

#include "report/form/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct column cost_columns[] = {
    {"rank", NULL, COLUMN_INTEGER},
    {"cost_ns", NULL, COLUMN_INTEGER},
};

static const struct listing costs = {
    "costs",
    "SELECT rank, cost_ns FROM rank_step WHERE step = ?1 ORDER BY cost_ns DESC, rank",
    cost_columns,
    COUNT(cost_columns),
};

/* What is not worth a line to a person: below a hundredth of the step. */
#define COSTLIEST                                                                                                      \
    "SELECT rank, cost_ns, duration_ns, 100.0 * cost_ns / duration_ns FROM (SELECT rank_step.rank, cost_ns, "          \
    "step.duration_ns FROM rank_step JOIN step ON step.id = rank_step.step WHERE step = ?1 ORDER BY cost_ns DESC, "    \
    "rank_step.rank LIMIT 1) WHERE cost_ns * 100 >= duration_ns AND cost_ns > 0"

static const struct column part_columns[] = {
    {NULL, "after ms", COLUMN_MS},       {NULL, "for ms", COLUMN_MS},       {NULL, "the step waited for", COLUMN_TEXT},
    {"place", NULL, COLUMN_INTEGER},     {"part", NULL, COLUMN_TEXT},       {"rank", NULL, COLUMN_INTEGER},
    {"operation", NULL, COLUMN_INTEGER}, {"from_ns", NULL, COLUMN_INTEGER}, {"to_ns", NULL, COLUMN_INTEGER},
};

#define PARTS                                                                                                          \
    "SELECT path.from_ns - step.start_ns, path.to_ns - path.from_ns, "                                                 \
    "CASE path.part WHEN 'rank' THEN coalesce('rank ' || path.rank, 'an unknown rank') || ', on its way to ' "         \
    "ELSE '' END || operation.kind || ' (operation ' || operation.place || ')' || "                                    \
    "CASE path.part WHEN 'rank' THEN '' ELSE ' under way' || coalesce(', last at rank ' || path.rank, '') END, "       \
    "path.place, path.part, path.rank, path.operation, path.from_ns, path.to_ns "                                      \
    "FROM critical_path AS path JOIN operation ON operation.id = path.operation JOIN step ON step.id = path.step "     \
    "WHERE path.step = ?1 "

static const struct listing parts = {
    "critical_path",
    PARTS "ORDER BY path.place",
    part_columns,
    COUNT(part_columns),
};

static const struct listing long_parts = {
    "critical_path",
    PARTS "AND (path.to_ns - path.from_ns) * 100 >= step.end_ns - step.start_ns ORDER BY path.place",
    part_columns,
    COUNT(part_columns),
};

static void say_cost(struct report *report, const struct store_query *query)
{
    char without[TEXT_NUMBER_BYTES];
    char cost[TEXT_NUMBER_BYTES];
    int64_t cost_ns = store_query_value(query, 1).integer;
    report_say(
        report, 0, "had rank %" PRId64 " added no more than is usual, the step would have taken %s: %s (%.0f %%) less",
        store_query_value(query, 0).integer, text_duration(without, store_query_value(query, 2).integer - cost_ns),
        text_duration(cost, cost_ns), store_query_value(query, 3).real);
}

int path_report_print(struct report *report, const struct store_value *step)
{
    int result = report->as_json ? report_list(report, &costs, step, 1, NULL)
                                 : report_each(report, COSTLIEST, step, 1, say_cost, NULL);
    if (result == 0 && !report->as_json) {
        report_break(report);
    }
    return result == 0 ? report_list(report, report->as_json ? &parts : &long_parts, step, 1, NULL) : result;
}
