/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope timeline: a step as lanes of text, a lane a rank and communicator, and its operations as a table. */
#include "cli/chart.h"
#include "cli/loss.h"
#include "cli/report.h"
#include "cli/step_report.h"
#include "cli/subcommand.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct timeline_options {
    struct report_options report;
    const char *step;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct timeline_options, report),
    REPORT_OPTION_JSON(struct timeline_options, report),
    REPORT_OPTION_STEP(struct timeline_options, step, "the step (default: the worst)"),
};

static const struct option_program program = {
    .name = "qpscope timeline",
    .summary = "A step in time: what each rank did when, a lane a rank and communicator.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "An operation is drawn with the symbol of its place in the step: dots from its enqueue until the rank\n"
                "has arrived, the symbol from there to its last data; '?' where the arrival is not known.\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

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
    {"late_ns", "late us", COLUMN_US},
    {"status", "status", COLUMN_TEXT},
    {"algorithm", NULL, COLUMN_TEXT},
    {"start_ns", NULL, COLUMN_INTEGER},
    {"last_arrival_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},
};

static const struct listing operations = {
    "operations",
    "WITH latest AS (SELECT operation, rank, late_ns, row_number() OVER (PARTITION BY operation ORDER BY late_ns DESC, "
    "rank) AS n FROM rank_operation WHERE late_ns IS NOT NULL AND operation IN (SELECT id FROM operation WHERE step = "
    "?1)) "
    "SELECT CASE WHEN o.place < length('" CHART_SYMBOLS "') THEN substr('" CHART_SYMBOLS
    "', o.place + 1, 1) ELSE '*' END, o.place, o.id, o.kind, o.communicator, o.buffer_bytes, "
    "o.start_ns - step.start_ns, o.last_arrival_ns - step.start_ns, o.end_ns - step.start_ns, latest.rank, "
    "latest.late_ns, o.status, o.algorithm, o.start_ns, o.last_arrival_ns, o.end_ns "
    "FROM operation AS o JOIN step ON step.id = o.step LEFT JOIN latest ON latest.operation = o.id AND latest.n = 1 "
    "WHERE o.step = ?1 ORDER BY o.place, o.id",
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
};

static const struct listing ranks = {
    "ranks",
    "SELECT r.rank, o.communicator, o.place, o.id, o.kind, r.enqueued_ns, r.host_ready_ns, r.gpu_ready_ns, "
    "r.gpu_ready_known, r.arrival_ns, r.arrival_of, r.late_ns, r.first_data_ns, r.last_data_ns, r.end_ns, r.active_ns, "
    "r.expected_bytes, r.observed_bytes, r.status "
    "FROM rank_operation AS r JOIN operation AS o ON o.id = r.operation WHERE o.step = ?1 "
    "ORDER BY r.rank IS NULL, r.rank, o.communicator, o.place, o.id, r.id",
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
};

#define BARS                                                                                                           \
    "SELECT r.rank, o.communicator, o.place, coalesce(r.enqueued_ns, r.first_data_ns), r.arrival_ns, r.end_ns "        \
    "FROM rank_operation AS r JOIN operation AS o ON o.id = r.operation WHERE o.step = ?1 "                            \
    "ORDER BY r.rank IS NULL, r.rank, o.communicator, o.place, o.id, r.id"

#define SCALE_FROM "SELECT min(start_ns, (SELECT min(start_ns) FROM operation WHERE step = ?1)) FROM step WHERE id = ?1"
#define SCALE_TO                                                                                                       \
    "SELECT max(end_ns, coalesce((SELECT max(end_ns) FROM operation WHERE step = ?1), end_ns)) FROM step WHERE id = "  \
    "?1"

#define LABEL_BYTES   48
#define LABEL_COLUMNS 18 /* "rank 12, comm 3  |" */

struct drawing {
    struct chart_scale scale;
    struct chart_lane lane;
    char label[LABEL_BYTES]; /* of the lane being drawn; empty before the first */
};

static void print_lane(const struct drawing *drawing)
{
    if (drawing->label[0] != '\0') {
        printf("%-*s|%s|\n", LABEL_COLUMNS - 1, drawing->label, drawing->lane.text);
    }
}

static void label_of(const struct store_query *query, char label[LABEL_BYTES])
{
    struct store_value rank = store_query_value(query, BAR_RANK);
    char number[TEXT_NUMBER_BYTES] = "?";
    if (rank.kind == STORE_INTEGER) {
        snprintf(number, sizeof(number), "%" PRId64, rank.integer);
    }
    snprintf(label, LABEL_BYTES, "rank %s, comm %" PRId64, number, store_query_value(query, BAR_COMMUNICATOR).integer);
}

static void draw_bar(struct drawing *drawing, const struct store_query *query)
{
    struct store_value from = store_query_value(query, BAR_FROM);
    struct store_value arrival = store_query_value(query, BAR_ARRIVAL);
    struct store_value end = store_query_value(query, BAR_END);
    int64_t end_ns = end.kind == STORE_INTEGER ? end.integer : drawing->scale.to_ns;
    if (from.kind == STORE_NULL) {
        return;
    }
    if (arrival.kind == STORE_NULL) {
        chart_fill(&drawing->lane, &drawing->scale, from.integer, end_ns, '?');
        return;
    }
    chart_bar(&drawing->lane, &drawing->scale, arrival.integer, end_ns,
              chart_symbol(store_query_value(query, BAR_PLACE).integer));
    chart_fill(&drawing->lane, &drawing->scale, from.integer, arrival.integer, '.');
}

static int draw_lanes(struct report *report, struct drawing *drawing, const struct store_value *step)
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, report->store, BARS, step, 1);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        char label[LABEL_BYTES];
        label_of(query, label);
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

static int print_chart(struct report *report, const struct store_value *step)
{
    struct drawing drawing = {.label = ""};
    struct store_value from;
    struct store_value to;
    int result = store_reader_number(report->store, SCALE_FROM, step, 1, &from);
    if (result == 0) {
        result = store_reader_number(report->store, SCALE_TO, step, 1, &to);
    }
    if (result != 0) {
        return result;
    }
    size_t width = report->terminal.width > LABEL_COLUMNS + 11 ? report->terminal.width - LABEL_COLUMNS - 1 : 10;
    drawing.scale.columns = width < CHART_COLUMNS_MAX ? width : CHART_COLUMNS_MAX;
    drawing.scale.from_ns = from.integer;
    drawing.scale.to_ns = to.integer;
    char whole[TEXT_NUMBER_BYTES];
    char column[TEXT_NUMBER_BYTES];
    int64_t span_ns = to.integer - from.integer;
    report_say(report, 0, "a lane shows %s, a column %s", text_duration(whole, span_ns),
               text_duration(column, span_ns / (int64_t)drawing.scale.columns));
    return draw_lanes(report, &drawing, step);
}

int subcommand_timeline_print(struct report *report, const struct store_value *wanted)
{
    struct store_value step;
    int result = step_report_choose(report, wanted, &step);
    if (result != 0) {
        return result;
    }
    if (step.kind == STORE_NULL) {
        report_say(report, 0, "no steps yet: none of the job's operations has been seen to repeat");
    }
    if (step.kind == STORE_NULL && !report->as_json) {
        return 0;
    }
    result = step_report_print(report, &step);
    if (result == 0) {
        result = report->as_json ? report_list(report, &ranks, &step, 1, NULL) : print_chart(report, &step);
    }
    if (result == 0) {
        result = report_list(report, &operations, &step, 1, NULL);
    }
    return result == 0 ? loss_report_step(report, step.integer) : result;
}

int subcommand_timeline(int argc, char **argv)
{
    struct timeline_options options = {0};
    struct store_value wanted = {.kind = STORE_NULL};
    int exit_code;
    if (!subcommand_parse(&program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    if (options.step != NULL) {
        wanted.kind = STORE_INTEGER;
        if (subcommand_parse_number(&program, "step", options.step, &wanted.integer) != 0) {
            return EXIT_CODE_USAGE;
        }
    }
    struct report report;
    int result = report_open(&report, &options.report);
    if (result == 0) {
        result = subcommand_timeline_print(&report, &wanted);
        report_close(&report);
    }
    return subcommand_exit(result);
}
