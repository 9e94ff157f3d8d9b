/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope jobs: the jobs that one or several stores saw. */
#include "cli/subcommand.h"
#include "report/report.h"
#include "report/subject/job_list.h"

#include <stdio.h>
#include <unistd.h>

struct jobs_options {
    struct report_options report;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct jobs_options, report),
    REPORT_OPTION_JSON(struct jobs_options, report),
};

const struct option_program subcommand_jobs_program = {
    .name = "qpscope jobs",
    .summary = "The jobs: ranks, nodes, communicators, steps, the worst verdict.",
    .usage = "[OPTIONS] [STORE...]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "Processes that share a communicator, or a Slurm job, make one. 'judged' steps have a verdict.\n"
                "Examples:\n"
                "  qpscope jobs\n"
                "  qpscope jobs /var/lib/qpscope/*.db\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
    .positionals_max = SIZE_MAX,
};

static int print_store(struct json *json, const struct report_options *options, bool named)
{
    struct report report = {.as_json = options->json, .json = *json};
    size_t found = 0;
    int result = store_reader_open(&report.store, report_store_path(options->store));
    if (result != 0) {
        return result;
    }
    terminal_init(&report.terminal, STDOUT_FILENO);
    if (options->json) {
        json_object_begin(&report.json, NULL);
        json_text(&report.json, "store", report_store_path(options->store));
    } else if (named) {
        report_say(&report, 0, "%s:", options->store);
    }
    result = job_list_print(&report, &found);
    if (options->json) {
        json_object_end(&report.json);
    } else if (result == 0 && found == 0) {
        report_say(&report, 0, "no job yet: no process was seen to make a communicator");
    }
    *json = report.json;
    store_reader_close(&report.store);
    return result;
}

/* The first store that cannot be read decides; the others are shown. */
static int print_all(const struct jobs_options *options, char **stores, size_t stores_count)
{
    struct json json;
    int result = 0;
    json_init(&json, stdout);
    if (options->report.json) {
        report_json_begin(&json);
        json_array_begin(&json, "stores");
    }
    for (size_t i = 0; i < stores_count || i == 0; i++) {
        struct report_options one = options->report;
        one.store = stores_count == 0 ? one.store : stores[i];
        int error = print_store(&json, &one, stores_count > 1);
        result = result == 0 ? error : result;
    }
    if (options->report.json) {
        json_array_end(&json);
        json_object_end(&json);
    }
    return result;
}

int subcommand_jobs(int argc, char **argv)
{
    struct jobs_options options = {0};
    char **stores;
    size_t stores_count;
    int exit_code;
    if (!subcommand_parse_words(&subcommand_jobs_program, argc, argv, &options, &stores, &stores_count, &exit_code)) {
        return exit_code;
    }
    if (stores_count > 0 && options.report.store != NULL) {
        return subcommand_usage_error(&subcommand_jobs_program, "name stores with --store or without it, not both");
    }
    return subcommand_exit(print_all(&options, stores, stores_count));
}
