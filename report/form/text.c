/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text for people. UTF-8 is taken apart as in table 3-7 of the Unicode standard ("well-formed UTF-8 byte sequences");
 * what is not well-formed is cut by its rule of maximal subparts.
 */
#include "report/form/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sequence {
    uint8_t first_from, first_to;
    uint8_t second_from, second_to;
    uint8_t length;
};

static const struct sequence sequences[] = {
    {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static const struct sequence *sequence_of(uint8_t first)
{
    for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
        if (first >= sequences[i].first_from && first <= sequences[i].first_to) {
            return &sequences[i];
        }
    }
    return NULL;
}

size_t text_character(const char *text, bool *valid)
{
    const uint8_t *bytes = (const uint8_t *)text;
    const struct sequence *sequence = sequence_of(bytes[0]);
    *valid = false;
    if (sequence == NULL) {
        return 1;
    }
    for (size_t i = 1; i < sequence->length; i++) {
        uint8_t from = i == 1 ? sequence->second_from : 0x80;
        uint8_t to = i == 1 ? sequence->second_to : 0xbf;
        if (bytes[i] < from || bytes[i] > to) {
            return i;
        }
    }
    *valid = true;
    return sequence->length;
}

size_t text_width(const char *text)
{
    size_t width = 0;
    while (*text != '\0') {
        bool valid;
        text += text_character(text, &valid);
        width++;
    }
    return width;
}

static bool is_control(const char *text, size_t length)
{
    uint8_t first = (uint8_t)text[0];
    uint8_t second = length > 1 ? (uint8_t)text[1] : 0;
    return first < 0x20 || first == 0x7f || (first == 0xc2 && second < 0xa0);
}

char *text_clean(const char *text)
{
    char *clean = malloc(strlen(text) + 1);
    if (clean == NULL) {
        return NULL;
    }
    char *end = clean;
    while (*text != '\0') {
        bool valid;
        size_t length = text_character(text, &valid);
        if (valid && !is_control(text, length)) {
            end = mempcpy(end, text, length);
        } else {
            *end++ = '?';
        }
        text += length;
    }
    *end = '\0';
    return clean;
}

static void print_scaled(char into[TEXT_NUMBER_BYTES], double value, const char *unit)
{
    double size = fabs(value);
    int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(into, TEXT_NUMBER_BYTES, "%.*f %s", decimals, value, unit);
}

const char *text_duration(char into[TEXT_NUMBER_BYTES], int64_t duration_ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = (double)duration_ns;
    size_t unit = 0;
    while (fabs(value) >= 999.5 && unit < 3) {
        value /= 1000;
        unit++;
    }
    if (unit == 0) {
        snprintf(into, TEXT_NUMBER_BYTES, "%" PRId64 " ns", duration_ns);
    } else {
        print_scaled(into, value, units[unit]);
    }
    return into;
}

const char *text_bytes(char into[TEXT_NUMBER_BYTES], int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (fabs(value) >= 1023.5 && unit < 4) {
        value /= 1024;
        unit++;
    }
    if (unit == 0) {
        snprintf(into, TEXT_NUMBER_BYTES, "%" PRId64 " B", bytes);
    } else {
        print_scaled(into, value, units[unit]);
    }
    return into;
}

void text_paragraph(FILE *out, const char *text, size_t indent, size_t width)
{
    char *clean = text_clean(text);
    if (clean == NULL) {
        return;
    }
    size_t column = 0;
    char *rest = NULL;
    for (char *word = strtok_r(clean, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        size_t length = text_width(word);
        if (column > 0 && column + 1 + length > width) {
            putc('\n', out);
            column = 0;
        }
        if (column == 0) {
            column = (size_t)fprintf(out, "%*s", (int)indent, "");
        } else {
            putc(' ', out);
            column++;
        }
        fputs(word, out);
        column += length;
    }
    putc('\n', out);
    free(clean);
}

const char *text_real(char into[TEXT_NUMBER_BYTES], double value)
{
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(into, TEXT_NUMBER_BYTES, "%.*g", precision, value);
        if (strtod(into, NULL) == value) {
            break;
        }
    }
    return into;
}
