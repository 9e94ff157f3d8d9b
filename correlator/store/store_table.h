/* SPDX-License-Identifier: BSD-2-Clause */
/* The store's tables by number: what each is like (store_table.def), and how rows are added. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "correlator/store/store_private.h"

struct store_table_kind {
    const char *name;
    int columns;
    bool is_long;
    bool is_of_steps;
    bool is_kept;
};

extern const struct store_table_kind store_tables[STORE_TABLES];

/* The statement that adds a row, or to a long table all rows of the table `staged`. */
void store_table_insert(char *sql, size_t bytes, enum store_table table, const char *staged);
