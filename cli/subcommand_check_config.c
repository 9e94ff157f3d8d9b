/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope check-config: each file is read by the program that it is for, which says what is wrong with it. */
#include "cli/gather/daemon.h"
#include "cli/subcommand.h"
#include "report/report.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/etc/qpscope"

struct check_options {
    bool json;
};

static const struct option_spec option_specs[] = {
    {
        .name = "json",
        .short_name = 'j',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct check_options, json),
        .help = "print one JSON object instead of text",
    },
};

const struct option_program subcommand_check_config_program = {
    .name = "qpscope check-config",
    .summary = "Says what is wrong with the daemons' configuration files, line by line.",
    .usage = "[OPTIONS] [FILE...]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "Without FILE: qpscope-nic.conf, qpscope-host.conf and qpscope-correlator.conf in " FOLDER ".\n"
                "A file of another name is for all three: what is for one of them stands behind [qpscope-nic].\n"
                "Example:\n"
                "  qpscope check-config /etc/qpscope/*.conf\n"
                "Exit codes: 0 all are fine, 1 something is wrong or could not be checked, 2 used wrongly.",
    .positionals_max = SIZE_MAX,
};

static const char *const programs[] = {"qpscope-nic", "qpscope-host", "qpscope-correlator"};
#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

enum outcome {
    OUTCOME_FINE,
    OUTCOME_WRONG,
    OUTCOME_NOT_CHECKED,
};
static const char *const outcome_words[] = {"fine", "wrong", "not checked"};

/* The program that has the daemon's own tables says it. */
static enum outcome ask(const char *program, const char *file)
{
    char *arguments[] = {(char *)program, "--config", (char *)file, "--check-config", NULL};
    struct daemon daemon;
    if (daemon_start(&daemon, program, arguments) != 0) {
        return OUTCOME_NOT_CHECKED;
    }
    daemon_wait(&daemon);
    if (daemon_is_missing(&daemon)) {
        return OUTCOME_NOT_CHECKED;
    }
    return daemon_failed(&daemon) ? OUTCOME_WRONG : OUTCOME_FINE;
}

static bool is_for(const char *program, const char *file)
{
    char *path = strdup(file);
    const char *name = path == NULL ? "" : basename(path);
    bool names_one = false;
    bool is_named = false;
    for (size_t i = 0; i < PROGRAMS; i++) {
        size_t length = strlen(programs[i]);
        bool is_its = strncmp(name, programs[i], length) == 0 && strcmp(name + length, ".conf") == 0;
        names_one |= is_its;
        is_named |= is_its && strcmp(programs[i], program) == 0;
    }
    free(path);
    return is_named || !names_one;
}

static bool check(const char *file, struct json *json)
{
    bool all_fine = true;
    for (size_t i = 0; i < PROGRAMS; i++) {
        if (!is_for(programs[i], file)) {
            continue;
        }
        enum outcome outcome = ask(programs[i], file);
        all_fine = all_fine && outcome == OUTCOME_FINE;
        if (json == NULL) {
            printf("%s for %s: %s\n", file, programs[i], outcome_words[outcome]);
            continue;
        }
        json_object_begin(json, NULL);
        json_text(json, "file", file);
        json_text(json, "program", programs[i]);
        json_text(json, "outcome", outcome_words[outcome]);
        json_object_end(json);
    }
    return all_fine;
}

static bool check_usual(struct json *json, bool *is_one_there)
{
    bool all_fine = true;
    *is_one_there = false;
    for (size_t i = 0; i < PROGRAMS; i++) {
        char file[64];
        snprintf(file, sizeof(file), FOLDER "/%s.conf", programs[i]);
        if (access(file, F_OK) == 0) {
            *is_one_there = true;
            all_fine &= check(file, json);
        }
    }
    return all_fine;
}

int subcommand_check_config(int argc, char **argv)
{
    struct check_options options = {0};
    struct json json;
    char **files;
    size_t files_count;
    int exit_code;
    if (!subcommand_parse_words(&subcommand_check_config_program, argc, argv, &options, &files, &files_count,
                                &exit_code)) {
        return exit_code;
    }
    json_init(&json, stdout);
    if (options.json) {
        report_json_begin(&json);
        json_array_begin(&json, "files");
    }
    bool is_one_there = true;
    bool all_fine = files_count > 0 || check_usual(options.json ? &json : NULL, &is_one_there);
    for (size_t i = 0; i < files_count; i++) {
        all_fine &= check(files[i], options.json ? &json : NULL);
    }
    if (options.json) {
        json_array_end(&json);
        json_object_end(&json);
    } else if (!is_one_there) {
        puts("there is no configuration in " FOLDER ": the daemons have their options from their command lines");
    }
    return all_fine ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}
