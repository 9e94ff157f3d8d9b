/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope export: the store as a file that other programs read. */
#include "cli/bundle.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "cli/table_export.h"
#include "cli/trace.h"
#include "report/form/text.h"
#include "report/report.h"
#include "report/subject/step_report.h"
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
    uint64_t size_bytes;
    struct option_list added;
    struct option_list tables;
};

enum export_format {
    EXPORT_PERFETTO,
    EXPORT_CSV,
    EXPORT_NDJSON,
};

static const char *const formats[] = {"perfetto", "csv", "ndjson", NULL};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct export_options, report),
    REPORT_OPTION_JSON(struct export_options, report),
    {
        .name = "output",
        .short_name = 'o',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct export_options, output),
        .argument = "FILE",
        .help =
            "where to write it, - is standard output (default: perfetto qpscope.pftrace; of one table -, of several "
            "the folder qpscope-csv or qpscope-ndjson)",
    },
    {
        .name = "step",
        .short_name = 'n',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct export_options, steps),
        .argument = "A[..B]",
        .help = "perfetto: only these steps (default: all that is in the store)",
    },
    {
        .name = "size",
        .kind = OPTION_BYTES,
        .offset = offsetof(struct export_options, size_bytes),
        .argument = "SIZE",
        .help = "perfetto: about as big at most (384MiB, what a browser holds): above it rates become means, then "
                "operations go without details",
        .minimum = 4096,
    },
    {
        .name = "add",
        .kind = OPTION_TEXT_LIST,
        .offset = offsetof(struct export_options, added),
        .argument = "HOST=FILE",
        .help = "perfetto: write a tar archive with FILE beside the trace, a trace of that HOST's day time (PyTorch's "
                "profiler), on one time line; may be given several times",
    },
    {
        .name = "table",
        .short_name = 't',
        .kind = OPTION_TEXT_LIST,
        .offset = offsetof(struct export_options, tables),
        .argument = "NAME",
        .help = "csv, ndjson: this table or view; may be given several times (default: all, a file each)",
    },
};

const struct option_program subcommand_export_program = {
    .name = "qpscope export",
    .summary = "Writes a Perfetto trace (operations of ranks, verdicts, the rate of each flow), or tables.",
    .usage = "{perfetto|csv|ndjson} [OPTIONS]",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "Open a trace at https://ui.perfetto.dev (it stays on your machine). Tables and views: doc/store.md.\n"
                "Examples:\n"
                "  qpscope export perfetto --step 10..20 -o slow.pftrace\n"
                "  qpscope export csv --table slow_steps > slow.csv\n"
                "  qpscope export ndjson -o folder\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
    .positionals_max = 1,
    .words = formats,
};

static const struct {
    const char *key;
    const char *name;
    size_t offset;
} counts_shown[] = {
    {"steps", "steps", offsetof(struct trace_counts, steps)},
    {"slices", "operations of ranks", offsetof(struct trace_counts, slices)},
    {"left_out", "more left out: their begin or end was not seen", offsetof(struct trace_counts, left_out)},
    {"arrows", "arrows from who sent to who received", offsetof(struct trace_counts, arrows)},
    {"verdicts", "verdicts", offsetof(struct trace_counts, verdicts)},
    {"counter_tracks", "flows", offsetof(struct trace_counts, counter_tracks)},
    {"counter_values", "values of their rates", offsetof(struct trace_counts, counter_values)},
    {"thinned_tracks", "of the flows have means over time", offsetof(struct trace_counts, thinned_tracks)},
    {"without_details", "of the operations have no details and arrows", offsetof(struct trace_counts, without_details)},
};

static int64_t count_of(const struct trace_counts *counts, size_t index)
{
    return *(const int64_t *)((const char *)counts + counts_shown[index].offset);
}

#define SIZE_BYTES      (384ull << 20) /* the browser holds about 2 GB, which is 2 to 4 times the file */
#define VALUE_BYTES     48             /* of one value of a rate in the file */
#define OPERATION_BYTES 900            /* of one operation with its details and arrows */

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
    if (counts->thinned_tracks != 0 || counts->without_details != 0) {
        log_warning("%s does not hold all, so that a viewer holds it: take fewer steps with --step, or a bigger --size",
                    path);
    }
    if (!is_stdout && stat(path, &status) == 0 && (uint64_t)status.st_size > SIZE_BYTES) {
        log_warning("%s has %s: a browser may not hold it; take fewer steps with --step", path,
                    text_bytes(size, status.st_size));
    }
}

static int write_trace(struct report *report, const char *path, const struct export_options *options,
                       const struct store_value range[2], struct trace_counts *counts)
{
    struct perfetto *perfetto = NULL;
    const struct trace_options trace = {
        .range = {range[0], range[1]},
        .values_max = (int64_t)(options->size_bytes / 2 / VALUE_BYTES),
        .slices_max = (int64_t)(options->size_bytes / 2 / OPERATION_BYTES),
    };
    int result = perfetto_open(&perfetto, path);
    if (result != 0) {
        return result;
    }
    result = trace_write(report->store, &trace, perfetto, counts);
    int closed = perfetto_close(&perfetto);
    result = result != 0 ? result : closed;
    if (result != 0) {
        output_remove(path);
    }
    return result;
}

static int export_bundle(struct report *report, const char *path, const struct export_options *options,
                         const struct store_value range[2], struct trace_counts *counts)
{
    char trace[4096];
    if (snprintf(trace, sizeof(trace), "%s.part", path) >= (int)sizeof(trace)) {
        return log_error_return(-ENAMETOOLONG, "%s: the name is too long", path);
    }
    int result = write_trace(report, trace, options, range, counts);
    if (result == 0) {
        result = bundle_write(report->store, path, trace, &options->added);
        output_remove(trace);
    }
    return result;
}

static int export_perfetto(struct report *report, const char *path, const struct export_options *options,
                           const struct store_value range[2])
{
    struct trace_counts counts;
    int result = range[0].kind == STORE_NULL ? 0 : step_report_check(report, range);
    if (result == 0) {
        result = options->added.count != 0 ? export_bundle(report, path, options, range, &counts)
                                           : write_trace(report, path, options, range, &counts);
    }
    if (result == 0) {
        print_counts(report, &counts, path);
    }
    return result;
}

static int export_tables(struct report *report, const struct export_options *options, enum export_format format)
{
    const struct table_export_options tables = {
        .format = format == EXPORT_CSV ? ROWS_CSV : ROWS_NDJSON,
        .ending = formats[format],
        .tables = &options->tables,
        .output = options->output,
    };
    return table_export(report, &tables);
}

static bool is_addition(const char *text)
{
    const char *equals = strchr(text, '=');
    return equals != NULL && equals != text && equals[1] != '\0';
}

/* NULL when it is right. */
static const char *wrong_usage(const struct export_options *options, enum export_format format)
{
    bool to_stdout = options->output == NULL ? format != EXPORT_PERFETTO && options->tables.count == 1
                                             : output_is_stdout(options->output);
    if (options->report.json && to_stdout) {
        return "--json and what is exported cannot both go to standard output: name a file with --output";
    }
    if (format == EXPORT_PERFETTO && options->tables.count != 0) {
        return "--table goes with csv and ndjson";
    }
    if (format != EXPORT_PERFETTO && (options->steps != NULL || options->added.count != 0)) {
        return "--step and --add go with perfetto";
    }
    if (options->added.count != 0 && to_stdout) {
        return "an archive does not go to standard output";
    }
    for (size_t i = 0; i < options->added.count; i++) {
        if (!is_addition(options->added.values[i])) {
            return "--add takes HOST=FILE, as node1=trace.json";
        }
    }
    return format != EXPORT_PERFETTO && to_stdout && options->tables.count != 1
               ? "several tables go to a folder: name one with --output, or one table with --table"
               : NULL;
}

static int run(const struct export_options *options, enum export_format format, const struct store_value range[2])
{
    const char *name = options->added.count != 0 ? "qpscope.tar" : "qpscope.pftrace";
    const char *trace = options->output == NULL ? name : options->output;
    struct report report;
    int result = report_open(&report, &options->report);
    if (result == 0) {
        result = format == EXPORT_PERFETTO ? export_perfetto(&report, trace, options, range)
                                           : export_tables(&report, options, format);
        report_close(&report);
    }
    return subcommand_exit(result);
}

int subcommand_export(int argc, char **argv)
{
    struct export_options options = {.size_bytes = SIZE_BYTES};
    struct store_value range[2] = {{.kind = STORE_NULL}, {.kind = STORE_NULL}};
    char **words;
    size_t words_count;
    int exit_code;
    if (!subcommand_parse_words(&subcommand_export_program, argc, argv, &options, &words, &words_count, &exit_code)) {
        return exit_code;
    }
    if (words_count == 0) {
        return subcommand_usage_error(&subcommand_export_program, "say which format: perfetto, csv or ndjson");
    }
    enum export_format format = option_word(&subcommand_export_program, words[0]);
    const char *wrong = wrong_usage(&options, format);
    if (wrong != NULL) {
        return subcommand_usage_error(&subcommand_export_program, "%s", wrong);
    }
    if (options.steps != NULL) {
        range[0].kind = range[1].kind = STORE_INTEGER;
        if (subcommand_parse_steps(&subcommand_export_program, options.steps, &range[0].integer, &range[1].integer) !=
            0) {
            return EXIT_CODE_USAGE;
        }
    }
    return run(&options, format, range);
}
