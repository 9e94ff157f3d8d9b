/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope steps: a row a step, then what was lost. */
#include "report/subject/step_list.h"

#include <inttypes.h>

#include "report/form/text.h"
#include "report/subject/hang.h"
#include "report/subject/loss.h"
#include "report/subject/rank_place.h"
#include "report/subject/utc.h"
#include "report/subject/verdict_words.h"

static const struct column step_columns[] = {
    {"step", "step", COLUMN_INTEGER},
    {"kind", NULL, COLUMN_TEXT},
    {"start_ns", NULL, COLUMN_INTEGER},
    {"started_utc", NULL, COLUMN_TEXT},
    {NULL, "began UTC", COLUMN_TEXT | COLUMN_SPARE},
    {"end_ns", NULL, COLUMN_INTEGER},
    {"duration_ns", "duration ms", COLUMN_MS | COLUMN_BOUND},
    {"bound_ns", NULL, COLUMN_INTEGER},
    {"operations", "ops", COLUMN_INTEGER | COLUMN_SPARE},
    {"incomplete", "incomplete", COLUMN_INTEGER | COLUMN_SPARE},
    {"partial", NULL, COLUMN_FLAG},
    {"slowest_rank", "slowest", COLUMN_INTEGER},
    {"slowest_on", "on", COLUMN_TEXT | COLUMN_SPARE},
    {"late_ns", "late us", COLUMN_US | COLUMN_BOUND},
    {"late_bound_ns", NULL, COLUMN_INTEGER},
    {NULL, "in operation", COLUMN_TEXT | COLUMN_SPARE},
    {"late_operation", NULL, COLUMN_INTEGER},
    {"late_operation_kind", NULL, COLUMN_TEXT},
    {"late_operation_place", NULL, COLUMN_INTEGER},
    {"verdict", NULL, COLUMN_TEXT},
    {NULL, "verdict", COLUMN_TEXT},
};

const struct listing step_listing = {
    "steps",
    "SELECT step.id, step.kind, step.start_ns, " UTC_TEXT("step.start_ns") ", substr(" UTC_TEXT(
        "step.start_ns") ", 12, 12), step.end_ns, step.duration_ns, step.bound_ns, step.operations, "
                         "step.incomplete, "
                         "step.partial, step.slowest_rank, place.name, step.late_ns, step.late_bound_ns, "
                         "operation.place || ': ' || operation.kind, step.late_operation, operation.kind, "
                         "operation.place, "
                         "(SELECT group_concat(class, ', ') FROM "
                         "(SELECT DISTINCT class FROM verdict WHERE verdict.step = step.id ORDER BY class)), "
                         "nullif(rtrim(CASE WHEN step.kind <> 'training' THEN '(' || step.kind || ') ' ELSE '' END || "
                         "coalesce("
                         "(SELECT group_concat(" VERDICT_WORDS(
                             "v") ", '; ') FROM "
                                  "(SELECT * FROM verdict WHERE verdict.step = step.id ORDER BY size_ns DESC, id) AS "
                                  "v), '')"
                                  " || iif(" HANG_IN(
                                      "step.id") ", '(hangs: it has not ended)', '')), '') "
                                                 "FROM step LEFT JOIN operation ON operation.id = step.late_operation "
                                                 "LEFT JOIN " RANK_PLACES "AS place ON place.rank = step.slowest_rank "
                                                 "WHERE (?1 IS NULL OR step.start_ns > ?1) AND (?2 IS NULL OR "
                                                 "step.start_ns <= ?2) ORDER BY step.id",
    step_columns,
    sizeof(step_columns) / sizeof(step_columns[0]),
};

static const struct column verdict_columns[] = {
    {"step", NULL, COLUMN_INTEGER},      {"class", NULL, COLUMN_TEXT},        {"rank", NULL, COLUMN_INTEGER},
    {"candidates", NULL, COLUMN_TEXT},   {"peer_rank", NULL, COLUMN_INTEGER}, {"device", NULL, COLUMN_TEXT},
    {"operation", NULL, COLUMN_INTEGER}, {"size_ns", NULL, COLUMN_INTEGER},   {"bound_ns", NULL, COLUMN_INTEGER},
    {"confidence", NULL, COLUMN_REAL},   {"evidence", NULL, COLUMN_TEXT},     {"more", NULL, COLUMN_TEXT},
};

static const struct listing verdicts = {
    "verdicts",
    "SELECT step, class, rank, candidates, peer_rank, device, operation, size_ns, bound_ns, confidence, evidence, more "
    "FROM "
    "verdict "
    "ORDER BY step, size_ns DESC, id",
    verdict_columns,
    sizeof(verdict_columns) / sizeof(verdict_columns[0]),
};

static const struct column past_columns[] = {
    {"steps", NULL, COLUMN_INTEGER},
    {"with_verdict", NULL, COLUMN_INTEGER},
    {"start_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},
};

/* What is left of steps whose detail is no longer held. */
static const struct listing past = {
    "past",
    "SELECT sum(steps), sum(with_verdict), min(start_ns), max(end_ns) FROM (SELECT count(*) AS steps, (SELECT "
    "count(DISTINCT step_start_ns) FROM past_verdict) AS with_verdict, min(start_ns) AS start_ns, max(end_ns) AS "
    "end_ns FROM past_step UNION ALL SELECT coalesce(sum(steps), 0), coalesce(sum(steps_with_verdict), 0), "
    "min(start_ns), max(end_ns) FROM past_summary)",
    past_columns,
    sizeof(past_columns) / sizeof(past_columns[0]),
};

static void say_past(struct report *report, const struct store_query *query)
{
    int64_t count = store_query_value(query, 0).integer;
    if (count != 0)
        report_say(report, 0,
                   "%" PRId64 " earlier steps, %" PRId64
                   " of them with a verdict, are kept without their detail: tables "
                   "past_step and past_verdict, the oldest only in sums: past_summary and past_blame",
                   count, store_query_value(query, 1).integer);
}

static int say_partial(struct report *report)
{
    struct store_value partial;
    int result = store_reader_number(report->store, "SELECT max(id) FROM step WHERE partial = 1", NULL, 0, &partial);
    if (result == 0 && partial.kind == STORE_INTEGER) {
        report_say(report, 0, "steps up to %" PRId64 " are partial: what came before was cut out of the memory",
                   partial.integer);
    }
    return result;
}

#define HANGS                                                                                                          \
    "SELECT kind, communicator, " HANG_TO                                                                              \
    " - start_ns, " UTC_TEXT("start_ns") ", (SELECT group_concat(coalesce(" RANK_NAMED(                                \
        "v.rank") ", 'one of ranks ' || v.candidates), ', ') FROM verdict AS v WHERE v.step IS NULL) "                 \
                  "FROM operation WHERE id = " HANG_OPERATION

static void say_hang(struct report *report, const struct store_query *query)
{
    char waited[TEXT_NUMBER_BYTES];
    struct store_value began = store_query_value(query, 3);
    struct store_value named = store_query_value(query, 4);
    report_say(report, 0,
               "HANG: %s on communicator %" PRId64 ", begun %s%s, has not ended for %s%s%s: qpscope why says who waits",
               store_query_value(query, 0).text, store_query_value(query, 1).integer,
               began.kind == STORE_TEXT ? "at " : "behind the last step", began.kind == STORE_TEXT ? began.text : "",
               text_duration(waited, store_query_value(query, 2).integer),
               named.kind == STORE_TEXT ? ", waiting for " : "", named.kind == STORE_TEXT ? named.text : "");
}

#define UTC_WORDS                                                                                                      \
    "SELECT substr(" UTC_TEXT("(SELECT min(start_ns) FROM step)") ", 1, 10), host, bound_ns FROM " UTC_SOURCE

static void say_utc(struct report *report, const struct store_query *query)
{
    char bound[TEXT_NUMBER_BYTES];
    report_say(report, 0, "UTC, from %s on, by the CLOCK_REALTIME of %s, ±%s", store_query_value(query, 0).text,
               store_query_value(query, 1).text, text_duration(bound, store_query_value(query, 2).integer));
}

int step_list_print(struct report *report)
{
    size_t rows = 0;
    int result = report_list(report, &step_listing, NULL, 0, &rows);
    if (result != 0) {
        return result;
    }
    result = report->as_json ? report_json_row(report, &past, NULL, 0)
                             : report_each(report, past.sql, NULL, 0, say_past, NULL);
    if (result != 0) {
        return result;
    }
    if (report->as_json) {
        result = report_list(report, &verdicts, NULL, 0, NULL);
    } else if (rows == 0) {
        report_say(report, 0, "no steps yet: none of the job's operations has been seen to repeat");
    } else {
        result = say_partial(report);
    }
    if (result == 0 && !report->as_json) {
        result = report_each(report, HANGS, NULL, 0, say_hang, NULL);
    }
    if (result == 0 && !report->as_json && rows > 0) {
        result = report_each(report, UTC_WORDS, NULL, 0, say_utc, NULL);
    }
    return result == 0 ? loss_report(report) : result;
}
