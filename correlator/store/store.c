/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store's connection to SQLite. Invariant: between calls no transaction is open, so that the file always holds the
 * rows of one whole analysis. What a long table's rows were is remembered as a digest each, so that only those that
 * changed are written again: a job's messages are many, and mostly stay what they are.
 */
#include "correlator/store/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/store/store_private.h"
#include "wire/log.h"

extern const char store_schema[]; /* schema.sql, made a string by the build */

struct written { /* of a long table: what its rows were when they were written last */
    ARRAY(uint64_t) digests;
    size_t count;    /* rows of the write in progress */
    int64_t last_id; /* of the last of these */
};

struct store {
    sqlite3 *database;
    sqlite3_stmt *inserts[STORE_TABLES];
    struct written written[STORE_TABLES];
    bool knows_rows; /* `written` tells what the file holds */
    char *path;
    int error;       /* of the write in progress */
    bool complained; /* about an error that has not gone away */
};

static const struct {
    const char *name;
    int columns;
    bool is_long;
} tables[] = {
#define TABLE(name, columns)      {#name, columns, false},
#define LONG_TABLE(name, columns) {#name, columns, true},
#include "correlator/store/store_table.def"
#undef TABLE
#undef LONG_TABLE
};

static int error_of(sqlite3 *database)
{
    switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return -EINVAL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return -EACCES;
    case SQLITE_NOMEM:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

static int complain(struct store *store, const char *doing)
{
    int error = error_of(store->database);
    if (!store->complained)
        log_error("store %s: %s: %s", store->path, doing, sqlite3_errmsg(store->database));
    store->complained = true;
    return error;
}

static int run(struct store *store, const char *sql, const char *doing)
{
    return sqlite3_exec(store->database, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : complain(store, doing);
}

static int read_number(struct store *store, const char *sql, int64_t *number)
{
    sqlite3_stmt *statement;

    if (sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL) != SQLITE_OK)
        return complain(store, "cannot read it");
    if (sqlite3_step(statement) == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return 0;
}

/* Of an older version. Views go first, since they name tables; indices go with theirs. */
static int drop_schema(struct store *store)
{
    static const char all[] =
        "SELECT group_concat(drop_one, ';') FROM (SELECT 'DROP ' || type || ' \"' || name || '\"' AS drop_one "
        "FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' ORDER BY type DESC)";
    sqlite3_stmt *statement;
    int error = 0;

    if (sqlite3_prepare_v2(store->database, all, -1, &statement, NULL) != SQLITE_OK)
        return complain(store, "cannot make its tables anew");
    char *sql = NULL;
    if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
        sql = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    if (sql != NULL)
        error = run(store, sql, "cannot make its tables anew");
    free(sql);
    return error;
}

static int make_schema(struct store *store)
{
    char mark[160];

    snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;", STORE_APPLICATION_ID,
             STORE_SCHEMA_VERSION);
    int error = run(store, "BEGIN IMMEDIATE;", "cannot start");
    if (error == 0)
        error = drop_schema(store);
    if (error == 0)
        error = run(store, store_schema, "cannot make its tables");
    if (error == 0)
        error = run(store, mark, "cannot make its tables");
    return error;
}

static int check_schema(struct store *store)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t things = 0;
    int error = read_number(store, "PRAGMA application_id", &application);
    if (error == 0)
        error = read_number(store, "PRAGMA user_version", &version);
    if (error == 0)
        error = read_number(store, "SELECT count(*) FROM sqlite_master", &things);
    if (error != 0)
        return error;
    if (things == 0)
        return make_schema(store);
    if (application != STORE_APPLICATION_ID)
        return log_error_return(-EINVAL, "store %s: a database of another program: give another file", store->path);
    if (version > STORE_SCHEMA_VERSION)
        return log_error_return(-EPROTO, "store %s: schema version %lld, this program writes %d: give another file",
                                store->path, (long long)version, STORE_SCHEMA_VERSION);
    if (version == STORE_SCHEMA_VERSION)
        return 0;
    log_info("store %s: schema version %lld: made anew with version %d", store->path, (long long)version,
             STORE_SCHEMA_VERSION);
    return make_schema(store);
}

static int prepare_inserts(struct store *store)
{
    for (int i = 0; i < STORE_TABLES; i++) {
        char sql[256];
        int length = snprintf(sql, sizeof sql, "INSERT%s INTO %s VALUES (?", tables[i].is_long ? " OR REPLACE" : "",
                              tables[i].name);
        for (int column = 1; column < tables[i].columns; column++)
            length += snprintf(sql + length, sizeof sql - (size_t)length, ",?");
        snprintf(sql + length, sizeof sql - (size_t)length, ")");
        if (sqlite3_prepare_v3(store->database, sql, -1, SQLITE_PREPARE_PERSISTENT, &store->inserts[i], NULL) !=
            SQLITE_OK)
            return complain(store, "unlike schema.sql");
    }
    return 0;
}

int store_open(struct store **result, const char *path)
{
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL || (store->path = strdup(path)) == NULL) {
        free(store);
        return log_error_return(-ENOMEM, "store %s: out of memory", path);
    }
    int error = 0;
    if (sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        error = complain(store, "cannot open it");
    sqlite3_busy_timeout(store->database, 2000);
    if (error == 0)
        error = run(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", "cannot open it");
    if (error == 0)
        error = check_schema(store);
    if (error == 0)
        error = prepare_inserts(store);
    if (error != 0) {
        store_close(&store);
        return error;
    }
    *result = store;
    return 0;
}

static void bind(sqlite3_stmt *insert, int column, char kind, va_list *values)
{
    int64_t number;
    int known = 1;

    switch (kind) {
    case 'd':
        sqlite3_bind_double(insert, column, va_arg(*values, double));
        return;
    case 'p':
        known = va_arg(*values, int);
        double share = va_arg(*values, double);
        if (known)
            sqlite3_bind_double(insert, column, share);
        else
            sqlite3_bind_null(insert, column);
        return;
    case 's':
        sqlite3_bind_text(insert, column, va_arg(*values, const char *), -1, SQLITE_STATIC); /* put at once */
        return;
    case 'k':
        known = va_arg(*values, int);
        number = va_arg(*values, int64_t);
        break;
    default:
        number = va_arg(*values, int64_t);
        break;
    }
    if (!known || (kind == 'n' && number == 0) || (kind == 'r' && number < 0))
        sqlite3_bind_null(insert, column);
    else
        sqlite3_bind_int64(insert, column, number);
}

static uint64_t digest_value(uint64_t digest, char kind, va_list *values)
{
    int64_t number = kind == 'k' || kind == 'p' ? va_arg(*values, int) : 0;

    digest = hash_number(digest, (uint64_t)number);
    if (kind == 's') {
        const char *text = va_arg(*values, const char *);
        return text == NULL ? hash_number(digest, 1) : hash_mix(digest, text, strlen(text) + 1);
    }
    if (kind == 'd' || kind == 'p') {
        double real = va_arg(*values, double);
        memcpy(&number, &real, sizeof number);
    } else {
        number = va_arg(*values, int64_t);
    }
    return hash_number(digest, (uint64_t)number);
}

static uint64_t digest_row(const char *format, va_list *values)
{
    uint64_t digest = HASH_START;

    for (const char *kind = format; *kind != '\0'; kind++)
        digest = digest_value(digest, *kind, values);
    return digest;
}

static int empty(struct store *store, int table)
{
    char sql[64];

    store->written[table].digests.count = 0;
    snprintf(sql, sizeof sql, "DELETE FROM %s", tables[table].name);
    return run(store, sql, "cannot write");
}

/*
 * Whether the file has this row of a long table already; from now on it will. When the first row changed, a clock was
 * laid anew, and with it all others change too: it is cheaper to begin with an empty table.
 */
static bool is_written(struct store *store, enum store_table table, uint64_t digest)
{
    struct written *written = &store->written[table];
    size_t row = written->count++;

    if (row < written->digests.count && written->digests.items[row] == digest)
        return true;
    if (row == 0 && written->digests.count > 0)
        store->error = empty(store, table);
    if (row == written->digests.count)
        array_add(&written->digests);
    written->digests.items[row] = digest;
    return false;
}

static bool is_known_row(struct store *store, enum store_table table, const char *format, va_list *values)
{
    va_list first;

    va_copy(first, *values);
    store->written[table].last_id = va_arg(first, int64_t);
    va_end(first);
    return is_written(store, table, digest_row(format, values));
}

void store_put(struct store *store, enum store_table table, const char *format, ...)
{
    sqlite3_stmt *insert = store->inserts[table];
    va_list values;

    if (store->error != 0)
        return;
    va_start(values, format);
    bool is_there = tables[table].is_long && is_known_row(store, table, format, &values);
    va_end(values);
    if (is_there || store->error != 0)
        return;
    va_start(values, format);
    for (int column = 1; format[column - 1] != '\0'; column++)
        bind(insert, column, format[column - 1], &values);
    va_end(values);
    if (sqlite3_step(insert) != SQLITE_DONE)
        store->error = complain(store, "cannot write (the analysis goes on, without storing, until it works again)");
    sqlite3_reset(insert);
}

/* Empties the tables; the long ones only where it is not known what they hold. */
static int clear(struct store *store)
{
    for (int i = STORE_TABLES - 1; i >= 0; i--) {
        store->written[i].count = 0;
        int error = tables[i].is_long && store->knows_rows ? 0 : empty(store, i);
        if (error != 0)
            return error;
    }
    return 0;
}

/* Takes away what long tables had more rows of than this time. */
static int cut(struct store *store)
{
    for (int i = 0; i < STORE_TABLES; i++) {
        struct written *written = &store->written[i];
        char sql[96];
        if (!tables[i].is_long || written->count >= written->digests.count)
            continue;
        written->digests.count = written->count;
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE id > %lld", tables[i].name,
                 written->count == 0 ? -1LL : (long long)written->last_id);
        int error = run(store, sql, "cannot write");
        if (error != 0)
            return error;
    }
    return 0;
}

int store_write(struct store *store, const struct analysis *analysis)
{
    store->error = run(store, "BEGIN IMMEDIATE", "cannot write");
    if (store->error != 0)
        return store->error;
    store->error = clear(store);
    if (store->error == 0)
        store_rows(store, analysis);
    if (store->error == 0)
        store->error = cut(store);
    if (store->error == 0)
        store->error = run(store, "COMMIT", "cannot write");
    store->knows_rows = store->error == 0;
    if (store->error != 0) {
        sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
        return store->error;
    }
    if (store->complained)
        log_info("store %s: writes again", store->path);
    store->complained = false;
    return 0;
}

void store_close(struct store **store)
{
    if (*store == NULL)
        return;
    for (int i = 0; i < STORE_TABLES; i++) {
        sqlite3_finalize((*store)->inserts[i]);
        array_fini(&(*store)->written[i].digests);
    }
    sqlite3_close((*store)->database);
    free((*store)->path);
    free(*store);
    *store = NULL;
}
