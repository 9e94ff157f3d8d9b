/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON (RFC 8259). Invariant: `depth` objects and arrays are open. The outer two levels are broken into lines, so that
 * a list has a line a row; what is deeper stays on its line.
 */
#include "report/form/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/form/text.h"

#define BROKEN_DEPTH 2

void json_init(struct json *json, FILE *out)
{
    memset(json, 0, sizeof(*json));
    json->out = out;
}

static void write_character(const struct json *json, const char *bytes, size_t length)
{
    unsigned char c = (unsigned char)bytes[0];
    if (c == '"' || c == '\\') {
        fprintf(json->out, "\\%c", c);
    } else if (c < 0x20 || c == 0x7f || (json->in_html && c == '<')) {
        fprintf(json->out, "\\u%04x", c);
    } else {
        fwrite(bytes, 1, length, json->out);
    }
}

static void write_text(const struct json *json, const char *text)
{
    putc('"', json->out);
    while (*text != '\0') {
        bool valid;
        size_t length = text_character(text, &valid);
        if (valid) {
            write_character(json, text, length);
        } else {
            fputs("\\ufffd", json->out);
        }
        text += length;
    }
    putc('"', json->out);
}

static void break_line(struct json *json)
{
    fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
}

static void begin_value(struct json *json, const char *key)
{
    if (json->depth == 0) {
        return;
    }
    bool *filled = &json->filled[json->depth - 1];
    if (*filled) {
        putc(',', json->out);
    }
    *filled = true;
    if (json->depth <= BROKEN_DEPTH && !json->on_one_line) {
        break_line(json);
    }
    if (key != NULL) {
        write_text(json, key);
        putc(':', json->out);
    }
}

static void begin_nest(struct json *json, const char *key, char open)
{
    begin_value(json, key);
    putc(open, json->out);
    assert(json->depth < JSON_DEPTH_MAX);
    json->filled[json->depth++] = false;
}

static void end_nest(struct json *json, char close)
{
    assert(json->depth > 0);
    bool filled = json->filled[--json->depth];
    if (filled && json->depth < BROKEN_DEPTH && !json->on_one_line) {
        break_line(json);
    }
    putc(close, json->out);
    if (json->depth == 0) {
        putc('\n', json->out);
    }
}

void json_object_begin(struct json *json, const char *key)
{
    begin_nest(json, key, '{');
}

void json_object_end(struct json *json)
{
    end_nest(json, '}');
}

void json_array_begin(struct json *json, const char *key)
{
    begin_nest(json, key, '[');
}

void json_array_end(struct json *json)
{
    end_nest(json, ']');
}

void json_integer(struct json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void json_real(struct json *json, const char *key, double value)
{
    char digits[TEXT_NUMBER_BYTES];
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    fputs(text_real(digits, value), json->out);
}

void json_boolean(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_text(struct json *json, const char *key, const char *value)
{
    if (value == NULL) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    write_text(json, value);
}

void json_null(struct json *json, const char *key)
{
    begin_value(json, key);
    fputs("null", json->out);
}
