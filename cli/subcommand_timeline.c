/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope timeline: its options. */
#include "cli/subcommand.h"
#include "report/report.h"
#include "report/subject/timeline_report.h"

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

const struct option_program subcommand_timeline_program = {
    .name = "qpscope timeline",
    .summary = "A step in time: what each rank did when, a lane a rank and communicator.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "An operation is drawn with the symbol of its place in the step: dots from its enqueue until the rank\n"
                "has arrived, the symbol from there to its last data; '?' where the arrival is not known.\n"
                "Example:\n"
                "  qpscope timeline --step 12\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

int subcommand_timeline(int argc, char **argv)
{
    struct timeline_options options = {0};
    struct store_value wanted = {.kind = STORE_NULL};
    int exit_code;
    if (!subcommand_parse(&subcommand_timeline_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    if (options.step != NULL) {
        wanted.kind = STORE_INTEGER;
        if (subcommand_parse_number(&subcommand_timeline_program, "step", options.step, &wanted.integer) != 0) {
            return EXIT_CODE_USAGE;
        }
    }
    struct report report;
    int result = report_open(&report, &options.report);
    if (result == 0) {
        result = timeline_report_print(&report, &wanted);
        report_close(&report);
    }
    return subcommand_exit(result);
}
