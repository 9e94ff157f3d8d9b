/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope steps: the list of them, or each as it ends. */
#include "cli/live/step_stream.h"
#include "cli/subcommand.h"
#include "report/report.h"
#include "report/subject/step_list.h"
#include "wire/clock.h"

#include <stdio.h>
#include <time.h>

struct steps_options {
    struct report_options report;
    bool follow;
    uint64_t interval_ns;
    uint64_t duration_ns;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct steps_options, report),
    REPORT_OPTION_JSON(struct steps_options, report),
    {
        .name = "follow",
        .short_name = 'F',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct steps_options, follow),
        .help = "go on: a line a step as it ends; with --json an object a line (NDJSON)",
    },
    {
        .name = "interval",
        .short_name = 'i',
        .kind = OPTION_DURATION,
        .offset = offsetof(struct steps_options, interval_ns),
        .argument = "TIME",
        .help = "with --follow: between two looks",
        .minimum = 100000000,
        .maximum = 3600000000000,
    },
    {
        .name = "for",
        .short_name = 'f',
        .kind = OPTION_DURATION,
        .offset = offsetof(struct steps_options, duration_ns),
        .argument = "TIME",
        .help = "with --follow: end after this time; 0s: when asked to",
    },
};

const struct option_program subcommand_steps_program = {
    .name = "qpscope steps",
    .summary = "The job's steps: how long each took, who was the latest in it, by how much and where.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "A duration is the median over the ranks; ± is its error bound from the clocks. 'late us' is how long\n"
                "after the other ranks' median the slowest rank arrived in the operation named beside it.\n"
                "With --follow a step is told when a later one is there, or when two looks found it the same.\n"
                "Examples:\n"
                "  qpscope steps --json | jq '.steps[] | select(.late_ns > 10000000)'\n"
                "  qpscope steps --follow\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

static int look(struct step_stream *stream, const struct report_options *options)
{
    struct report report = {.as_json = options->json};
    int result = store_reader_open(&report.store, report_store_path(options->store));
    if (result != 0) {
        return result;
    }
    json_init(&report.json, stdout);
    report.json.on_one_line = true;
    result = step_stream_print(stream, &report);
    store_reader_close(&report.store);
    return result;
}

static int follow(const struct steps_options *options)
{
    const struct timespec pause = {(time_t)(options->interval_ns / 1000000000u),
                                   (long)(options->interval_ns % 1000000000u)};
    uint64_t began_ns = clock_now_ns();
    struct step_stream stream;
    int result;
    step_stream_init(&stream);
    while ((result = look(&stream, &options->report)) == 0 && fflush(stdout) == 0 &&
           (options->duration_ns == 0 || clock_now_ns() - began_ns < options->duration_ns)) {
        nanosleep(&pause, NULL);
    }
    return result;
}

static int print(const struct report_options *options)
{
    struct report report;
    int result = report_open(&report, options);
    if (result == 0) {
        result = step_list_print(&report);
        report_close(&report);
    }
    return result;
}

int subcommand_steps(int argc, char **argv)
{
    struct steps_options options = {.interval_ns = 1000000000};
    int exit_code;
    if (!subcommand_parse(&subcommand_steps_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    return subcommand_exit(options.follow ? follow(&options) : print(&options.report));
}
