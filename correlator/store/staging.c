/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows that wait. Invariant: all have the same number of values, and a text lies where its value says. */
#include "correlator/store/staging.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/array.h"
#include "correlator/hash.h"

#define ROWS_MANY 4096

struct staged { /* a value; of a text where it begins */
    uint8_t kind;
    union {
        int64_t integer;
        double real;
        size_t text;
    };
};

struct staging {
    ARRAY(struct staged) values;
    ARRAY(char) texts;
    size_t columns;
    size_t rows;
};

struct value value_take(char kind, va_list *values)
{
    struct value value = {.kind = VALUE_INTEGER};
    int known = kind == 'k' || kind == 'p' ? va_arg(*values, int) : 1;

    if (kind == 'd' || kind == 'p') {
        value.kind = VALUE_REAL;
        value.real = va_arg(*values, double);
    } else if (kind == 's') {
        value.text = va_arg(*values, const char *);
        value.kind = value.text == NULL ? VALUE_NULL : VALUE_TEXT;
    } else {
        value.integer = va_arg(*values, int64_t);
        known = known && !(kind == 'n' && value.integer == 0) && !(kind == 'r' && value.integer < 0);
    }
    if (!known)
        value.kind = VALUE_NULL;
    return value;
}

static uint64_t digest_value(uint64_t digest, char kind, va_list *values)
{
    int64_t number = kind == 'k' || kind == 'p' ? va_arg(*values, int) : 0;

    digest = hash_number(digest, (uint64_t)number);
    if (kind == 's') {
        const char *text = va_arg(*values, const char *);
        return text == NULL ? hash_number(digest, 1) : hash_mix(digest, text, strlen(text) + 1);
    }
    if (kind == 'd' || kind == 'p') {
        double real = va_arg(*values, double);
        memcpy(&number, &real, sizeof number);
    } else {
        number = va_arg(*values, int64_t);
    }
    return hash_number(digest, (uint64_t)number);
}

uint64_t value_digest(const char *format, va_list *values)
{
    uint64_t digest = HASH_START;

    for (const char *kind = format; *kind != '\0'; kind++)
        digest = digest_value(digest, *kind, values);
    return digest;
}

struct staging *staging_create(void)
{
    return array_zeroed(sizeof(struct staging));
}

void staging_destroy(struct staging **staging)
{
    if (*staging == NULL)
        return;
    array_fini(&(*staging)->values);
    array_fini(&(*staging)->texts);
    free(*staging);
    *staging = NULL;
}

static size_t keep_text(struct staging *staging, const char *text)
{
    size_t begin = staging->texts.count;
    size_t bytes = strlen(text) + 1;

    if (staging->texts.capacity < begin + bytes)
        array_reserve(&staging->texts, 2 * (begin + bytes));
    memcpy(staging->texts.items + begin, text, bytes);
    staging->texts.count += bytes;
    return begin;
}

static void add_value(struct staging *staging, struct value value)
{
    struct staged *staged = array_add(&staging->values);

    staged->kind = (uint8_t)value.kind;
    if (value.kind == VALUE_INTEGER)
        staged->integer = value.integer;
    else if (value.kind == VALUE_REAL)
        staged->real = value.real;
    else if (value.kind == VALUE_TEXT)
        staged->text = keep_text(staging, value.text);
}

bool staging_add(struct staging *staging, const char *format, va_list *values)
{
    for (const char *kind = format; *kind != '\0'; kind++)
        add_value(staging, value_take(*kind, values));
    staging->columns = strlen(format);
    staging->rows++;
    return staging->rows >= ROWS_MANY;
}

size_t staging_count(const struct staging *staging)
{
    return staging->rows;
}

struct value staging_value(const struct staging *staging, size_t row, size_t column)
{
    struct value value = {.kind = VALUE_NULL};

    if (column >= staging->columns)
        return value;
    const struct staged *staged = &staging->values.items[row * staging->columns + column];
    value.kind = staged->kind;
    if (staged->kind == VALUE_INTEGER)
        value.integer = staged->integer;
    else if (staged->kind == VALUE_REAL)
        value.real = staged->real;
    else if (staged->kind == VALUE_TEXT)
        value.text = staging->texts.items + staged->text;
    return value;
}

void staging_clear(struct staging *staging)
{
    staging->values.count = 0;
    staging->texts.count = 0;
    staging->rows = 0;
}
