/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to stores. */
#include "tests/unit/correlator/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

int64_t query_number(sqlite3 *store, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t value = -1;

    assert_int_equal(sqlite3_prepare_v2(store, sql, -1, &statement, NULL), SQLITE_OK);
    if (sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}
