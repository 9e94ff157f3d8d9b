/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of rows for people and for programs, from the same queries. */
#include "report/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/form/text.h"
#include "wire/log.h"

const char *report_store_path(const char *named)
{
    const char *path = named != NULL ? named : getenv("QPSCOPE_STORE");
    return path != NULL && *path != '\0' ? path : STORE_PATH_DEFAULT;
}

FILE *report_out(const struct report *report)
{
    return report->out == NULL ? stdout : report->out;
}

void report_json_begin(struct json *json)
{
    json_object_begin(json, NULL);
    json_integer(json, "schema_version", REPORT_JSON_VERSION);
    json_text(json, "generator", "qpscope " QPSCOPE_VERSION);
}

int report_open(struct report *report, const struct report_options *options)
{
    report->store = NULL;
    report->as_json = options->json;
    report->in_words = false;
    report->out = NULL;
    int result = store_reader_open(&report->store, report_store_path(options->store));
    if (result != 0) {
        return result;
    }
    terminal_init(&report->terminal, STDOUT_FILENO);
    json_init(&report->json, stdout);
    if (report->as_json) {
        report_json_begin(&report->json);
    }
    return 0;
}

static int list_json(struct report *report, const struct listing *listing, struct store_query *query,
                     size_t *rows_count)
{
    int result;
    json_array_begin(&report->json, listing->key);
    while ((result = store_query_next(query)) == 1) {
        json_object_begin(&report->json, NULL);
        column_json_row(listing->columns, listing->columns_count, query, &report->json);
        json_object_end(&report->json);
        (*rows_count)++;
    }
    json_array_end(&report->json);
    return result;
}

static int list_nothing(struct store_query *query, size_t *rows_count)
{
    int result;
    while ((result = store_query_next(query)) == 1) {
        (*rows_count)++;
    }
    return result;
}

static int list_text(struct report *report, const struct listing *listing, struct store_query *query,
                     size_t *rows_count)
{
    struct table_heading headings[COLUMN_HEADINGS_MAX];
    struct table *table = NULL;
    size_t shown = column_headings(listing->columns, listing->columns_count, headings);
    int result = table_create(&table, headings, shown);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        result = column_table_row(listing->columns, listing->columns_count, query, table);
        if (result != 0) {
            break;
        }
        (*rows_count)++;
    }
    if (result == 0 && *rows_count > 0) {
        table_print(table, report_out(report), &report->terminal);
    }
    table_destroy(&table);
    return result;
}

int report_list(struct report *report, const struct listing *listing, const struct store_value *arguments,
                size_t arguments_count, size_t *rows_count)
{
    struct store_query *query = NULL;
    size_t rows = 0;
    int result = store_query_open(&query, report->store, listing->sql, arguments, arguments_count);
    if (result != 0) {
        return result;
    }
    result = report->as_json    ? list_json(report, listing, query, &rows)
             : report->in_words ? list_nothing(query, &rows)
                                : list_text(report, listing, query, &rows);
    store_query_close(&query);
    if (result == 0 && rows_count != NULL) {
        *rows_count = rows;
    }
    return result;
}

int report_json_row(struct report *report, const struct listing *listing, const struct store_value *arguments,
                    size_t arguments_count)
{
    if (!report->as_json) {
        return 0;
    }
    struct store_query *query = NULL;
    int result = store_query_open(&query, report->store, listing->sql, arguments, arguments_count);
    if (result != 0) {
        return result;
    }
    result = store_query_next(query);
    if (result == 1) {
        json_object_begin(&report->json, listing->key);
        column_json_row(listing->columns, listing->columns_count, query, &report->json);
        json_object_end(&report->json);
        result = 0;
    } else if (result == 0) {
        json_null(&report->json, listing->key);
    }
    store_query_close(&query);
    return result;
}

int report_each(struct report *report, const char *sql, const struct store_value *arguments, size_t arguments_count,
                void (*say)(struct report *report, const struct store_query *row), size_t *rows_count)
{
    struct store_query *query = NULL;
    size_t rows = 0;
    int result = store_query_open(&query, report->store, sql, arguments, arguments_count);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        say(report, query);
        rows++;
    }
    store_query_close(&query);
    if (result == 0 && rows_count != NULL) {
        *rows_count = rows;
    }
    return result;
}

static void add_words(struct json *json, const char *text, size_t indent)
{
    json_object_begin(json, NULL);
    json_integer(json, "indent", (int64_t)indent);
    json_text(json, "text", text);
    json_object_end(json);
}

void report_say(struct report *report, size_t indent, const char *format, ...)
{
    if (report->as_json) {
        return;
    }
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) >= 0) {
        if (report->in_words) {
            add_words(&report->json, text, indent);
        } else {
            text_paragraph(report_out(report), text, indent, report->terminal.width);
        }
        free(text);
    }
    va_end(arguments);
}

void report_break(struct report *report)
{
    if (!report->as_json && !report->in_words) {
        putc('\n', report_out(report));
    }
}

void report_words_begin(struct report *report, const char *key)
{
    json_array_begin(&report->json, key);
    report->as_json = false;
    report->in_words = true;
}

void report_words_end(struct report *report)
{
    report->in_words = false;
    report->as_json = true;
    json_array_end(&report->json);
}

void report_close(struct report *report)
{
    if (report->store != NULL && report->as_json) {
        json_object_end(&report->json);
    }
    store_reader_close(&report->store);
}
