/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of any query, as a table for people or as what other programs read. Columns have the query's names; of
 * several alike the later ones get a number ("id", "id_2"). One thread.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "report/form/json.h"
#include "report/form/terminal.h"
#include "report/read/store_reader.h"

enum rows_format {
    ROWS_TABLE,  /* numbers with a point to seven digits */
    ROWS_CSV,    /* RFC 4180, with a line of names; NULL is nothing, an empty text "" */
    ROWS_NDJSON, /* one JSON object a row */
};

/* *rows_count, when not NULL, says how many there were. `terminal` is of ROWS_TABLE. -errno after logging. */
int rows_write(struct store_query *query, enum rows_format format, FILE *out, const struct terminal *terminal,
               size_t *rows_count);

/* The members "columns", an array of names, and "rows", an array of objects, of the open object. -errno after logging.
 */
int rows_json(struct store_query *query, struct json *json);
