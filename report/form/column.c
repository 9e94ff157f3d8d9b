/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of a query as text and as JSON. What is not known (NULL) is "-" and null. */
#include "report/form/column.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/form/text.h"

#define CELL_BYTES 128
#define NOT_KNOWN  "-"

static double scale_ns(const struct store_value *value, double divisor)
{
    return (value->kind == STORE_REAL ? value->real : (double)value->integer) / divisor;
}

static void format_number(char cell[CELL_BYTES], unsigned kind, const struct store_value *value)
{
    switch (COLUMN_KIND(kind)) {
    case COLUMN_REAL:
        snprintf(cell, CELL_BYTES, "%.2f", scale_ns(value, 1));
        break;
    case COLUMN_FLAG:
        snprintf(cell, CELL_BYTES, "%s", value->integer != 0 ? "yes" : "");
        break;
    case COLUMN_HEX:
        snprintf(cell, CELL_BYTES, "0x%06" PRIx64, (uint64_t)value->integer);
        break;
    case COLUMN_BYTES:
        text_bytes(cell, value->integer);
        break;
    case COLUMN_MS:
        snprintf(cell, CELL_BYTES, "%.3f", scale_ns(value, 1e6));
        break;
    case COLUMN_US:
        snprintf(cell, CELL_BYTES, "%.0f", scale_ns(value, 1e3));
        break;
    default:
        snprintf(cell, CELL_BYTES, "%" PRId64, value->integer);
        break;
    }
}

static int add_cell(struct table *table, unsigned kind, const struct store_query *query, size_t index)
{
    struct store_value value = store_query_value(query, index);
    if (value.kind == STORE_NULL) {
        return table_add(table, NOT_KNOWN);
    }
    if (value.kind == STORE_TEXT) {
        return table_add(table, value.text);
    }
    char cell[CELL_BYTES];
    format_number(cell, kind, &value);
    if ((kind & COLUMN_BOUND) == 0) {
        return table_add(table, cell);
    }
    struct store_value bound = store_query_value(query, index + 1);
    if (bound.kind != STORE_INTEGER) {
        return table_add(table, cell);
    }
    char number[CELL_BYTES];
    char both[2 * CELL_BYTES + 4];
    format_number(number, kind, &bound);
    snprintf(both, sizeof(both), "%s ±%s", cell, number);
    return table_add(table, both);
}

size_t column_headings(const struct column *columns, size_t columns_count, struct table_heading *headings)
{
    size_t count = 0;
    for (size_t i = 0; i < columns_count && count < COLUMN_HEADINGS_MAX; i++) {
        if (columns[i].heading != NULL) {
            headings[count].text = columns[i].heading;
            headings[count].spare = (columns[i].kind & COLUMN_SPARE) != 0;
            headings[count++].right = (columns[i].kind & ~COLUMN_SPARE) != COLUMN_TEXT;
        }
    }
    return count;
}

int column_table_row(const struct column *columns, size_t columns_count, const struct store_query *query,
                     struct table *table)
{
    int result = 0;
    for (size_t i = 0; i < columns_count && result == 0; i++) {
        if (columns[i].heading != NULL) {
            result = add_cell(table, columns[i].kind, query, i);
        }
    }
    return result;
}

void column_json_value(struct json *json, const char *key, const struct store_value *value)
{
    switch (value->kind) {
    case STORE_NULL:
        json_null(json, key);
        break;
    case STORE_TEXT:
        json_text(json, key, value->text);
        break;
    case STORE_REAL:
        json_real(json, key, value->real);
        break;
    case STORE_INTEGER:
        json_integer(json, key, value->integer);
        break;
    }
}

static void add_member(struct json *json, const struct column *column, const struct store_value *value)
{
    if (COLUMN_KIND(column->kind) == COLUMN_FLAG && value->kind == STORE_INTEGER) {
        json_boolean(json, column->key, value->integer != 0);
    } else {
        column_json_value(json, column->key, value);
    }
}

void column_json_row(const struct column *columns, size_t columns_count, const struct store_query *query,
                     struct json *json)
{
    for (size_t i = 0; i < columns_count; i++) {
        if (columns[i].key != NULL) {
            struct store_value value = store_query_value(query, i);
            add_member(json, &columns[i], &value);
        }
    }
}
