/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope timeline: a step as lanes of text, a lane a rank and communicator, and its operations as a table. */
#include "report/subject/timeline_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/form/chart.h"
#include "report/form/text.h"
#include "report/subject/hang.h"
#include "report/subject/hang_report.h"
#include "report/subject/loss.h"
#include "report/subject/rank_place.h"
#include "report/subject/step_report.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct column operation_columns[] = {
    {NULL, "op", COLUMN_TEXT},
    {"place", NULL, COLUMN_INTEGER},
    {"operation", NULL, COLUMN_INTEGER},
    {"kind", "kind", COLUMN_TEXT},
    {"communicator", "comm", COLUMN_INTEGER},
    {"buffer_bytes", "buffer", COLUMN_BYTES},
    {NULL, "start ms", COLUMN_MS},
    {NULL, "all there", COLUMN_MS},
    {NULL, "end ms", COLUMN_MS},
    {"latest_rank", "latest", COLUMN_INTEGER},
    {"latest_on", "on", COLUMN_TEXT | COLUMN_SPARE},
    {"late_ns", "late us", COLUMN_US},
    {"status", "status", COLUMN_TEXT},
    {"algorithm", NULL, COLUMN_TEXT},
    {"start_ns", NULL, COLUMN_INTEGER},
    {"last_arrival_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},
    {"hangs", NULL, COLUMN_FLAG},
};

/* Of a hang those that belong to no step have no place: they are counted. */
#define HANG_PLACE "(dense_rank() OVER (ORDER BY o.start_ns, o.id) - 1)"

#define OPERATIONS(scope, place, begin)                                                                                \
    "WITH latest AS (SELECT operation, rank, late_ns, row_number() OVER (PARTITION BY operation ORDER BY late_ns "     \
    "DESC, rank) AS n FROM rank_operation WHERE late_ns IS NOT NULL AND operation IN (SELECT o.id FROM operation AS "  \
    "o WHERE " scope ")), placed AS (SELECT o.*, " place " AS placed FROM " HANG_OPERATIONS "AS o WHERE " scope ") "   \
    "SELECT CASE WHEN o.placed < length('" CHART_SYMBOLS "') THEN substr('" CHART_SYMBOLS                              \
    "', o.placed + 1, 1) ELSE '*' END, o.placed, o.id, o.kind, o.communicator, o.buffer_bytes, "                       \
    "o.start_ns - " begin ", iif(hangs, NULL, o.last_arrival_ns - " begin "), iif(hangs, NULL, o.end_ns - " begin      \
    "), latest.rank, place.name, latest.late_ns, o.status, o.algorithm, o.start_ns, iif(hangs, NULL, "                 \
    "o.last_arrival_ns), iif(hangs, NULL, o.end_ns), hangs FROM placed AS o LEFT JOIN latest ON latest.operation = "   \
    "o.id AND latest.n = 1 AND NOT hangs LEFT JOIN " RANK_PLACES                                                       \
    "AS place ON place.rank = latest.rank ORDER BY o.placed, o.id"

static const struct listing operations = {
    "operations",
    OPERATIONS("o.step = ?1", "o.place", "(SELECT start_ns FROM step WHERE id = ?1)"),
    operation_columns,
    COUNT(operation_columns),
};

static const struct listing hang_operations = {
    "operations",
    OPERATIONS(HANG_SCOPE("o"), HANG_PLACE, "(SELECT " HANG_FROM ")"),
    operation_columns,
    COUNT(operation_columns),
};

static const struct column rank_columns[] = {
    {"rank", NULL, COLUMN_INTEGER},
    {"communicator", NULL, COLUMN_INTEGER},
    {"place", NULL, COLUMN_INTEGER},
    {"operation", NULL, COLUMN_INTEGER},
    {"kind", NULL, COLUMN_TEXT},
    {"enqueued_ns", NULL, COLUMN_INTEGER},
    {"host_ready_ns", NULL, COLUMN_INTEGER},
    {"gpu_ready_ns", NULL, COLUMN_INTEGER},
    {"gpu_ready_known", NULL, COLUMN_FLAG},
    {"arrival_ns", NULL, COLUMN_INTEGER},
    {"arrival_of", NULL, COLUMN_TEXT},
    {"late_ns", NULL, COLUMN_INTEGER},
    {"first_data_ns", NULL, COLUMN_INTEGER},
    {"last_data_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},
    {"active_ns", NULL, COLUMN_INTEGER},
    {"expected_bytes", NULL, COLUMN_INTEGER},
    {"observed_bytes", NULL, COLUMN_INTEGER},
    {"status", NULL, COLUMN_TEXT},
    {"hangs", NULL, COLUMN_FLAG},
};

#define RANKS(scope, place)                                                                                            \
    "SELECT r.rank, o.communicator, " place ", o.id, o.kind, r.enqueued_ns, r.host_ready_ns, r.gpu_ready_ns, "         \
    "r.gpu_ready_known, r.arrival_ns, r.arrival_of, iif(hangs, NULL, r.late_ns), r.first_data_ns, r.last_data_ns, "    \
    "iif(hangs, NULL, r.end_ns), r.active_ns, r.expected_bytes, r.observed_bytes, r.status, hangs FROM "               \
    "rank_operation AS r JOIN " HANG_OPERATIONS "AS o ON o.id = r.operation WHERE " scope                              \
    " ORDER BY r.rank IS NULL, r.rank, o.communicator, o.start_ns, o.place, o.id, r.id"

static const struct listing ranks = {
    "ranks",
    RANKS("o.step = ?1", "o.place"),
    rank_columns,
    COUNT(rank_columns),
};

static const struct listing hang_ranks = {
    "ranks",
    RANKS(HANG_SCOPE("o"), HANG_PLACE),
    rank_columns,
    COUNT(rank_columns),
};

enum bar_column {
    BAR_RANK,
    BAR_COMMUNICATOR,
    BAR_PLACE,
    BAR_FROM,
    BAR_ARRIVAL,
    BAR_END,
    BAR_HANGS, /* from BAR_END on, the last sign of it, it waits */
    BAR_NAME,
};

#define BARS                                                                                                           \
    "SELECT r.rank, o.communicator, o.place, coalesce(r.enqueued_ns, r.first_data_ns), r.arrival_ns, r.end_ns, 0, "    \
    "place.name FROM rank_operation AS r JOIN operation AS o ON o.id = r.operation "                                   \
    "LEFT JOIN " RANK_PLACES "AS place ON place.rank = r.rank WHERE o.step = ?1 "                                      \
    "ORDER BY r.rank IS NULL, r.rank, o.communicator, o.place, o.id, r.id"

#define NAMED_MEMBERS                                                                                                  \
    "SELECT member.rank, member.communicator, 0, (SELECT max(coalesce(before.end_ns, before.enqueued_ns)) FROM "       \
    "rank_operation AS before WHERE before.rank = member.rank), NULL, NULL, 2 FROM member JOIN verdict "               \
    "ON " HANG_IS_OF(                                                                                                  \
        "member.rank") " JOIN operation ON operation.id = verdict.operation AND operation.communicator = "             \
                       "member.communicator WHERE verdict.step IS NULL AND NOT EXISTS (SELECT 1 FROM rank_operation "  \
                       "AS own WHERE "                                                                                 \
                       "own.operation = operation.id AND own.rank = member.rank)"

/* Who is missing has a bar too: from the last sign of it on. */
#define HANG_BARS                                                                                                      \
    "WITH bar AS (SELECT r.rank, o.communicator, " HANG_PLACE " AS place, coalesce(r.enqueued_ns, r.first_data_ns) "   \
    "AS from_ns, r.arrival_ns, iif(hangs, max(coalesce(r.arrival_ns, r.enqueued_ns), coalesce(r.end_ns, 0)), "         \
    "r.end_ns), iif(hangs, 1 + " HANG_NAMES(                                                                           \
        "r.rank") ", 0) FROM rank_operation AS r JOIN " HANG_OPERATIONS                                                \
                  "AS o ON o.id = r.operation WHERE " HANG_SCOPE(                                                      \
                      "o") " UNION ALL " NAMED_MEMBERS ") SELECT bar.*, name.name FROM bar LEFT JOIN " RANK_PLACES     \
                           "AS name ON name.rank = bar.rank ORDER BY bar.rank IS NULL, bar.rank, bar.communicator, "   \
                           "from_ns, place"

/* What is drawn: a step, or what hangs. Each statement has the step as its only argument. */
struct span {
    const char *from;
    const char *to;
    const char *bars;
    const struct listing *ranks;
    const struct listing *operations;
};

static const struct span step_span = {
    "SELECT min(start_ns, (SELECT min(start_ns) FROM operation WHERE step = ?1)) FROM step WHERE id = ?1",
    "SELECT max(end_ns, coalesce((SELECT max(end_ns) FROM operation WHERE step = ?1), end_ns)) FROM step WHERE id = ?1",
    BARS,
    &ranks,
    &operations,
};

static const struct span hang_span = {
    "SELECT " HANG_FROM, "SELECT " HANG_TO, HANG_BARS, &hang_ranks, &hang_operations,
};

#define LABEL_BYTES        96
#define LABEL_COLUMNS      18 /* "rank 12, comm 3  |" */
#define LABEL_COLUMNS_WIDE 38 /* "rank 12, comm 3, node1, GPU 3f:00.0  |" */
#define WIDE_FROM          90

struct drawing {
    struct chart_scale scale;
    struct chart_lane lane;
    char label[LABEL_BYTES]; /* of the lane being drawn; empty before the first */
    size_t label_columns;
};

static void print_lane(const struct drawing *drawing)
{
    if (drawing->label[0] != '\0') {
        printf("%-*s|%s|\n", (int)drawing->label_columns - 1, drawing->label, drawing->lane.text);
    }
}

/* The host's name comes from outside, and what is too long would move the lane. */
static void label_of(const struct drawing *drawing, const struct store_query *query, char label[LABEL_BYTES])
{
    struct store_value rank = store_query_value(query, BAR_RANK);
    struct store_value name = store_query_value(query, BAR_NAME);
    char number[TEXT_NUMBER_BYTES] = "?";
    char *clean = name.kind == STORE_TEXT ? text_clean(name.text) : NULL;
    if (rank.kind == STORE_INTEGER) {
        snprintf(number, sizeof(number), "%" PRId64, rank.integer);
    }
    int length = snprintf(label, LABEL_BYTES, "rank %s, comm %" PRId64, number,
                          store_query_value(query, BAR_COMMUNICATOR).integer);
    if (clean != NULL && drawing->label_columns > LABEL_COLUMNS) {
        snprintf(label + length, LABEL_COLUMNS_WIDE - 1 - (size_t)length, ", %s", clean);
    }
    free(clean);
}

/* What hangs is drawn up to its last sign; from there on the rank waits, or is waited for. */
static void draw_hanging(struct drawing *drawing, const struct store_query *query, int64_t from_ns)
{
    struct store_value end = store_query_value(query, BAR_END);
    bool is_named = store_query_value(query, BAR_HANGS).integer == 2;
    chart_fill(&drawing->lane, &drawing->scale, end.kind == STORE_INTEGER ? end.integer : from_ns, drawing->scale.to_ns,
               is_named ? '!' : '~');
}

static void draw_bar(struct drawing *drawing, const struct store_query *query)
{
    struct store_value from = store_query_value(query, BAR_FROM);
    struct store_value arrival = store_query_value(query, BAR_ARRIVAL);
    struct store_value end = store_query_value(query, BAR_END);
    int64_t end_ns = end.kind == STORE_INTEGER ? end.integer : drawing->scale.to_ns;
    bool hangs = store_query_value(query, BAR_HANGS).integer != 0;
    if (from.kind == STORE_NULL) {
        return;
    }
    if (arrival.kind == STORE_INTEGER) {
        chart_bar(&drawing->lane, &drawing->scale, arrival.integer, end_ns,
                  chart_symbol(store_query_value(query, BAR_PLACE).integer));
        chart_fill(&drawing->lane, &drawing->scale, from.integer, arrival.integer, '.');
    } else if (!hangs) {
        chart_fill(&drawing->lane, &drawing->scale, from.integer, end_ns, '?');
    }
    if (hangs) {
        draw_hanging(drawing, query, from.integer);
    }
}

static int draw_lanes(struct report *report, struct drawing *drawing, const struct span *span,
                      const struct store_value *step)
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, report->store, span->bars, step, step != NULL);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        char label[LABEL_BYTES];
        label_of(drawing, query, label);
        if (strcmp(label, drawing->label) != 0) {
            print_lane(drawing);
            memcpy(drawing->label, label, LABEL_BYTES);
            chart_lane_init(&drawing->lane, &drawing->scale);
        }
        draw_bar(drawing, query);
    }
    print_lane(drawing);
    store_query_close(&query);
    return result;
}

static int print_chart(struct report *report, const struct span *span, const struct store_value *step)
{
    struct drawing drawing = {.label = ""};
    struct store_value from;
    struct store_value to;
    int result = store_reader_number(report->store, span->from, step, step != NULL, &from);
    if (result == 0) {
        result = store_reader_number(report->store, span->to, step, step != NULL, &to);
    }
    if (result != 0) {
        return result;
    }
    drawing.label_columns = report->terminal.width >= WIDE_FROM ? LABEL_COLUMNS_WIDE : LABEL_COLUMNS;
    size_t width =
        report->terminal.width > drawing.label_columns + 11 ? report->terminal.width - drawing.label_columns - 1 : 10;
    drawing.scale.columns = width < CHART_COLUMNS_MAX ? width : CHART_COLUMNS_MAX;
    drawing.scale.from_ns = from.integer;
    drawing.scale.to_ns = to.integer;
    char whole[TEXT_NUMBER_BYTES];
    char column[TEXT_NUMBER_BYTES];
    int64_t span_ns = to.integer - from.integer;
    report_say(report, 0, "a lane shows %s, a column %s%s", text_duration(whole, span_ns),
               text_duration(column, span_ns / (int64_t)drawing.scale.columns),
               span == &hang_span ? "; ~ waits in what hangs, ! is waited for" : "");
    return draw_lanes(report, &drawing, span, step);
}

/* `step` NULL: what hangs. */
static int print_span(struct report *report, const struct span *span, const struct store_value *step)
{
    int result = step == NULL ? hang_report_print(report) : step_report_print(report, step);
    if (result == 0) {
        result = report->as_json ? report_list(report, span->ranks, step, step != NULL, NULL)
                                 : print_chart(report, span, step);
    }
    return result == 0 ? report_list(report, span->operations, step, step != NULL, NULL) : result;
}

int timeline_report_print_hang(struct report *report)
{
    int result = print_span(report, &hang_span, NULL);
    return result == 0 ? loss_report_hang(report) : result;
}

int timeline_report_print(struct report *report, const struct store_value *wanted)
{
    struct store_value step;
    bool hangs = false;
    int result = step_report_choose(report, wanted, &step);
    if (result == 0 && wanted->kind == STORE_NULL) {
        result = hang_report_find(report, &hangs);
    }
    if (result != 0) {
        return result;
    }
    if (hangs) {
        return timeline_report_print_hang(report);
    }
    if (step.kind == STORE_NULL) {
        report_say(report, 0, "no steps yet: none of the job's operations has been seen to repeat");
    }
    if (step.kind == STORE_NULL && !report->as_json) {
        return 0;
    }
    result = print_span(report, &step_span, &step);
    return result == 0 ? loss_report_step(report, step.integer) : result;
}
