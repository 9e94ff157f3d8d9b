/* SPDX-License-Identifier: BSD-2-Clause */
/* Text for people: characters, durations and sizes with units, paragraphs. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_NUMBER_BYTES 32

/*
 * The length in bytes of the character at `text` (not at its end). When *valid is false, these bytes are no UTF-8: the
 * longest part of a character that could still have become one, as Unicode recommends to replace them.
 */
size_t text_character(const char *text, bool *valid);

/* How many columns it takes: characters, each counted as one. */
size_t text_width(const char *text);

/* A copy, to be freed, in which control characters and bytes that are no UTF-8 are '?'. NULL when out of memory. */
char *text_clean(const char *text);

/* "812 ns", "81.2 us", "51.2 ms", "1.20 s": three digits. Returns `into`. */
const char *text_duration(char into[TEXT_NUMBER_BYTES], int64_t duration_ns);

/* "812 B", "1.50 KiB", "16.0 MiB": three digits. Returns `into`. */
const char *text_bytes(char into[TEXT_NUMBER_BYTES], int64_t bytes);

/* Cleaned words, in lines of at most `width` columns, each behind `indent` blanks. */
void text_paragraph(FILE *out, const char *text, size_t indent, size_t width);

/* The shortest of 15, 16 or 17 digits that reads back as the same number. Returns `into`. */
const char *text_real(char into[TEXT_NUMBER_BYTES], double value);
