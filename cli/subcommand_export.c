/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope export: the store as a file that other programs read. */
#include "cli/output.h"
#include "cli/report.h"
#include "cli/step_report.h"
#include "cli/subcommand.h"
#include "cli/text.h"
#include "cli/trace.h"
#include "wire/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct export_options {
    struct report_options report;
    const char *output;
    const char *steps;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct export_options, report),
    REPORT_OPTION_JSON(struct export_options, report),
    {
        .name = "output",
        .short_name = 'o',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct export_options, output),
        .argument = "FILE",
        .help = "where to write it, - is standard output",
    },
    {
        .name = "step",
        .short_name = 'n',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct export_options, steps),
        .argument = "A[..B]",
        .help = "only these steps (default: all that is in the store)",
    },
};

static const struct option_program program = {
    .name = "qpscope export",
    .summary = "Writes a Perfetto trace: ranks with their operations, verdicts, the rate of each named flow.",
    .usage = "perfetto [OPTIONS]",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "Open the file at https://ui.perfetto.dev (it stays on your machine).\n"
                "Example:\n"
                "  qpscope export perfetto --step 10..20 -o slow.pftrace\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
    .positionals_max = 1,
};

static const struct {
    const char *key;
    const char *name;
    size_t offset;
} counts_shown[] = {
    {"steps", "steps", offsetof(struct trace_counts, steps)},
    {"slices", "operations of ranks", offsetof(struct trace_counts, slices)},
    {"left_out", "more left out: their begin or end was not seen", offsetof(struct trace_counts, left_out)},
    {"verdicts", "verdicts", offsetof(struct trace_counts, verdicts)},
    {"counter_tracks", "flows", offsetof(struct trace_counts, counter_tracks)},
    {"counter_values", "values of their rates", offsetof(struct trace_counts, counter_values)},
};

static int64_t count_of(const struct trace_counts *counts, size_t index)
{
    return *(const int64_t *)((const char *)counts + counts_shown[index].offset);
}

#define VIEWER_BYTES 400000000 /* the browser holds about 2 GB, which is 2 to 4 times the file */

/* On standard error when the trace itself went to standard output. */
static void print_counts(struct report *report, const struct trace_counts *counts, const char *path)
{
    bool is_stdout = output_is_stdout(path);
    struct stat status;
    char size[TEXT_NUMBER_BYTES];
    for (size_t i = 0; i < COUNT(counts_shown); i++) {
        if (report->as_json) {
            json_integer(&report->json, counts_shown[i].key, count_of(counts, i));
        } else {
            fprintf(is_stdout ? stderr : stdout, "%8" PRId64 " %s\n", count_of(counts, i), counts_shown[i].name);
        }
    }
    if (!report->as_json && !is_stdout) {
        printf("open %s at https://ui.perfetto.dev\n", path);
    }
    if (!is_stdout && stat(path, &status) == 0 && status.st_size > VIEWER_BYTES) {
        log_warning("%s has %s: the viewer may not hold it; take fewer steps with --step", path,
                    text_bytes(size, status.st_size));
    }
}

static int export_perfetto(struct report *report, const char *path, const struct store_value range[2])
{
    struct perfetto *perfetto = NULL;
    struct trace_counts counts;
    int result = range[0].kind == STORE_NULL ? 0 : step_report_check(report, range);
    if (result == 0) {
        result = perfetto_open(&perfetto, path);
    }
    if (result != 0) {
        return result;
    }
    result = trace_write(report->store, range, perfetto, &counts);
    int closed = perfetto_close(&perfetto);
    result = result != 0 ? result : closed;
    if (result == 0) {
        print_counts(report, &counts, path);
    } else {
        output_remove(path);
    }
    return result;
}

static int usage_error(const char *text)
{
    fprintf(stderr, "%s: %s\nTry '%s --help'.\n", program.name, text, program.name);
    return -EINVAL;
}

static int check_usage(const struct export_options *options, char **formats, size_t formats_count,
                       struct store_value range[2])
{
    if (formats_count != 1 || strcmp(formats[0], "perfetto") != 0) {
        return usage_error("say which format: perfetto");
    }
    if (options->report.json && output_is_stdout(options->output)) {
        return usage_error("--json and the trace cannot both go to standard output");
    }
    range[0].kind = range[1].kind = options->steps == NULL ? STORE_NULL : STORE_INTEGER;
    return options->steps == NULL
               ? 0
               : subcommand_parse_steps(&program, options->steps, &range[0].integer, &range[1].integer);
}

int subcommand_export(int argc, char **argv)
{
    struct export_options options = {.output = "qpscope.pftrace"};
    struct store_value range[2];
    char **formats;
    size_t formats_count;
    int parsed = option_parse(&program, argc, argv, &options, &formats, &formats_count);
    if (parsed != OPTION_RESULT_RUN) {
        return parsed < 0 ? EXIT_CODE_USAGE : EXIT_CODE_OK;
    }
    if (check_usage(&options, formats, formats_count, range) != 0) {
        return EXIT_CODE_USAGE;
    }
    struct report report;
    int result = report_open(&report, &options.report);
    if (result == 0) {
        result = export_perfetto(&report, options.output, range);
        report_close(&report);
    }
    return subcommand_exit(result);
}
