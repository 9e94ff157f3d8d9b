/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a store for one number; a wrong question ends the test. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* The first column of the first row; -1 of none. */
int64_t query_number(sqlite3 *store, const char *sql);
