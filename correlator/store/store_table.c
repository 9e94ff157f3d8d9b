/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: a table has as many columns as schema.sql gives it. */
#include "correlator/store/store_table.h"

#include <stdio.h>
#include <string.h>

const struct store_table_kind store_tables[STORE_TABLES] = {
#define TABLE(name, columns)      {#name, columns, false, false, false},
#define LONG_TABLE(name, columns) {#name, columns, true, false, false},
#define STEP_TABLE(name, columns) {#name, columns, false, true, false},
#define KEPT_TABLE(name, columns) {#name, columns, false, false, true},
#include "correlator/store/store_table.def"
#undef TABLE
#undef LONG_TABLE
#undef STEP_TABLE
#undef KEPT_TABLE
};

/* "VALUES (?,?)", or of a long table "SELECT c0,c1 FROM staged". */
void store_table_insert(char *sql, size_t bytes, enum store_table table, const char *staged)
{
    bool is_long = store_tables[table].is_long;
    int length = snprintf(sql, bytes, "INSERT%s INTO %s %s", is_long ? " OR REPLACE" : "", store_tables[table].name,
                          is_long ? "SELECT " : "VALUES (");

    for (int column = 0; column < store_tables[table].columns; column++) {
        const char *comma = column == 0 ? "" : ",";
        length += is_long ? snprintf(sql + length, bytes - (size_t)length, "%sc%d", comma, column)
                          : snprintf(sql + length, bytes - (size_t)length, "%s?", comma);
    }
    snprintf(sql + length, bytes - (size_t)length, is_long ? " FROM " : ")");
    if (is_long)
        snprintf(sql + strlen(sql), bytes - strlen(sql), "%s", staged);
}
