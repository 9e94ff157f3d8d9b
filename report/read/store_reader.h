/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a store (SQLite inside; nowhere else in cli/). A store is opened read-only, and all queries of one reader
 * see the same snapshot of it, however the correlator goes on writing. One thread a reader.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct store_reader;
struct store_query;

enum store_kind {
    STORE_NULL,
    STORE_INTEGER,
    STORE_REAL,
    STORE_TEXT,
};

struct store_value {
    enum store_kind kind;
    int64_t integer;
    double real;
    const char *text; /* of a query's value: valid until the next row */
};

/*
 * -ENOENT, -EINVAL (no store, or one of a newer version), -EBUSY (locked for seconds), another -errno: logged with what
 * to do.
 */
int store_reader_open(struct store_reader **reader, const char *path);
void store_reader_close(struct store_reader **reader);

/* The arguments are bound to ?1, ?2, ... and must outlive the query. -errno after logging. */
int store_query_open(struct store_query **query, struct store_reader *reader, const char *sql,
                     const struct store_value *arguments, size_t arguments_count);

/*
 * One statement that a person wrote. It may only read the store: all else is refused, before anything is done. It ends
 * with an error after `limit_ns` (0: never). -EINVAL after logging what is wrong with it.
 */
int store_query_open_foreign(struct store_query **query, struct store_reader *reader, const char *sql,
                             uint64_t limit_ns);

size_t store_query_columns(const struct store_query *query);

/* Valid until the query is closed. */
const char *store_query_name(const struct store_query *query, size_t column);

/* 1 with a row, 0 at the end, -errno after logging. */
int store_query_next(struct store_query *query);

/* Column counts from 0. */
struct store_value store_query_value(const struct store_query *query, size_t column);

void store_query_close(struct store_query **query);

/* The first value of the first row; STORE_NULL when there is no row. Text is not supported. -errno after logging. */
int store_reader_number(struct store_reader *reader, const char *sql, const struct store_value *arguments,
                        size_t arguments_count, struct store_value *value);

static inline struct store_value store_integer(int64_t integer)
{
    return (struct store_value){.kind = STORE_INTEGER, .integer = integer};
}

static inline struct store_value store_text(const char *text)
{
    return (struct store_value){.kind = text == NULL ? STORE_NULL : STORE_TEXT, .text = text};
}
