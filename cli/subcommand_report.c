/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope report: the store as one page for a browser. */
#include "cli/output.h"
#include "cli/subcommand.h"
#include "report/page/page.h"
#include "report/report.h"
#include "report/subject/step_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct page_options {
    struct report_options report;
    const char *output;
    const char *steps;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct page_options, report),
    REPORT_OPTION_JSON(struct page_options, report),
    {
        .name = "output",
        .short_name = 'o',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct page_options, output),
        .argument = "FILE",
        .help = "where to write it, - is standard output",
    },
    {
        .name = "step",
        .short_name = 'n',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct page_options, steps),
        .argument = "A[..B]",
        .help = "the steps that get a time line (default: the worst ones and a usual one)",
    },
};

const struct option_program subcommand_report_program = {
    .name = "qpscope report",
    .summary = "Writes one HTML file: steps, verdicts, who was late when, time lines, queue pairs, what was lost.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "The page needs a browser and nothing else: no network, no server, no other file.\n"
                "Example:\n"
                "  qpscope report --store job.db --step 10..20 -o job.html\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

static void print_counts(const struct page_options *options, const struct page_counts *counts)
{
    if (options->report.json) {
        struct json json;
        json_init(&json, stdout);
        report_json_begin(&json);
        json_text(&json, "file", options->output);
        json_integer(&json, "steps", counts->steps);
        json_integer(&json, "detailed_steps", counts->detailed);
        json_object_end(&json);
    } else {
        fprintf(output_is_stdout(options->output) ? stderr : stdout,
                "%s: %" PRId64 " step%s, %" PRId64 " of them with a time line; open it in a browser\n", options->output,
                counts->steps, counts->steps == 1 ? "" : "s", counts->detailed);
    }
}

static const char *store_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int write_page(const struct page_options *options, const struct store_value range[2])
{
    struct report_options store = {.store = options->report.store};
    struct page_counts counts;
    struct report report;
    FILE *out = NULL;
    int result = report_open(&report, &store);
    if (result != 0) {
        return result;
    }
    result = range[0].kind == STORE_NULL ? 0 : step_report_check(&report, range);
    if (result == 0) {
        result = output_open(&out, options->output);
    }
    if (result == 0) {
        const struct page_source source = {.name = store_name(report_store_path(store.store))};
        result = page_write(&report, out, &source, range, &counts);
        int closed = output_close(&out, options->output, result == 0);
        result = result != 0 ? result : closed;
    }
    report_close(&report);
    if (result == 0) {
        print_counts(options, &counts);
    }
    return result;
}

int subcommand_report(int argc, char **argv)
{
    struct page_options options = {.output = "report.html"};
    struct store_value range[2] = {{.kind = STORE_NULL}, {.kind = STORE_NULL}};
    int exit_code;
    if (!subcommand_parse(&subcommand_report_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    if (options.report.json && output_is_stdout(options.output)) {
        fputs("qpscope report: --json and the page cannot both go to standard output\n"
              "Try 'qpscope report --help'.\n",
              stderr);
        return EXIT_CODE_USAGE;
    }
    if (options.steps != NULL) {
        range[0].kind = range[1].kind = STORE_INTEGER;
        if (subcommand_parse_steps(&subcommand_report_program, options.steps, &range[0].integer, &range[1].integer) !=
            0) {
            return EXIT_CODE_USAGE;
        }
    }
    return page_is_built() ? subcommand_exit(write_page(&options, range)) : EXIT_CODE_FAILURE;
}
