/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of text that somebody else holds, without a NUL behind it; taken from a cursor piece by piece. Any thread. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "wire/cursor.h"

struct text {
    const char *at;
    size_t length;
};

/* Up to the separator, which is taken too, or to the end. */
static inline struct text text_take(struct cursor *cursor, char separator)
{
    const size_t left = cursor_left(cursor);
    const uint8_t *found = left == 0 ? NULL : memchr(cursor->at, separator, left);
    const size_t length = found == NULL ? left : (size_t)(found - cursor->at);
    const uint8_t *taken = cursor_take(cursor, length);
    if (found != NULL)
        cursor_skip(cursor, 1);
    return taken == NULL ? (struct text){"", 0} : (struct text){(const char *)taken, length};
}

static inline void text_read(struct cursor *cursor, struct text text)
{
    cursor_init(cursor, text.length == 0 ? "" : text.at, text.length);
}

static inline bool text_is(struct text text, const char *other)
{
    return text.length == strlen(other) && memcmp(text.at, other, text.length) == 0;
}

static inline bool text_begins(struct text text, const char *beginning)
{
    const size_t length = strlen(beginning);
    return text.length >= length && memcmp(text.at, beginning, length) == 0;
}

static inline bool text_has(struct text text, const char *part)
{
    return text.length != 0 && memmem(text.at, text.length, part, strlen(part)) != NULL;
}

/* Without the first `count` bytes. */
static inline struct text text_after(struct text text, size_t count)
{
    return (struct text){text.at + count, text.length - count};
}

/* How many hexadecimal digits it begins with. */
static inline size_t text_hexadecimal_length(struct text text)
{
    size_t length = 0;
    while (length < text.length && isxdigit((unsigned char)text.at[length]))
        length++;
    return length;
}
