/* SPDX-License-Identifier: BSD-2-Clause */
/* One step of the store. */
#include "cli/step_report.h"

#include <errno.h>
#include <inttypes.h>

#include "cli/text.h"
#include "wire/log.h"

#define WORST_STEP                                                                                                     \
    "SELECT step.id FROM step LEFT JOIN (SELECT step, max(size_ns) AS size_ns FROM verdict GROUP BY step) AS judged "  \
    "ON judged.step = step.id ORDER BY judged.size_ns DESC NULLS LAST, step.late_ns DESC NULLS LAST, "                 \
    "step.duration_ns DESC, step.id LIMIT 1"

static const struct column columns[] = {
    {"step", NULL, COLUMN_INTEGER},          {"start_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},        {"duration_ns", NULL, COLUMN_INTEGER},
    {"bound_ns", NULL, COLUMN_INTEGER},      {"operations", NULL, COLUMN_INTEGER},
    {"incomplete", NULL, COLUMN_INTEGER},    {"partial", NULL, COLUMN_FLAG},
    {"slowest_rank", NULL, COLUMN_INTEGER},  {"late_ns", NULL, COLUMN_INTEGER},
    {"late_bound_ns", NULL, COLUMN_INTEGER}, {"late_operation", NULL, COLUMN_INTEGER},
};

static const struct listing row = {
    "step",
    "SELECT id, start_ns, end_ns, duration_ns, bound_ns, operations, incomplete, partial, slowest_rank, late_ns, "
    "late_bound_ns, late_operation FROM step WHERE id = ?1",
    columns,
    sizeof(columns) / sizeof(columns[0]),
};

int step_report_choose(struct report *report, const struct store_value *wanted, struct store_value *step)
{
    static const char existing[] = "SELECT id FROM step WHERE id = ?1";
    bool named = wanted->kind == STORE_INTEGER;
    struct store_value found;
    int result = store_reader_number(report->store, named ? existing : WORST_STEP, wanted, named ? 1 : 0, &found);
    if (result != 0) {
        return result;
    }
    if (named && found.kind == STORE_NULL) {
        return log_error_return(-ENOENT, "there is no step %" PRId64 " in the store: qpscope steps lists them",
                                wanted->integer);
    }
    *step = found;
    return 0;
}

int step_report_check(struct report *report, const struct store_value range[2])
{
    struct store_value found;
    int result =
        store_reader_number(report->store, "SELECT min(id) FROM step WHERE id BETWEEN ?1 AND ?2", range, 2, &found);
    if (result == 0 && found.kind == STORE_NULL) {
        return log_error_return(-ENOENT,
                                "there is no step %" PRId64 " to %" PRId64 " in the store: qpscope steps lists "
                                "them",
                                range[0].integer, range[1].integer);
    }
    return result;
}

static void say_step(struct report *report, const struct store_query *query)
{
    char duration[TEXT_NUMBER_BYTES];
    char bound[TEXT_NUMBER_BYTES];
    report_say(report, 0, "step %" PRId64 " took %s ±%s, with %" PRId64 " operations, %" PRId64 " of them incomplete%s",
               store_query_value(query, 0).integer, text_duration(duration, store_query_value(query, 3).integer),
               text_duration(bound, store_query_value(query, 4).integer), store_query_value(query, 5).integer,
               store_query_value(query, 6).integer,
               store_query_value(query, 7).integer != 0 ? "; its start was not seen" : "");
}

int step_report_print(struct report *report, const struct store_value *step)
{
    return report->as_json ? report_json_row(report, &row, step, 1)
                           : report_each(report, row.sql, step, 1, say_step, NULL);
}
