/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one file of cli/ that calls SQLite. Invariant: an open reader holds a read transaction on a file that was seen to
 * be a store of a version that this program reads.
 */
#include "report/read/store_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "correlator/store/store.h"
#include "report/form/text.h"
#include "report/read/store_uri.h"
#include "wire/clock.h"
#include "wire/log.h"

#define BUSY_TIMEOUT_MS       2000
#define PROGRESS_INSTRUCTIONS 100000 /* of SQLite's machine between two looks at the clock: some milliseconds */

struct store_reader {
    sqlite3 *database;
    char *path;
    uint64_t limit_ns; /* of a person's query; 0 = none */
    uint64_t until_ns;
};

struct store_query {
    sqlite3_stmt *statement;
    struct store_reader *reader;
};

static int fail(const struct store_reader *reader)
{
    sqlite3 *database = reader->database;
    char limit[TEXT_NUMBER_BYTES];
    switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return log_error_return(
            -EBUSY, "%s is locked by another program: try again, or look with fuser who has it open", reader->path);
    case SQLITE_NOTADB:
        return log_error_return(-EINVAL, "%s is not a qpscope store: it is no SQLite database; name one with --store",
                                reader->path);
    case SQLITE_CORRUPT:
        return log_error_return(-EBADMSG,
                                "%s is damaged (%s): make it again from the capture files with qpscope replay",
                                reader->path, sqlite3_errmsg(database));
    case SQLITE_NOMEM:
        return log_error_return(-ENOMEM, "%s: out of memory", reader->path);
    case SQLITE_INTERRUPT:
        return log_error_return(-ETIME, "the query took longer than %s: narrow it, or raise --time-limit",
                                text_duration(limit, (int64_t)reader->limit_ns));
    default:
        return log_error_return(-EIO, "cannot read %s: %s", reader->path, sqlite3_errmsg(database));
    }
}

static int check_file(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        int error = -errno;
        if (error == -ENOENT) {
            return log_error_return(error,
                                    "there is no store at %s: start qpscope-correlator, or name one with --store FILE "
                                    "or QPSCOPE_STORE",
                                    path);
        }
        return log_error_return(error, "cannot read the store %s: %s", path, strerror(-error));
    }
    if (!S_ISREG(status.st_mode)) {
        return log_error_return(-EINVAL, "%s is not a qpscope store: it is no regular file", path);
    }
    if (access(path, R_OK) != 0) {
        int error = -errno;
        return log_error_return(error, "cannot read the store %s: %s: run as a user who may", path, strerror(-error));
    }
    return 0;
}

/* A store whose writer has ended, in a directory where we may not write, can be read only as one that never changes. */
static int open_database(struct store_reader *reader, bool immutable)
{
    char *uri = store_uri(reader->path, immutable ? "mode=ro&immutable=1" : "mode=ro");
    if (uri == NULL) {
        return -ENOMEM;
    }
    sqlite3_close(reader->database);
    reader->database = NULL;
    int status = sqlite3_open_v2(uri, &reader->database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    free(uri);
    if (reader->database == NULL) {
        return -ENOMEM;
    }
    sqlite3_busy_timeout(reader->database, BUSY_TIMEOUT_MS);
    if (status == SQLITE_OK) {
        status =
            sqlite3_exec(reader->database, "PRAGMA cache_size = -65536; BEGIN; SELECT count(*) FROM sqlite_schema;",
                         NULL, NULL, NULL);
    }
    return status == SQLITE_OK ? 0 : -EIO;
}

static bool may_not_write_beside(const struct store_reader *reader)
{
    int error = reader->database == NULL ? SQLITE_OK : sqlite3_errcode(reader->database) & 0xff;
    return error == SQLITE_CANTOPEN || error == SQLITE_READONLY;
}

static bool has_log(const struct store_reader *reader)
{
    char *name = NULL;
    if (asprintf(&name, "%s-wal", reader->path) < 0) {
        return true;
    }
    bool found = access(name, F_OK) == 0;
    free(name);
    return found;
}

static int check_version(struct store_reader *reader)
{
    struct store_value identity;
    struct store_value version;
    int result = store_reader_number(reader, "PRAGMA application_id", NULL, 0, &identity);
    if (result == 0) {
        result = store_reader_number(reader, "PRAGMA user_version", NULL, 0, &version);
    }
    struct store_value pages = {0};
    if (result == 0) {
        result = store_reader_number(reader, "PRAGMA page_count", NULL, 0, &pages);
    }
    if (result != 0) {
        return result;
    }
    if (pages.integer == 0) {
        return log_error_return(-EINVAL, "%s is not a qpscope store: it is empty; name one with --store", reader->path);
    }
    if (identity.integer != STORE_APPLICATION_ID) {
        return log_error_return(-EINVAL,
                                "%s is not a qpscope store: it is an SQLite database of another program; name one "
                                "with --store",
                                reader->path);
    }
    if (version.integer < STORE_SCHEMA_VERSION) {
        return log_error_return(-EINVAL,
                                "%s has schema version %" PRId64 ", this qpscope reads version %d: make it again, with "
                                "qpscope replay %s.journal --store FILE or from the capture files",
                                reader->path, version.integer, STORE_SCHEMA_VERSION, reader->path);
    }
    if (version.integer != STORE_SCHEMA_VERSION) {
        return log_error_return(-EINVAL,
                                "%s has schema version %" PRId64 ", this qpscope reads version %d: use the qpscope "
                                "that came with the correlator which wrote it",
                                reader->path, version.integer, STORE_SCHEMA_VERSION);
    }
    return 0;
}

int store_reader_open(struct store_reader **reader, const char *path)
{
    int result = check_file(path);
    if (result != 0) {
        return result;
    }
    struct store_reader *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->path = strdup(path)) == NULL) {
        free(made);
        return log_error_return(-ENOMEM, "%s: out of memory", path);
    }
    result = open_database(made, false);
    if (result != 0 && may_not_write_beside(made) && !has_log(made)) {
        result = open_database(made, true);
    }
    if (result != 0) {
        result = made->database == NULL ? log_error_return(result, "%s: out of memory", path) : fail(made);
    } else {
        result = check_version(made);
    }
    if (result != 0) {
        store_reader_close(&made);
        return result;
    }
    *reader = made;
    return 0;
}

void store_reader_close(struct store_reader **reader)
{
    if (*reader == NULL) {
        return;
    }
    sqlite3_close((*reader)->database);
    free((*reader)->path);
    free(*reader);
    *reader = NULL;
}

static void bind(sqlite3_stmt *statement, int number, const struct store_value *value)
{
    switch (value->kind) {
    case STORE_INTEGER:
        sqlite3_bind_int64(statement, number, value->integer);
        break;
    case STORE_REAL:
        sqlite3_bind_double(statement, number, value->real);
        break;
    case STORE_TEXT:
        sqlite3_bind_text(statement, number, value->text, -1, SQLITE_STATIC);
        break;
    case STORE_NULL:
        break;
    }
}

int store_query_open(struct store_query **query, struct store_reader *reader, const char *sql,
                     const struct store_value *arguments, size_t arguments_count)
{
    struct store_query *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return log_error_return(-ENOMEM, "%s: out of memory", reader->path);
    }
    made->reader = reader;
    if (sqlite3_prepare_v2(reader->database, sql, -1, &made->statement, NULL) != SQLITE_OK) {
        free(made);
        return fail(reader);
    }
    for (size_t i = 0; i < arguments_count; i++) {
        bind(made->statement, (int)i + 1, &arguments[i]);
    }
    *query = made;
    return 0;
}

/* The pragmas that tell of the tables; with an argument behind "=" some of them would set something. */
static bool is_telling_pragma(const char *name, const char *argument)
{
    static const char *const about_a_table[] = {"table_info", "table_xinfo",      "table_list",
                                                "index_list", "foreign_key_list", "index_info"};
    for (size_t i = 0; i < sizeof(about_a_table) / sizeof(about_a_table[0]); i++) {
        if (strcmp(name, about_a_table[i]) == 0) {
            return true;
        }
    }
    return argument == NULL && (strcmp(name, "user_version") == 0 || strcmp(name, "application_id") == 0);
}

static int authorize(void *context, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
    (void)context;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return strcmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_UPDATE: /* so does SQLite itself for a table that it makes of a pragma; by hand it is refused later */
        return strcmp(first, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA:
        return is_telling_pragma(first, second) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

static int has_time_passed(void *context)
{
    const struct store_reader *reader = context;
    return clock_now_ns() > reader->until_ns;
}

static int fail_foreign(const struct store_reader *reader)
{
    int code = sqlite3_errcode(reader->database) & 0xff;
    if (code == SQLITE_AUTH || code == SQLITE_READONLY) {
        return log_error_return(-EINVAL, "the query is refused: a store is only read, with SELECT, WITH, VALUES, "
                                         "EXPLAIN, or PRAGMA table_info and its like");
    }
    if (code == SQLITE_ERROR) {
        return log_error_return(-EINVAL, "the query is wrong: %s", sqlite3_errmsg(reader->database));
    }
    return fail(reader);
}

/* Prepares the only statement of `sql`. */
static int prepare_foreign(struct store_query *query, const char *sql)
{
    struct store_reader *reader = query->reader;
    const char *rest = sql;
    while (*rest != '\0') {
        sqlite3_stmt *statement;
        if (sqlite3_prepare_v2(reader->database, rest, -1, &statement, &rest) != SQLITE_OK) {
            return fail_foreign(reader);
        }
        if (statement != NULL && query->statement != NULL) {
            sqlite3_finalize(statement);
            return log_error_return(-EINVAL, "the query is wrong: it has more than one statement");
        }
        query->statement = statement != NULL ? statement : query->statement;
    }
    if (query->statement == NULL) {
        return log_error_return(-EINVAL, "the query is empty");
    }
    return sqlite3_stmt_readonly(query->statement) != 0
               ? 0
               : log_error_return(-EINVAL, "the query is refused: a store is only read");
}

int store_query_open_foreign(struct store_query **query, struct store_reader *reader, const char *sql,
                             uint64_t limit_ns)
{
    struct store_query *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return log_error_return(-ENOMEM, "%s: out of memory", reader->path);
    }
    made->reader = reader;
    reader->limit_ns = limit_ns;
    reader->until_ns = clock_now_ns() + limit_ns;
    bool is_limited = limit_ns != 0 && reader->until_ns > limit_ns;
    sqlite3_set_authorizer(reader->database, authorize, NULL);
    if (is_limited) {
        sqlite3_progress_handler(reader->database, PROGRESS_INSTRUCTIONS, has_time_passed, reader);
    }
    int result = prepare_foreign(made, sql);
    if (result != 0) {
        store_query_close(&made);
        return result;
    }
    *query = made;
    return 0;
}

size_t store_query_columns(const struct store_query *query)
{
    return (size_t)sqlite3_column_count(query->statement);
}

const char *store_query_name(const struct store_query *query, size_t column)
{
    return sqlite3_column_name(query->statement, (int)column);
}

int store_query_next(struct store_query *query)
{
    switch (sqlite3_step(query->statement)) {
    case SQLITE_ROW:
        return 1;
    case SQLITE_DONE:
        return 0;
    default:
        return fail(query->reader);
    }
}

struct store_value store_query_value(const struct store_query *query, size_t column)
{
    int index = (int)column;
    struct store_value value = {.kind = STORE_NULL};
    switch (sqlite3_column_type(query->statement, index)) {
    case SQLITE_INTEGER:
        value.kind = STORE_INTEGER;
        value.integer = sqlite3_column_int64(query->statement, index);
        break;
    case SQLITE_FLOAT:
        value.kind = STORE_REAL;
        value.real = sqlite3_column_double(query->statement, index);
        break;
    case SQLITE_TEXT:
    case SQLITE_BLOB: /* no table has one; of a person's query it is read as text */
        value.kind = STORE_TEXT;
        value.text = (const char *)sqlite3_column_text(query->statement, index);
        break;
    default:
        break;
    }
    return value;
}

void store_query_close(struct store_query **query)
{
    if (*query == NULL) {
        return;
    }
    sqlite3_finalize((*query)->statement);
    free(*query);
    *query = NULL;
}

int store_reader_number(struct store_reader *reader, const char *sql, const struct store_value *arguments,
                        size_t arguments_count, struct store_value *value)
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, reader, sql, arguments, arguments_count);
    if (result != 0) {
        return result;
    }
    result = store_query_next(query);
    if (result >= 0) {
        *value = result == 1 ? store_query_value(query, 0) : (struct store_value){.kind = STORE_NULL};
        value->text = NULL;
        result = 0;
    }
    store_query_close(&query);
    return result;
}
