/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of text: collects rows, then prints them aligned. What is too wide for the terminal is cut: spare
 * columns are left out, then the text columns get narrower, then the last columns are left out; a line says so. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "report/form/terminal.h"

struct table;

struct table_heading {
    const char *text;
    bool right; /* numbers */
    bool spare; /* left out before others where the table is too wide */
};

/* `headings` must outlive the table. -ENOMEM after logging. */
int table_create(struct table **table, const struct table_heading *headings, size_t columns_count);

/* The next cell of the row, from left to right; copied and cleaned. -ENOMEM after logging. */
int table_add(struct table *table, const char *text);

void table_print(const struct table *table, FILE *out, const struct terminal *terminal);

/*
 * The same with nothing cut: where the terminal is too narrow each row is a block, a line a column. Where nobody says
 * how wide it is (a pipe, a file) lines are as long as they need to be.
 */
void table_print_whole(const struct table *table, FILE *out, const struct terminal *terminal);

void table_destroy(struct table **table);
