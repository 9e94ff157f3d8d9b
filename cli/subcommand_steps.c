/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope steps: a row a step, then what was lost. */
#include "cli/loss.h"
#include "cli/report.h"
#include "cli/subcommand.h"

#include <inttypes.h>

struct steps_options {
    struct report_options report;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct steps_options, report),
    REPORT_OPTION_JSON(struct steps_options, report),
};

static const struct option_program program = {
    .name = "qpscope steps",
    .summary = "The job's steps: how long each took, who was the latest in it, by how much and where.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "A duration is the median over the ranks; ± is its error bound from the clocks. 'late us' is how long\n"
                "after the other ranks' median the slowest rank arrived in the operation named beside it.\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

static const struct column step_columns[] = {
    {"step", "step", COLUMN_INTEGER},
    {"start_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},
    {"duration_ns", "duration ms", COLUMN_MS | COLUMN_BOUND},
    {"bound_ns", NULL, COLUMN_INTEGER},
    {"operations", "ops", COLUMN_INTEGER},
    {"incomplete", "incomplete", COLUMN_INTEGER},
    {"partial", NULL, COLUMN_FLAG},
    {"slowest_rank", "slowest", COLUMN_INTEGER},
    {"late_ns", "late us", COLUMN_US | COLUMN_BOUND},
    {"late_bound_ns", NULL, COLUMN_INTEGER},
    {NULL, "in operation", COLUMN_TEXT},
    {"late_operation", NULL, COLUMN_INTEGER},
    {"late_operation_kind", NULL, COLUMN_TEXT},
    {"late_operation_place", NULL, COLUMN_INTEGER},
    {"verdict", NULL, COLUMN_TEXT},
    {NULL, "verdict", COLUMN_TEXT},
};

static const struct listing steps = {
    "steps",
    "SELECT step.id, step.start_ns, step.end_ns, step.duration_ns, step.bound_ns, step.operations, step.incomplete, "
    "step.partial, step.slowest_rank, step.late_ns, step.late_bound_ns, "
    "operation.place || ': ' || operation.kind, step.late_operation, operation.kind, operation.place, "
    "(SELECT group_concat(class, ', ') FROM "
    "(SELECT DISTINCT class FROM verdict WHERE verdict.step = step.id ORDER BY class)), "
    "(SELECT group_concat(class || CASE WHEN rank IS NULL THEN ', all ranks' WHEN peer_rank IS NULL "
    "THEN ', rank ' || rank ELSE ', ' || rank || '->' || peer_rank END, '; ') FROM "
    "(SELECT * FROM verdict WHERE verdict.step = step.id ORDER BY size_ns DESC, id)) "
    "FROM step LEFT JOIN operation ON operation.id = step.late_operation ORDER BY step.id",
    step_columns,
    sizeof(step_columns) / sizeof(step_columns[0]),
};

static const struct column verdict_columns[] = {
    {"step", NULL, COLUMN_INTEGER},      {"class", NULL, COLUMN_TEXT},       {"rank", NULL, COLUMN_INTEGER},
    {"peer_rank", NULL, COLUMN_INTEGER}, {"device", NULL, COLUMN_TEXT},      {"operation", NULL, COLUMN_INTEGER},
    {"size_ns", NULL, COLUMN_INTEGER},   {"bound_ns", NULL, COLUMN_INTEGER}, {"confidence", NULL, COLUMN_REAL},
    {"evidence", NULL, COLUMN_TEXT},     {"more", NULL, COLUMN_TEXT},
};

static const struct listing verdicts = {
    "verdicts",
    "SELECT step, class, rank, peer_rank, device, operation, size_ns, bound_ns, confidence, evidence, more FROM "
    "verdict "
    "ORDER BY step, size_ns DESC, id",
    verdict_columns,
    sizeof(verdict_columns) / sizeof(verdict_columns[0]),
};

static int say_partial(struct report *report)
{
    struct store_value partial;
    int result = store_reader_number(report->store, "SELECT min(id) FROM step WHERE partial = 1", NULL, 0, &partial);
    if (result == 0 && partial.kind == STORE_INTEGER) {
        report_say(report, 0, "step %" PRId64 " is partial: its start was not seen", partial.integer);
    }
    return result;
}

static void say_hang(struct report *report, const struct store_query *query)
{
    (void)query;
    report_say(report, 0,
               "an operation was begun behind the last step and does not end: qpscope why says who is missing");
}

int subcommand_steps_print(struct report *report)
{
    size_t rows = 0;
    int result = report_list(report, &steps, NULL, 0, &rows);
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
        result = report_each(report, "SELECT 1 FROM verdict WHERE step IS NULL LIMIT 1", NULL, 0, say_hang, NULL);
    }
    return result == 0 ? loss_report(report) : result;
}

int subcommand_steps(int argc, char **argv)
{
    struct steps_options options = {0};
    int exit_code;
    if (!subcommand_parse(&program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    struct report report;
    int result = report_open(&report, &options.report);
    if (result == 0) {
        result = subcommand_steps_print(&report);
        report_close(&report);
    }
    return subcommand_exit(result);
}
