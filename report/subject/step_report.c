/* SPDX-License-Identifier: BSD-2-Clause */
/* One step of the store. */
#include "report/subject/step_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/form/text.h"
#include "report/subject/step_choice.h"
#include "report/subject/utc.h"
#include "wire/log.h"

#define WORST_STEP                                                                                                     \
    "SELECT step.id FROM step LEFT JOIN (SELECT step, max(size_ns) AS size_ns FROM verdict GROUP BY step) AS judged "  \
    "ON judged.step = step.id ORDER BY " WORSE_FIRST("step", "judged.size_ns") " LIMIT 1"

static const struct column columns[] = {
    {"step", NULL, COLUMN_INTEGER},
    {"start_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},
    {"duration_ns", NULL, COLUMN_INTEGER},
    {"bound_ns", NULL, COLUMN_INTEGER},
    {"operations", NULL, COLUMN_INTEGER},
    {"incomplete", NULL, COLUMN_INTEGER},
    {"partial", NULL, COLUMN_FLAG},
    {"slowest_rank", NULL, COLUMN_INTEGER},
    {"late_ns", NULL, COLUMN_INTEGER},
    {"late_bound_ns", NULL, COLUMN_INTEGER},
    {"late_operation", NULL, COLUMN_INTEGER},
    {"kind", NULL, COLUMN_TEXT},
    {"started_utc", NULL, COLUMN_TEXT},
    {"utc_bound_ns", NULL, COLUMN_INTEGER},
    {"utc_host", NULL, COLUMN_TEXT},
};

static const struct listing row = {
    "step",
    "SELECT id, start_ns, end_ns, duration_ns, bound_ns, operations, incomplete, partial, slowest_rank, late_ns, "
    "late_bound_ns, late_operation, kind, " UTC_TEXT("start_ns") ", (SELECT bound_ns FROM " UTC_SOURCE
                                                                 "), (SELECT host FROM " UTC_SOURCE
                                                                 ") FROM step WHERE id = ?1",
    columns,
    sizeof(columns) / sizeof(columns[0]),
};

static const struct column healthy_columns[] = {
    {"step", NULL, COLUMN_INTEGER},
    {"duration_ns", NULL, COLUMN_INTEGER},
    {"of_steps", NULL, COLUMN_INTEGER},
};

/* What a bad step is to be compared with. */
static const struct listing healthy_row = {
    "healthy",
    "SELECT id, duration_ns, of FROM " HEALTHY_STEP,
    healthy_columns,
    sizeof(healthy_columns) / sizeof(healthy_columns[0]),
};

#define OTHER_HEALTHY "SELECT id, duration_ns, of FROM " HEALTHY_STEP "WHERE id <> ?1"

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

static void say_begin(struct report *report, const struct store_query *query)
{
    char number[TEXT_NUMBER_BYTES];
    char bound[TEXT_NUMBER_BYTES + 8] = "";
    const char *kind = store_query_value(query, 12).text;
    struct store_value started = store_query_value(query, 13);
    struct store_value bound_ns = store_query_value(query, 14);
    struct store_value host = store_query_value(query, 15);
    bool is_training = strcmp(kind, "training") == 0;
    if (started.kind == STORE_NULL) {
        return;
    }
    if (bound_ns.kind == STORE_INTEGER) {
        snprintf(bound, sizeof(bound), " ±%s", text_duration(number, bound_ns.integer));
    }
    report_say(report, 2, "it began at %s%s (UTC%s%s)%s%s", started.text, bound,
               host.kind == STORE_TEXT ? ", by the CLOCK_REALTIME of " : ", its error bound is not known",
               host.kind == STORE_TEXT ? host.text : "", is_training ? "" : "; no training, but ",
               is_training ? "" : kind);
}

static void say_step(struct report *report, const struct store_query *query)
{
    char duration[TEXT_NUMBER_BYTES];
    char bound[TEXT_NUMBER_BYTES];
    report_say(report, 0, "step %" PRId64 " took %s ±%s, with %" PRId64 " operations, %" PRId64 " of them incomplete%s",
               store_query_value(query, 0).integer, text_duration(duration, store_query_value(query, 3).integer),
               text_duration(bound, store_query_value(query, 4).integer), store_query_value(query, 5).integer,
               store_query_value(query, 6).integer,
               store_query_value(query, 7).integer != 0 ? "; something of it may have been cut out of the memory" : "");
    say_begin(report, query);
}

/* One to compare with; the page has its own way there. */
static void say_healthy(struct report *report, const struct store_query *query)
{
    char duration[TEXT_NUMBER_BYTES];
    report_say(report, 2,
               "to compare with: step %" PRId64 ", %s, the median of the %" PRId64
               " whole training steps without a verdict: qpscope timeline --step %" PRId64,
               store_query_value(query, 0).integer, text_duration(duration, store_query_value(query, 1).integer),
               store_query_value(query, 2).integer, store_query_value(query, 0).integer);
}

int step_report_print(struct report *report, const struct store_value *step)
{
    int result = report->as_json ? report_json_row(report, &row, step, 1)
                                 : report_each(report, row.sql, step, 1, say_step, NULL);
    return result != 0       ? result
           : report->as_json ? report_json_row(report, &healthy_row, NULL, 0)
                             : report_each(report, OTHER_HEALTHY, step, 1, say_healthy, NULL);
}
