/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope why: its options. */
#include "cli/subcommand.h"
#include "report/report.h"
#include "report/subject/why_report.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct why_options {
    struct report_options report;
    const char *step;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct why_options, report),
    REPORT_OPTION_JSON(struct why_options, report),
    REPORT_OPTION_STEP(struct why_options, step, "the step (default: the worst, after a summary over all)"),
};

const struct option_program subcommand_why_program = {
    .name = "qpscope why",
    .summary = "Why a step was slow: who was late or which link was slow, by how much, and what says so.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "Examples:\n"
                "  qpscope why              the worst step, and who was late over all steps\n"
                "  qpscope why --step 12    one step\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

int subcommand_why(int argc, char **argv)
{
    struct why_options options = {0};
    struct store_value wanted = {.kind = STORE_NULL};
    int exit_code;
    if (!subcommand_parse(&subcommand_why_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    if (options.step != NULL) {
        wanted.kind = STORE_INTEGER;
        if (subcommand_parse_number(&subcommand_why_program, "step", options.step, &wanted.integer) != 0) {
            return EXIT_CODE_USAGE;
        }
    }
    struct report report;
    int result = report_open(&report, &options.report);
    if (result == 0) {
        result = why_report_print(&report, &wanted);
        report_close(&report);
    }
    return subcommand_exit(result);
}
