/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps as they end. The correlator analyses anew as records come, so that its newest step may still change: it is held
 * back until a later one is there, or nothing of it changed from one look to the next.
 */
#include "cli/live/step_stream.h"

#include <inttypes.h>
#include <stdio.h>

#include "report/form/text.h"
#include "report/subject/step_list.h"

#define NEWEST_START "SELECT max(start_ns) FROM step"

/* Differs when its end, its operations or its verdicts do. */
#define NEWEST_MARK                                                                                                    \
    "SELECT duration_ns + end_ns + 7 * operations + 11 * incomplete + coalesce((SELECT sum(size_ns + verdict.id) "     \
    "FROM verdict WHERE verdict.step = step.id), 0) FROM step ORDER BY start_ns DESC LIMIT 1"

void step_stream_init(struct step_stream *stream)
{
    *stream = (struct step_stream){.told_ns = -1, .newest_ns = -1};
}

/* Up to which start steps can be told now. */
static int settled_until(struct step_stream *stream, struct report *report, int64_t *until_ns)
{
    struct store_value start;
    struct store_value mark;
    int result = store_reader_number(report->store, NEWEST_START, NULL, 0, &start);
    if (result == 0) {
        result = store_reader_number(report->store, NEWEST_MARK, NULL, 0, &mark);
    }
    if (result != 0 || start.kind != STORE_INTEGER) {
        *until_ns = -1;
        return result;
    }
    bool is_same = stream->newest_ns == start.integer && stream->newest_mark == mark.integer;
    *until_ns = is_same ? start.integer : start.integer - 1;
    stream->newest_ns = start.integer;
    stream->newest_mark = mark.integer;
    return 0;
}

static void say_step(const struct report *report, const struct store_query *row)
{
    struct store_value rank = store_query_value(row, STEP_COLUMN_SLOWEST_RANK);
    struct store_value bound = store_query_value(row, STEP_COLUMN_LATE_BOUND_NS);
    struct store_value verdict = store_query_value(row, step_listing.columns_count - 1);
    char number[4][TEXT_NUMBER_BYTES] = {"", "", "", "unknown"};
    text_duration(number[0], store_query_value(row, STEP_COLUMN_DURATION_NS).integer);
    text_duration(number[1], store_query_value(row, STEP_COLUMN_BOUND_NS).integer);
    fprintf(report_out(report), "step %" PRId64 ": %s ±%s", store_query_value(row, STEP_COLUMN_NUMBER).integer,
            number[0], number[1]);
    if (rank.kind == STORE_INTEGER) {
        text_duration(number[2], store_query_value(row, STEP_COLUMN_LATE_NS).integer);
        if (bound.kind == STORE_INTEGER) {
            text_duration(number[3], bound.integer);
        }
        const char *on = store_query_value(row, STEP_COLUMN_SLOWEST_ON).text;
        fprintf(report_out(report), "; the latest was rank %" PRId64 "%s%s%s, by %s ±%s", rank.integer,
                on == NULL ? "" : " (", on == NULL ? "" : on, on == NULL ? "" : ")", number[2], number[3]);
    }
    fprintf(report_out(report), "%s%s\n", verdict.kind == STORE_TEXT ? "; " : "",
            verdict.kind == STORE_TEXT ? verdict.text : "");
}

static void write_json(struct json *json, const struct store_query *row, bool is_whole_line)
{
    if (is_whole_line) {
        report_json_begin(json);
    } else {
        json_object_begin(json, NULL);
    }
    column_json_row(step_listing.columns, step_listing.columns_count, row, json);
    json_object_end(json);
}

static int each_new(struct step_stream *stream, struct report *report, bool in_array)
{
    struct store_query *query = NULL;
    int64_t until_ns;
    int result = settled_until(stream, report, &until_ns);
    if (result != 0) {
        return result;
    }
    const struct store_value arguments[] = {store_integer(stream->told_ns), store_integer(until_ns)};
    result = store_query_open(&query, report->store, step_listing.sql, arguments, 2);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        stream->told_ns = store_query_value(query, STEP_COLUMN_START_NS).integer;
        if (report->as_json) {
            write_json(&report->json, query, !in_array);
        } else {
            say_step(report, query);
        }
    }
    store_query_close(&query);
    return result;
}

int step_stream_print(struct step_stream *stream, struct report *report)
{
    return each_new(stream, report, false);
}

int step_stream_json(struct step_stream *stream, struct report *report)
{
    return each_new(stream, report, true);
}
