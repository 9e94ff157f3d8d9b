/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A streaming JSON writer. What it writes is always valid: text is escaped, bytes that are no UTF-8 become U+FFFD, and
 * a number that is not finite becomes null. Keys are NULL inside arrays. Errors stay in the FILE (ferror). One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 16

struct json {
    FILE *out;
    unsigned depth;
    bool filled[JSON_DEPTH_MAX]; /* something stands in the object or array of that depth */
    bool on_one_line;            /* set it after json_init: an outermost object or array is one line, as in NDJSON */
    bool in_html;                /* set it after json_init: no text can end the HTML element that holds the JSON */
};

void json_init(struct json *json, FILE *out);

void json_object_begin(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array_begin(struct json *json, const char *key);
void json_array_end(struct json *json);

void json_integer(struct json *json, const char *key, int64_t value);
void json_real(struct json *json, const char *key, double value);
void json_boolean(struct json *json, const char *key, bool value);
void json_text(struct json *json, const char *key, const char *value); /* NULL = null */
void json_null(struct json *json, const char *key);
