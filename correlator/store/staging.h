/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows on their way into a long table, many at once: values by the formats of store_private.h. No SQL here. One thread.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_kind {
    VALUE_NULL,
    VALUE_INTEGER,
    VALUE_REAL,
    VALUE_TEXT,
};

struct value {
    enum value_kind kind;
    union {
        int64_t integer;
        double real;
        const char *text;
    };
};

/* The next value, by its letter of a format. */
struct value value_take(char kind, va_list *values);

/* Of a whole row: equal rows have equal ones. */
uint64_t value_digest(const char *format, va_list *values);

struct staging;

struct staging *staging_create(void);
void staging_destroy(struct staging **staging); /* a no-op on NULL */

/* Adds a row, all of one format until it is cleared; texts are copied. True when there are so many that they should go.
 */
bool staging_add(struct staging *staging, const char *format, va_list *values);

size_t staging_count(const struct staging *staging);

/* A text is valid until the next call that adds or clears. */
struct value staging_value(const struct staging *staging, size_t row, size_t column);

void staging_clear(struct staging *staging);
