/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a subcommand prints from a store: lists of rows, as text tables for people or as one JSON object. Writes to
 * standard output. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "report/form/column.h"
#include "report/form/json.h"
#include "report/form/terminal.h"
#include "report/read/store_reader.h"

struct report_options {
    const char *store; /* NULL = the default */
    bool json;
};

#define REPORT_JSON_VERSION 1 /* schema_version of what --json prints */

#define STORE_PATH_DEFAULT "/var/lib/qpscope/qpscope.db"

/* The options that every report has; `member` is the struct report_options in `type`. */
#define REPORT_OPTION_STORE(type, member)                                                                              \
    {                                                                                                                  \
        .name = "store", .short_name = 's', .kind = OPTION_TEXT, .offset = offsetof(type, member.store),               \
        .argument = "FILE", .help = "the store (default $QPSCOPE_STORE, else " STORE_PATH_DEFAULT ")",                 \
    }
#define REPORT_OPTION_JSON(type, member)                                                                               \
    {                                                                                                                  \
        .name = "json", .short_name = 'j', .kind = OPTION_FLAG, .offset = offsetof(type, member.json),                 \
        .help = "print one JSON object instead of text",                                                               \
    }
#define REPORT_OPTION_STEP(type, member, text)                                                                         \
    {                                                                                                                  \
        .name = "step", .short_name = 'n', .kind = OPTION_TEXT, .offset = offsetof(type, member), .argument = "N",     \
        .help = (text),                                                                                                \
    }

struct report {
    struct store_reader *store;
    struct terminal terminal;
    struct json json;
    bool as_json;
    FILE *out;     /* where text goes; NULL = standard output */
    bool in_words; /* what would be said goes into an array of the JSON */
};

struct listing {
    const char *key; /* of the JSON array */
    const char *sql;
    const struct column *columns;
    size_t columns_count;
};

/* `named` or what stands for it. */
const char *report_store_path(const char *named);

/* Where its text goes. */
FILE *report_out(const struct report *report);

/* Begins the object that every --json prints: schema_version and generator. */
void report_json_begin(struct json *json);

/* Opens the store, and the JSON object with schema_version and generator. -errno after logging. */
int report_open(struct report *report, const struct report_options *options);

/*
 * All rows of a listing: a table (nothing when there are no rows) or a JSON array. *rows_count, when not NULL, says how
 * many there were. -errno after logging.
 */
int report_list(struct report *report, const struct listing *listing, const struct store_value *arguments,
                size_t arguments_count, size_t *rows_count);

/* The only row of a listing, as members of the JSON object `key`; a no-op in text mode. -errno after logging. */
int report_json_row(struct report *report, const struct listing *listing, const struct store_value *arguments,
                    size_t arguments_count);

/* Calls `say` for each row. *rows_count, when not NULL, says how many there were. -errno after logging. */
int report_each(struct report *report, const char *sql, const struct store_value *arguments, size_t arguments_count,
                void (*say)(struct report *report, const struct store_query *row), size_t *rows_count);

/* A paragraph, wrapped at the terminal's width; a no-op in JSON. */
void report_say(struct report *report, size_t indent, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* An empty line between two parts; a no-op in JSON. */
void report_break(struct report *report);

/*
 * Until the end, a report that writes JSON does as one that prints text, but each paragraph becomes an object of the
 * array `key`, with indent and text, and tables are left out.
 */
void report_words_begin(struct report *report, const char *key);
void report_words_end(struct report *report);

/* Ends the JSON object and closes the store. */
void report_close(struct report *report);
