/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope version: what this program reads and writes, so that two installations can be compared. */
#include "cli/subcommand.h"
#include "correlator/store/store.h"
#include "report/report.h"
#include "wire/capture.h"
#include "wire/record.h"

#include <inttypes.h>
#include <stdio.h>

struct version_options {
    bool json;
};

static const struct option_spec option_specs[] = {
    {
        .name = "json",
        .short_name = 'j',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct version_options, json),
        .help = "print one JSON object instead of text",
    },
};

const struct option_program subcommand_version_program = {
    .name = "qpscope version",
    .summary = "The versions of the program and of what it reads and writes.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "Example:\n"
                "  qpscope version --json | jq .store_schema\n"
                "Exit codes: 0 done, 2 used wrongly.",
};

static const struct {
    const char *key;
    const char *text;
    int64_t version;
} versions[] = {
    {"store_schema", "schema of the store", STORE_SCHEMA_VERSION},
    {"batch_format", "batches of records (captures, links)", BATCH_VERSION},
    {"capture_format", "capture files", CAPTURE_VERSION},
    {"json_schema", "JSON of every --json", REPORT_JSON_VERSION},
};

int subcommand_version(int argc, char **argv)
{
    struct version_options options = {0};
    int exit_code;
    if (!subcommand_parse(&subcommand_version_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    struct json json;
    json_init(&json, stdout);
    if (options.json) {
        report_json_begin(&json);
    } else {
        puts("qpscope " QPSCOPE_VERSION);
    }
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        if (options.json) {
            json_integer(&json, versions[i].key, versions[i].version);
        } else {
            printf("  %-38s version %" PRId64 "\n", versions[i].text, versions[i].version);
        }
    }
    if (options.json) {
        json_object_end(&json);
    }
    return EXIT_CODE_OK;
}
