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
#include <sys/statvfs.h>

#include "correlator/analysis.h"
#include "correlator/store/staging.h"
#include "correlator/store/store_private.h"
#include "correlator/store/store_table.h"
#include "wire/log.h"

#define BUSY_MS         2000
#define HALVINGS_MAX    8 /* a past step of 256 is left then */
#define DISK_FULL_BYTES (64u << 10)

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
    struct staging *staging; /* rows of the long table `staged` */
    enum store_table staged;
    struct limit limit;
    bool is_full;       /* the write in progress ran into the limit */
    int64_t first_step; /* the number of the first step that is held */
    unsigned halvings;  /* of past steps, in the write in progress */
    bool knows_rows;    /* `written` tells what the file holds */
    uint64_t run;       /* of the analysis that it holds then */
    struct extent same; /* of the write in progress: what that said, too */
    bool is_anew;       /* nothing of what it holds is to be kept */
    char *path;
    int error;       /* of the write in progress */
    bool complained; /* about an error that has not gone away */
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

/* Its own limit, and the disk, are told alike by SQLite. */
static bool is_disk_full(const struct store *store)
{
    struct statvfs disk;

    return statvfs(store->path, &disk) != 0 || disk.f_bavail * disk.f_frsize < DISK_FULL_BYTES;
}

static int complain(struct store *store, const char *doing)
{
    int error = error_of(store->database);

    store->is_full = error == -ENOSPC && store->limit.size_bytes != 0 && !is_disk_full(store);
    if (store->is_full)
        return error; /* less will be tried */
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

/* A merged one is of no journal: nothing could make it again. */
static int check_unmerged(struct store *store)
{
    int64_t sources = 0;
    int error = read_number(store, "SELECT count(*) FROM source", &sources);

    return error != 0 || sources == 0
               ? error
               : log_error_return(-EINVAL, "store %s: it was merged of %lld others: give another file", store->path,
                                  (long long)sources);
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
        return check_unmerged(store);
    log_info("store %s: schema version %lld: made anew with version %d", store->path, (long long)version,
             STORE_SCHEMA_VERSION);
    return make_schema(store);
}

/*
 * ---- rows of long tables: as a table that SQLite selects from (sqlite.org/vtab.html), in half of the time of one
 * statement a row. It is scanned from the first row to the last, and never written by SQL. ----
 */

#define STAGED "staged" /* with columns c0, c1, ... */

struct table {
    sqlite3_vtab base;
    const struct staging *staging;
};

struct scan {
    sqlite3_vtab_cursor base;
    size_t row;
};

static int connect_table(sqlite3 *database, void *staging, int count, const char *const *arguments,
                         sqlite3_vtab **result, char **error)
{
    static const char columns[] =
        "CREATE TABLE " STAGED
        "(c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23)";
    struct table *table = array_zeroed(sizeof *table);

    (void)count;
    (void)arguments;
    (void)error;
    table->staging = staging;
    *result = &table->base;
    return sqlite3_declare_vtab(database, columns);
}

static int disconnect_table(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int choose_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    info->estimatedRows = (sqlite3_int64)staging_count(((struct table *)table)->staging);
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    struct scan *cursor = array_zeroed(sizeof *cursor);

    (void)table;
    *result = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int begin_scan(sqlite3_vtab_cursor *cursor, int index, const char *name, int count, sqlite3_value **values)
{
    (void)index;
    (void)name;
    (void)count;
    (void)values;
    ((struct scan *)cursor)->row = 0;
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
    ((struct scan *)cursor)->row++;
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
    return ((struct scan *)cursor)->row >= staging_count(((struct table *)cursor->pVtab)->staging);
}

static int give_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    size_t row = ((struct scan *)cursor)->row;
    struct value value = staging_value(((struct table *)cursor->pVtab)->staging, row, (size_t)column);

    if (value.kind == VALUE_INTEGER)
        sqlite3_result_int64(context, value.integer);
    else if (value.kind == VALUE_REAL)
        sqlite3_result_double(context, value.real);
    else if (value.kind == VALUE_TEXT)
        sqlite3_result_text(context, value.text, -1, SQLITE_STATIC);
    else
        sqlite3_result_null(context);
    return SQLITE_OK;
}

static int give_number(sqlite3_vtab_cursor *cursor, sqlite3_int64 *number)
{
    *number = (sqlite3_int64)((struct scan *)cursor)->row;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = connect_table,
    .xBestIndex = choose_index,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = begin_scan,
    .xNext = next_row,
    .xEof = is_at_end,
    .xColumn = give_column,
    .xRowid = give_number,
};

static int prepare_inserts(struct store *store)
{
    store->staging = staging_create();
    if (sqlite3_create_module(store->database, STAGED, &module, store->staging) != SQLITE_OK)
        return complain(store, "cannot prepare it");
    for (int i = 0; i < STORE_TABLES; i++) {
        char sql[256];
        store_table_insert(sql, sizeof sql, (enum store_table)i, STAGED);
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
    if (sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        error = complain(store, "cannot open it");
    sqlite3_busy_timeout(store->database, BUSY_MS);
    if (error == 0)
        error = run(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -32768",
                    "cannot open it");
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

static void bind(sqlite3_stmt *insert, int column, struct value value)
{
    switch (value.kind) {
    case VALUE_INTEGER:
        sqlite3_bind_int64(insert, column, value.integer);
        break;
    case VALUE_REAL:
        sqlite3_bind_double(insert, column, value.real);
        break;
    case VALUE_TEXT:
        sqlite3_bind_text(insert, column, value.text, -1, SQLITE_STATIC); /* put at once */
        break;
    case VALUE_NULL:
        sqlite3_bind_null(insert, column);
        break;
    }
}

static int empty(struct store *store, int table)
{
    char sql[64];

    store->written[table].digests.count = 0;
    snprintf(sql, sizeof sql, "DELETE FROM %s", store_tables[table].name);
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
    return is_written(store, table, value_digest(format, values));
}

static void insert(struct store *store, enum store_table table)
{
    if (sqlite3_step(store->inserts[table]) != SQLITE_DONE)
        store->error = complain(store, "cannot write (the analysis goes on, without storing, until it works again)");
    sqlite3_reset(store->inserts[table]);
}

/* The rows that wait go into their table. */
static void flush(struct store *store)
{
    if (store->error == 0 && staging_count(store->staging) > 0)
        insert(store, store->staged);
    staging_clear(store->staging);
}

static void stage(struct store *store, enum store_table table, const char *format, va_list *values)
{
    if (store->staged != table)
        flush(store);
    store->staged = table;
    if (staging_add(store->staging, format, values))
        flush(store);
}

void store_put(struct store *store, enum store_table table, const char *format, ...)
{
    va_list values;

    if (store->error != 0)
        return;
    va_start(values, format);
    bool is_there = store_tables[table].is_long && is_known_row(store, table, format, &values);
    va_end(values);
    if (is_there || store->error != 0)
        return;
    va_start(values, format);
    if (store_tables[table].is_long) {
        stage(store, table, format, &values);
    } else {
        for (int column = 1; format[column - 1] != '\0'; column++)
            bind(store->inserts[table], column, value_take(format[column - 1], &values));
        insert(store, table);
    }
    va_end(values);
}

int64_t store_step(const struct store *store, int32_t step)
{
    return step < 0 ? -1 : store->first_step + step;
}

struct extent store_same(const struct store *store)
{
    return store->same;
}

void store_pass(struct store *store, enum store_table table, size_t rows)
{
    store->written[table].count += rows;
    store->written[table].last_id = (int64_t)store->written[table].count;
}

void store_execute(struct store *store, const char *sql)
{
    if (store->error == 0)
        store->error = run(store, sql, "cannot write");
}

/* Steps that have another number now are written again. */
void store_set_first_step(struct store *store, int64_t number)
{
    if (number != store->first_step && store->same.steps != 0) {
        store->same = (struct extent){0};
        store_execute(store, "DELETE FROM rank_step; DELETE FROM critical_path");
    }
    store->first_step = number;
}

int64_t store_number(struct store *store, const char *sql)
{
    int64_t number = 0;

    if (store->error == 0)
        store->error = read_number(store, sql, &number);
    return number;
}

const struct limit *store_limit(const struct store *store)
{
    return &store->limit;
}

void store_begin_anew(struct store *store)
{
    store->is_anew = true;
}

/* Of a correlator that was here before: times can be told from each other when they are of the same clock. */
static enum store_history history_of(struct store *store, const struct analysis *analysis)
{
    char sql[128];
    int64_t is_same = 0;

    if (store->knows_rows)
        return STORE_HISTORY_OWN;
    snprintf(sql, sizeof sql, "SELECT count(*) FROM meta WHERE key = 'reference_boot' AND value = '0x%llx'",
             (unsigned long long)analysis->timeline.reference_boot);
    if (!store->is_anew && store->error == 0)
        store->error = read_number(store, sql, &is_same);
    return is_same != 0 ? STORE_HISTORY_BEFORE : STORE_HISTORY_OTHER;
}

/* What the job still says as the run before did, where that is what the file holds and nothing is left out. */
static struct extent find_same(const struct store *store, const struct analysis *analysis)
{
    bool goes_on = store->knows_rows && analysis->runs == store->run + 1 && store->halvings == 0 &&
                   store->limit.steps_from_ns == 0 && store->limit.detail_from_ns == 0;

    return goes_on ? segments_same(analysis->segments) : (struct extent){0};
}

static int clear_steps(struct store *store, int table)
{
    char sql[96];
    int64_t first = store->first_step + (int64_t)store->same.steps;

    snprintf(sql, sizeof sql, "DELETE FROM %s WHERE step >= %lld", store_tables[table].name, (long long)first);
    return run(store, sql, "cannot write");
}

/* Empties the tables; the long ones only where it is not known what they hold. */
static int clear(struct store *store)
{
    for (int i = STORE_TABLES - 1; i >= 0; i--) {
        store->written[i].count = 0;
        bool stays = store_tables[i].is_kept || (store_tables[i].is_long && store->knows_rows);
        bool is_part = store_tables[i].is_of_steps && store->same.steps != 0;
        int error = stays ? 0 : is_part ? clear_steps(store, i) : empty(store, i);
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
        if (!store_tables[i].is_long || written->count >= written->digests.count)
            continue;
        written->digests.count = written->count;
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE id > %lld", store_tables[i].name,
                 written->count == 0 ? -1LL : (long long)written->last_id);
        int error = run(store, sql, "cannot write");
        if (error != 0)
            return error;
    }
    return 0;
}

static int write_all(struct store *store, const struct analysis *analysis)
{
    store->is_full = false;
    store->same = find_same(store, analysis);
    store->error = run(store, "BEGIN IMMEDIATE", "cannot write");
    if (store->error != 0)
        return store->error;
    store_keep_past(store, analysis, history_of(store, analysis));
    if (store->halvings > 0)
        store_fold_past(store, store->halvings);
    if (store->error == 0)
        store->error = clear(store);
    if (store->error == 0)
        store_rows(store, analysis);
    flush(store);
    if (store->error == 0)
        store->error = cut(store);
    store_drop_past(store, analysis, store->halvings);
    if (store->error == 0)
        store->error = run(store, "COMMIT", "cannot write");
    store->knows_rows = store->error == 0;
    store->run = analysis->runs;
    if (store->error != 0)
        sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    return store->error;
}

/* ---- within a limit ---- */

/* What goes next: detail, steps, past steps one by one. False when nothing is left that could go. */
static bool leave_out(struct store *store, const struct analysis *analysis)
{
    return limit_tighten(&store->limit, &analysis->job, limit_span_of(&analysis->naming)) ||
           ++store->halvings <= HALVINGS_MAX;
}

/*
 * Lays what the log holds into the database, where no reader needs it, so that the log begins anew. -EBUSY when a
 * reader does, and a write of everything might then outgrow the limit.
 */
static int shorten_log(struct store *store)
{
    uint64_t page_bytes = (uint64_t)store_number(store, "PRAGMA page_size");
    uint64_t file_bytes = page_bytes * (uint64_t)store_number(store, "PRAGMA page_count");
    int frames = 0, laid = 0;

    sqlite3_busy_timeout(store->database, 0);
    int result = sqlite3_wal_checkpoint_v2(store->database, NULL, SQLITE_CHECKPOINT_TRUNCATE, &frames, &laid);
    sqlite3_busy_timeout(store->database, BUSY_MS);
    if (result == SQLITE_OK || frames < 0 || 2 * file_bytes + page_bytes * (uint64_t)frames < store->limit.size_bytes)
        return 0;
    if (!store->complained)
        log_warning("store %s: not written while a reader holds back %d pages of its log (limit %llu bytes)",
                    store->path, frames, (unsigned long long)store->limit.size_bytes);
    store->complained = true;
    return -EBUSY;
}

static int write_within(struct store *store, const struct analysis *analysis)
{
    struct limit before = store->limit;
    int error = shorten_log(store);

    if (error == 0)
        error = write_all(store, analysis);
    while (error == -ENOSPC && store->is_full && leave_out(store, analysis))
        error = write_all(store, analysis);
    store->halvings = 0;
    if (error == -ENOSPC && store->is_full && !store->complained) {
        log_error("store %s: the last steps alone are too large for its limit of %llu bytes: give it more", store->path,
                  (unsigned long long)store->limit.size_bytes);
        store->complained = true;
    }
    if (error == 0 && memcmp(&before, &store->limit, sizeof before) != 0)
        log_debug("store %s: older steps were left out to keep to its limit", store->path);
    return error;
}

/* What a table holds that is made anew by the next write anyhow; steps and verdicts are moved by it. */
static int empty_details(struct store *store)
{
    int error = 0;

    for (int i = STORE_TABLES - 1; i >= 0 && error == 0; i--)
        if (!store_tables[i].is_kept && i != STORE_meta && i != STORE_step && i != STORE_verdict)
            error = empty(store, i);
    return error == 0 ? run(store, "VACUUM", "cannot make it smaller") : error;
}

int store_set_limit(struct store *store, uint64_t size_bytes)
{
    char sql[96];
    int64_t page_bytes = 1, pages = 0, most = 0;
    int error = read_number(store, "PRAGMA page_size", &page_bytes);

    store->limit = (struct limit){.size_bytes = size_bytes};
    if (size_bytes == 0)
        return 0;
    most = (int64_t)limit_file_bytes(&store->limit) / page_bytes;
    if (error == 0)
        error = read_number(store, "PRAGMA page_count", &pages);
    if (error == 0 && pages > most)
        error = empty_details(store);
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %lld; PRAGMA journal_size_limit = 0", (long long)most);
    return error == 0 ? run(store, sql, "cannot limit it") : error;
}

int store_write(struct store *store, const struct analysis *analysis)
{
    store->error = 0;
    int error = store->limit.size_bytes == 0 ? write_all(store, analysis) : write_within(store, analysis);

    if (error != 0)
        return error;
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
    staging_destroy(&(*store)->staging);
    free((*store)->path);
    free(*store);
    *store = NULL;
}
