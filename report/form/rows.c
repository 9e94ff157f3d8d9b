/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of queries whose columns are not known beforehand. CSV is RFC 4180, with "\n" at the ends of lines. */
#include "report/form/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/form/column.h"
#include "report/form/table.h"
#include "report/form/text.h"
#include "wire/log.h"

struct names {
    char **items;
    size_t count;
};

static bool is_taken(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
}

static int add_name(struct names *names, const char *name)
{
    char *made = strdup(name == NULL ? "" : name);
    for (unsigned number = 2; made != NULL && is_taken(names, made); number++) {
        free(made);
        made = asprintf(&made, "%s_%u", name, number) < 0 ? NULL : made;
    }
    if (made == NULL) {
        return log_error_return(-ENOMEM, "out of memory for the names of columns");
    }
    names->items[names->count++] = made;
    return 0;
}

static int names_init(struct names *names, const struct store_query *query)
{
    size_t count = store_query_columns(query);
    int result = 0;
    names->count = 0;
    names->items = calloc(count, sizeof(*names->items));
    if (names->items == NULL) {
        return log_error_return(-ENOMEM, "out of memory for the names of columns");
    }
    for (size_t i = 0; i < count && result == 0; i++) {
        result = add_name(names, store_query_name(query, i));
    }
    if (result != 0) {
        names_fini(names);
    }
    return result;
}

static void write_object(const struct names *names, const struct store_query *query, struct json *json)
{
    json_object_begin(json, NULL);
    for (size_t i = 0; i < names->count; i++) {
        struct store_value value = store_query_value(query, i);
        column_json_value(json, names->items[i], &value);
    }
    json_object_end(json);
}

static void write_field(FILE *out, const char *text)
{
    if (*text != '\0' && strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, out);
    }
    putc('"', out);
}

/* What stands in a cell of a table or a CSV file; NULL for nothing. */
static const char *cell_text(const struct store_value *value, char into[TEXT_NUMBER_BYTES])
{
    switch (value->kind) {
    case STORE_INTEGER:
        snprintf(into, TEXT_NUMBER_BYTES, "%" PRId64, value->integer);
        return into;
    case STORE_REAL:
        return text_real(into, value->real);
    case STORE_TEXT:
        return value->text;
    case STORE_NULL:
        break;
    }
    return NULL;
}

static void write_csv_names(const struct names *names, FILE *out)
{
    for (size_t i = 0; i < names->count; i++) {
        fputs(i == 0 ? "" : ",", out);
        write_field(out, names->items[i]);
    }
    putc('\n', out);
}

static void write_csv_row(const struct names *names, const struct store_query *query, FILE *out)
{
    char number[TEXT_NUMBER_BYTES];
    for (size_t i = 0; i < names->count; i++) {
        struct store_value value = store_query_value(query, i);
        const char *text = cell_text(&value, number);
        fputs(i == 0 ? "" : ",", out);
        if (text != NULL) {
            write_field(out, text);
        }
    }
    putc('\n', out);
}

static int write_lines(const struct names *names, struct store_query *query, enum rows_format format, FILE *out,
                       size_t *rows)
{
    struct json json;
    int result;
    json_init(&json, out);
    json.on_one_line = true;
    if (format == ROWS_CSV) {
        write_csv_names(names, out);
    }
    while ((result = store_query_next(query)) == 1) {
        if (format == ROWS_CSV) {
            write_csv_row(names, query, out);
        } else {
            write_object(names, query, &json);
        }
        (*rows)++;
    }
    return result;
}

static int add_table_row(struct table *table, const struct store_query *query, struct table_heading *headings,
                         size_t columns_count)
{
    char number[TEXT_NUMBER_BYTES];
    int result = 0;
    for (size_t i = 0; i < columns_count && result == 0; i++) {
        struct store_value value = store_query_value(query, i);
        const char *text = cell_text(&value, number);
        if (value.kind == STORE_REAL) {
            snprintf(number, sizeof(number), "%.7g", value.real);
        }
        headings[i].right &= value.kind != STORE_TEXT;
        result = table_add(table, text == NULL ? "-" : text);
    }
    return result;
}

static int write_table(const struct names *names, struct store_query *query, FILE *out, const struct terminal *terminal,
                       size_t *rows)
{
    struct table_heading headings[names->count];
    struct table *table = NULL;
    for (size_t i = 0; i < names->count; i++) {
        headings[i] = (struct table_heading){.text = names->items[i], .right = true};
    }
    int result = table_create(&table, headings, names->count);
    while (result == 0 && (result = store_query_next(query)) == 1) {
        result = add_table_row(table, query, headings, names->count);
        (*rows)++;
    }
    if (result == 0) {
        table_print_whole(table, out, terminal);
    }
    table_destroy(&table);
    return result;
}

int rows_write(struct store_query *query, enum rows_format format, FILE *out, const struct terminal *terminal,
               size_t *rows_count)
{
    struct names names;
    size_t rows = 0;
    int result = names_init(&names, query);
    if (result != 0) {
        return result;
    }
    result = format == ROWS_TABLE ? write_table(&names, query, out, terminal, &rows)
                                  : write_lines(&names, query, format, out, &rows);
    names_fini(&names);
    if (result == 0 && rows_count != NULL) {
        *rows_count = rows;
    }
    return result;
}

int rows_json(struct store_query *query, struct json *json)
{
    struct names names;
    int result = names_init(&names, query);
    if (result != 0) {
        return result;
    }
    json_array_begin(json, "columns");
    for (size_t i = 0; i < names.count; i++) {
        json_text(json, NULL, names.items[i]);
    }
    json_array_end(json);
    json_array_begin(json, "rows");
    while ((result = store_query_next(query)) == 1) {
        write_object(&names, query, json);
    }
    json_array_end(json);
    names_fini(&names);
    return result;
}
