/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope doctor: what works on this machine, what is missing, what to do. */
#include "cli/doctor.h"
#include "cli/subcommand.h"
#include "report/form/text.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct doctor_options {
    struct report_options report;
    const char *root;
    int program;
};

static const char *const programs[] = {"host", "nic", "correlator", "all", NULL};
#define ALL_PROGRAMS 3

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct doctor_options, report),
    REPORT_OPTION_JSON(struct doctor_options, report),
    {
        .name = "for",
        .short_name = 'f',
        .kind = OPTION_CHOICE,
        .offset = offsetof(struct doctor_options, program),
        .argument = "PROGRAM",
        .help = "look only for what this one needs: host, nic, correlator or all",
        .choices = programs,
    },
    {
        .name = "root",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct doctor_options, root),
        .argument = "FOLDER",
        .help = "look at /proc, /sys, /dev and libraries below this folder: a copy of another machine's",
    },
};

const struct option_program subcommand_doctor_program = {
    .name = "qpscope doctor",
    .summary = "Looks at this machine: what qpscope's programs need, what is there, what to do. Changes nothing.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "Run it as the user, and in the container, that the program will have.\n"
                "Example:\n"
                "  qpscope doctor --for host\n"
                "Exit codes: 0 usable, 1 something needed is missing, 2 used wrongly.",
};

static const struct column stream_columns[] = {
    {"emitter", NULL, COLUMN_TEXT},  {"instance", NULL, COLUMN_TEXT},    {"host", NULL, COLUMN_TEXT},
    {"source", NULL, COLUMN_TEXT},   {"grain_ns", NULL, COLUMN_INTEGER}, {"missing", NULL, COLUMN_TEXT},
    {"left_out", NULL, COLUMN_TEXT}, {"fields", NULL, COLUMN_TEXT},      {"ended", NULL, COLUMN_FLAG},
};

/* A NIC side that does not say what it reads is older than that record, and reads frames. */
static const struct listing streams = {
    "streams",
    "SELECT emitter.kind, emitter.instance, emitter.host, coalesce(traffic_source.kind, CASE emitter.kind "
    "WHEN 'nic' THEN 'frames' WHEN 'host' THEN 'probes' END), grain_ns, missing, "
    "(SELECT group_concat(port.name || ': ' || port.sees, '; ') FROM port WHERE port.emitter = emitter.id "
    "AND port.sees != 'all'), fields, ended FROM emitter LEFT JOIN traffic_source ON traffic_source.emitter = "
    "emitter.id "
    "ORDER BY emitter.kind, emitter.host, emitter.instance, emitter.id",
    stream_columns,
    sizeof(stream_columns) / sizeof(stream_columns[0]),
};

#define TITLE_COLUMNS 31 /* "missing  NCCL or RCCL in use   " */

static void print_text(const struct doctor_check *check, const struct doctor_finding *finding,
                       const struct terminal *terminal)
{
    static const char *const colours[] = {"32", "33", "31"};
    size_t width = terminal->width;
    char *clean = text_clean(finding->found);
    if (clean == NULL) {
        return;
    }
    if (terminal->colour) {
        printf("\033[%sm%-9s\033[0m", colours[finding->status], doctor_status_name(finding->status));
    } else {
        printf("%-9s", doctor_status_name(finding->status));
    }
    printf("%-22s", check->title);
    if (TITLE_COLUMNS + text_width(clean) <= width) {
        puts(clean);
    } else {
        putchar('\n');
        text_paragraph(stdout, clean, 9, width);
    }
    free(clean);
    if (finding->status != DOCTOR_OK) {
        text_paragraph(stdout, check->advice, 9, width);
    }
}

static void print_json(struct json *json, const struct doctor_check *check, const struct doctor_finding *finding)
{
    json_object_begin(json, NULL);
    json_text(json, "name", check->name);
    json_text(json, "needed_by", doctor_program_name(check->needed_by));
    json_text(json, "status", doctor_status_name(finding->status));
    json_text(json, "found", finding->found);
    json_text(json, "advice", finding->status == DOCTOR_OK ? NULL : check->advice);
    json_object_end(json);
}

static void say_stream(struct report *report, const struct store_query *query)
{
    struct store_value source = store_query_value(query, 3);
    struct store_value grain = store_query_value(query, 4);
    struct store_value missing = store_query_value(query, 5);
    struct store_value left_out = store_query_value(query, 6);
    char duration[TEXT_NUMBER_BYTES] = "";
    if (grain.kind == STORE_INTEGER) {
        text_duration(duration, grain.integer);
    }
    report_say(report, 2, "%s %s on %s: source %s%s%s%s%s%s%s%s", store_query_value(query, 0).text,
               store_query_value(query, 1).text, store_query_value(query, 2).text,
               source.kind == STORE_TEXT ? source.text : "unknown", *duration == '\0' ? "" : ", grain ", duration,
               missing.kind == STORE_TEXT ? "; does not see " : "", missing.kind == STORE_TEXT ? missing.text : "",
               left_out.kind == STORE_TEXT ? "; leaves out at its ports: " : "",
               left_out.kind == STORE_TEXT ? left_out.text : "",
               store_query_value(query, 8).integer != 0 ? "; it has ended" : "");
}

/* What feeds the store: each stream's source, how finely it looks, and what it does not see. */
static int print_streams(const struct doctor_options *options, struct json *json)
{
    struct report report = {.as_json = options->report.json, .json = *json};
    int result = store_reader_open(&report.store, report_store_path(options->report.store));
    if (result != 0) {
        return result;
    }
    terminal_init(&report.terminal, STDOUT_FILENO);
    if (report.as_json) {
        result = report_list(&report, &streams, NULL, 0, NULL);
    } else {
        report_say(&report, 0, "streams in the store:");
        result = report_each(&report, streams.sql, NULL, 0, say_stream, NULL);
    }
    *json = report.json;
    store_reader_close(&report.store);
    return result;
}

/* How many needed things are missing. *has_store: there is one, and it can be read. */
static size_t look_at_all(const struct doctor_options *options, struct json *json, bool *has_store)
{
    struct doctor_machine machine = {
        .root = options->root == NULL ? "" : options->root,
        .store = report_store_path(options->report.store),
    };
    struct terminal terminal;
    size_t missing = 0;
    terminal_init(&terminal, STDOUT_FILENO);
    for (size_t i = 0; i < doctor_checks_count; i++) {
        const struct doctor_check *check = &doctor_checks[i];
        struct doctor_finding finding;
        if (options->program != ALL_PROGRAMS && (int)check->needed_by != options->program) {
            continue;
        }
        check->look(&machine, &finding);
        missing += finding.status == DOCTOR_MISSING;
        *has_store |=
            strcmp(check->name, "store") == 0 && finding.status != DOCTOR_MISSING && access(machine.store, R_OK) == 0;
        if (options->report.json) {
            print_json(json, check, &finding);
        } else {
            print_text(check, &finding, &terminal);
        }
    }
    return missing;
}

int subcommand_doctor(int argc, char **argv)
{
    struct doctor_options options = {.program = ALL_PROGRAMS};
    struct json json;
    int exit_code;
    if (!subcommand_parse(&subcommand_doctor_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    json_init(&json, stdout);
    if (options.report.json) {
        report_json_begin(&json);
        json_array_begin(&json, "checks");
    }
    bool has_store = false;
    size_t missing = look_at_all(&options, &json, &has_store);
    if (options.report.json) {
        json_array_end(&json);
    }
    if (has_store && print_streams(&options, &json) != 0) {
        missing++;
    }
    if (options.report.json) {
        json_boolean(&json, "usable", missing == 0);
        json_object_end(&json);
    } else {
        printf("%s: %zu needed thing%s missing\n", missing == 0 ? "usable" : "not usable", missing,
               missing == 1 ? " is" : "s are");
    }
    return missing == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}
