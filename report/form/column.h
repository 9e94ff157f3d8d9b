/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the columns of a query are shown: each has a place in the text table, a key in the JSON object, or both. The n-th
 * column of the description is the n-th of the query.
 */
#pragma once

#include <stddef.h>

#include "report/form/json.h"
#include "report/form/table.h"
#include "report/read/store_reader.h"

enum column_kind {
    COLUMN_TEXT,
    COLUMN_INTEGER,
    COLUMN_REAL,
    COLUMN_FLAG,          /* an integer: "yes" or nothing; JSON true or false */
    COLUMN_HEX,           /* as QPNs are written: 0x000011; JSON an integer */
    COLUMN_BYTES,         /* with a unit; JSON an integer */
    COLUMN_MS,            /* nanoseconds shown as milliseconds; JSON an integer of nanoseconds */
    COLUMN_US,            /* nanoseconds shown as microseconds; JSON an integer of nanoseconds */
    COLUMN_SPARE = 0x400, /* flag: left out before others where the table is too wide */
    COLUMN_RIGHT = 0x200, /* flag: text that is aligned as a number */
    COLUMN_BOUND = 0x100, /* flag: the next column is the error bound, shown behind it as " ±..." */
};

#define COLUMN_KIND(kind) ((kind)&0xff)

struct column {
    const char *key;     /* NULL = not in JSON */
    const char *heading; /* NULL = not in the table */
    unsigned kind;       /* enum column_kind, with flags */
};

#define COLUMN_HEADINGS_MAX 32

/* Fills `headings` (room for COLUMN_HEADINGS_MAX) and returns how many columns are shown. */
size_t column_headings(const struct column *columns, size_t columns_count, struct table_heading *headings);

/* One row as cells of a table. -errno after logging. */
int column_table_row(const struct column *columns, size_t columns_count, const struct store_query *query,
                     struct table *table);

/* One row as members of the open object. */
void column_json_row(const struct column *columns, size_t columns_count, const struct store_query *query,
                     struct json *json);

/* One value as it is, as a member of the open object. */
void column_json_value(struct json *json, const char *key, const struct store_value *value);
