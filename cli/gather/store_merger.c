/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one file of cli/ that calls SQLite. The store is the main database, each source in turn is attached as `source`,
 * read only; what has to be known of all of them at once is in temporary tables. The statement that copies a table is
 * made by one, of what the schema says of its columns and merge_column.def: a column that neither tells of is refused.
 */
#include "cli/gather/store_merger.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "correlator/store/store.h"
#include "report/read/store_uri.h"
#include "wire/log.h"

#define COPY_STEPS_APART 10 /* so that no view takes the last step of one for one just before the first of the next */

struct merging {
    sqlite3 *database;
    const char *path; /* that is being read */
    struct store_source *sources;
    size_t count;
};

static const char start[] = "CREATE TEMP TABLE rule (name TEXT PRIMARY KEY, kind TEXT);"
                            "CREATE TEMP TABLE base (name TEXT PRIMARY KEY, base INTEGER);"
                            "CREATE TEMP TABLE named (number INTEGER PRIMARY KEY, reference_boot TEXT, realtime_ns "
                            "INTEGER, pair_bound_ns INTEGER,"
                            " last_ns INTEGER);"
                            "CREATE TEMP TABLE heard (number INTEGER, boot_id TEXT, offset_ns INTEGER, bound_ns "
                            "INTEGER, drift_ppb INTEGER, middle_ns INTEGER);"
                            "CREATE TEMP TABLE talked (number INTEGER, identity TEXT);"
                            "CREATE TEMP TABLE fact (number INTEGER, key TEXT, value TEXT);"
                            "INSERT INTO rule VALUES "
#define COLUMN(name, kind) "('" #name "', '" #kind "'),"
#include "cli/gather/merge_column.def"
#undef COLUMN
                            "('', '')";

/* What is known of one source before any is copied; ?1: its number. */
static const char *const survey[] = {
    "INSERT INTO temp.named SELECT ?1, (SELECT value FROM source.meta WHERE key = 'reference_boot'),"
    " (SELECT CAST(value AS INTEGER) FROM source.meta WHERE key = 'realtime_minus_reference_ns'),"
    " (SELECT bound_ns + at_bound_ns FROM source.clock_pair ORDER BY rowid LIMIT 1), (SELECT max(last_ns) FROM "
    "source.emitter)",
    ("INSERT INTO temp.heard SELECT ?1, boot_id, clock_offset_ns, clock_bound_ns, coalesce(clock_drift_ppb, 0),"
     " started_ns / 2 + last_ns / 2 - clock_offset_ns FROM source.emitter"),
    "INSERT INTO temp.talked SELECT ?1, identity FROM source.communicator",
};

/* How ?2's times come onto ?1's clock: tie, shift, bound; the best first. */
static const char ties[] =
    "SELECT 1, 0, 0 FROM temp.named AS a, temp.named AS b WHERE a.number = ?1 AND b.number = ?2"
    " AND a.reference_boot = b.reference_boot AND a.reference_boot <> '0x0' "
    "UNION ALL SELECT * FROM (SELECT 2, a.offset_ns - b.offset_ns, a.bound_ns + b.bound_ns"
    " + max(abs(a.drift_ppb), abs(b.drift_ppb)) * abs(a.middle_ns - b.middle_ns) / 1000000000 AS bound_ns"
    " FROM temp.heard AS a JOIN temp.heard AS b USING (boot_id) WHERE a.number = ?1 AND b.number = ?2"
    " AND a.offset_ns IS NOT NULL AND b.offset_ns IS NOT NULL ORDER BY bound_ns LIMIT 1) "
    "UNION ALL SELECT 3, b.realtime_ns - a.realtime_ns, a.pair_bound_ns + b.pair_bound_ns"
    " FROM temp.named AS a, temp.named AS b WHERE a.number = ?1 AND b.number = ?2"
    " AND b.realtime_ns - a.realtime_ns + a.pair_bound_ns + b.pair_bound_ns IS NOT NULL ORDER BY 1 LIMIT 1";

/* Stores of one job, and whether the second is a state of the first (0: no, 1: an earlier one, 2: a later one). */
static const char one_job[] =
    "SELECT a.number, b.number, CASE WHEN a.reference_boot IS NOT b.reference_boot OR NOT EXISTS"
    " (SELECT 1 FROM temp.heard AS x JOIN temp.heard AS y USING (boot_id) WHERE x.number = a.number AND y.number = "
    "b.number)"
    " THEN 0 WHEN b.last_ns <= a.last_ns THEN 1 ELSE 2 END FROM temp.named AS a, temp.named AS b WHERE a.number < "
    "b.number"
    " AND EXISTS (SELECT 1 FROM temp.talked AS x JOIN temp.talked AS y USING (identity)"
    " WHERE x.number = a.number AND y.number = b.number) ORDER BY 1, 2";

static const char unknown_columns[] =
    "SELECT group_concat(t.name || '.' || c.name, ', ') FROM main.sqlite_schema AS t, pragma_table_info(t.name) AS c"
    " WHERE t.type = 'table' AND t.name NOT IN ('source', 'source_rows') AND (c.name GLOB '*_ns' OR c.name GLOB "
    "'*rank')"
    " AND c.name NOT IN (SELECT name FROM temp.rule)";

/* The tables that are copied; those whose rows count from their own number, in the order in which they refer to others.
 */
#define COPIED                                                                                                         \
    "FROM main.sqlite_schema AS t WHERE t.type = 'table' AND t.name NOT GLOB 'sqlite_*'"                               \
    " AND t.name NOT IN ('meta', 'source', 'source_rows')"
/* A single column of whole numbers as key is the row's number under another name. */
#define OWN_KEY                                                                                                        \
    "(SELECT max(name) FROM pragma_table_info(t.name) WHERE pk > 0 AND type = 'INTEGER' HAVING count(*) = 1"           \
    " AND (SELECT count(*) FROM pragma_table_info(t.name) WHERE pk > 0) = 1)"

static const char tables[] =
    "SELECT t.name, coalesce(" OWN_KEY ", 'rowid') IN ('id', 'rowid') " COPIED " ORDER BY t.rowid";

/* The statement that copies the table ?1; ?2: what is added to times, ?3: to ranks. */
static const char copy[] =
    "SELECT format('INSERT INTO main.\"%w\" (%s) SELECT %s FROM source.\"%w\"', t.name,"
    " CASE WHEN key IS NULL THEN 'rowid, ' ELSE '' END || group_concat(format('\"%w\"', c.name), ', '),"
    " CASE WHEN key IS NULL THEN format('rowid + (SELECT base FROM temp.base WHERE name = %Q), ', t.name) ELSE '' END "
    "||"
    " group_concat(format(CASE WHEN c.name = 'id' AND c.pk THEN '\"%w\" + (SELECT base FROM temp.base WHERE name = %Q)'"
    " WHEN f.\"to\" = 'id' THEN '\"%w\" + (SELECT base FROM temp.base WHERE name = %Q)'"
    " WHEN r.kind = 'operation' THEN '\"%w\" + (SELECT base FROM temp.base WHERE name = ''operation'')'"
    " WHEN r.kind = 'row' THEN '\"%w\" + (SELECT base FROM temp.base WHERE name = source)'"
    " WHEN r.kind = 'time' THEN '\"%w\" + %d' WHEN r.kind = 'rank' THEN '\"%w\" + %d'"
    " WHEN r.kind IN ('ranks', 'words') THEN 'moved_ranks(\"%w\", %d)' ELSE '\"%w\"' END, c.name,"
    " CASE WHEN c.name = 'id' AND c.pk THEN t.name WHEN f.\"to\" = 'id' THEN f.\"table\" WHEN r.kind = 'time' THEN ?2 "
    "ELSE ?3 END), ', '),"
    " t.name) FROM (SELECT ?1 AS name) AS t, (SELECT " OWN_KEY
    " AS key FROM (SELECT ?1 AS name) AS t), pragma_table_info(t.name) AS c"
    " LEFT JOIN pragma_foreign_key_list(t.name) AS f ON f.\"from\" = c.name LEFT JOIN temp.rule AS r ON r.name = "
    "c.name";

/* Of the facts about the whole: what adds up does, what begins somewhere begins at the last, and what differs is left
 * out. */
static const char facts[] =
    "INSERT INTO main.meta SELECT key, CASE"
    " WHEN key GLOB 'records_*' OR key GLOB '*_contradicted' OR key GLOB '*_rejected' OR key = 'ranks_count'"
    " THEN CAST(sum(CAST(value AS INTEGER)) AS TEXT) WHEN key GLOB '*_from_ns' THEN CAST(max(CAST(value AS INTEGER)) "
    "AS TEXT)"
    " WHEN key GLOB '*_minus_reference_ns' OR key = 'reference_boot' THEN min(CASE WHEN number = (SELECT min(number) "
    "FROM temp.fact) THEN value END)"
    " WHEN key = 'generator' THEN 'qpscope merge " QPSCOPE_VERSION "'"
    " WHEN count(DISTINCT value) = 1 AND count(*) = (SELECT count(DISTINCT number) FROM temp.fact) THEN min(value) END "
    "AS told"
    " FROM temp.fact GROUP BY key HAVING told IS NOT NULL";

static int fail(const struct merging *merging)
{
    int code = sqlite3_errcode(merging->database) & 0xff;
    int error = code == SQLITE_FULL      ? -ENOSPC
                : code == SQLITE_CORRUPT ? -EBADMSG
                : code == SQLITE_NOTADB  ? -EINVAL
                : code == SQLITE_NOMEM   ? -ENOMEM
                                         : -EIO;
    return log_error_return(error, "cannot merge %s: %s", merging->path, sqlite3_errmsg(merging->database));
}

static int run(struct merging *merging, const char *sql)
{
    return sqlite3_exec(merging->database, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(merging);
}

/* A statement with two numbers bound to ?1 and ?2 where it has these; NULL after logging. */
static sqlite3_stmt *prepare(struct merging *merging, const char *sql, int64_t first, int64_t second)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(merging->database, sql, -1, &statement, NULL) != SQLITE_OK) {
        fail(merging);
        return NULL;
    }
    sqlite3_bind_int64(statement, 1, first);
    sqlite3_bind_int64(statement, 2, second);
    return statement;
}

/* Its first column as a number and as text, to be freed; -ENOENT without a row, else -errno after logging. */
static int read_one(struct merging *merging, sqlite3_stmt *statement, int64_t *number, char **text)
{
    if (statement == NULL) {
        return -EIO;
    }
    int status = sqlite3_step(statement);
    int result = status == SQLITE_ROW ? 0 : status == SQLITE_DONE ? -ENOENT : fail(merging);
    if (result == 0 && number != NULL) {
        *number = sqlite3_column_int64(statement, 0);
    }
    if (result == 0 && text != NULL) {
        const char *found = (const char *)sqlite3_column_text(statement, 0);
        *text = found == NULL ? NULL : strdup(found);
    }
    sqlite3_finalize(statement);
    return result;
}

static int read_number(struct merging *merging, const char *sql, int64_t *number)
{
    return read_one(merging, prepare(merging, sql, 0, 0), number, NULL);
}

/* ---- ranks in text: each number of a list, and in words those behind what names ranks ---- */

static bool is_behind(const char *text, const char *at, const char *word)
{
    size_t length = strlen(word);

    return (size_t)(at - text) >= length && memcmp(at - length, word, length) == 0;
}

/* `last`: the end of the number before, when it was one of several ranks; else NULL. */
static bool goes_on(const char *text, const char *at, const char *last)
{
    return last != NULL &&
           ((at - last == 2 && is_behind(text, at, ", ")) || (at - last == 5 && is_behind(text, at, " and ")));
}

static bool begins_several(const char *text, const char *at)
{
    return is_behind(text, at, "ranks ") || is_behind(text, at, "offered by: ") || is_behind(text, at, "missing: ");
}

static void move_ranks(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    const char *text = (const char *)sqlite3_value_text(values[0]);
    int64_t added = sqlite3_value_int64(values[1]);
    if (text == NULL) {
        return;
    }
    sqlite3_str *moved = sqlite3_str_new(sqlite3_context_db_handle(context));
    bool is_list = text[strspn(text, "0123456789, ")] == '\0';
    const char *last = NULL;
    for (const char *at = text; *at != '\0';) {
        const char *end = at + strspn(at, "0123456789");
        bool is_one = is_list || is_behind(text, at, "rank ");
        bool is_several = begins_several(text, at) || goes_on(text, at, last);
        bool is_count = *end == '.' || strncmp(end, " more", 5) == 0;
        if (end == at || is_count || !(is_one || is_several)) {
            sqlite3_str_appendchar(moved, 1, *at++);
            continue;
        }
        sqlite3_str_appendf(moved, "%lld", strtoll(at, NULL, 10) + added);
        at = end;
        last = is_several ? end : NULL;
    }
    sqlite3_result_text(context, sqlite3_str_finish(moved), -1, sqlite3_free);
}

/* ---- one source at a time ---- */

static int attach(struct merging *merging, const char *path)
{
    merging->path = path;
    char *uri = store_uri(path, "mode=ro");
    char *sql = uri == NULL ? NULL : sqlite3_mprintf("ATTACH %Q AS source", uri);
    int result = sql == NULL ? log_error_return(-ENOMEM, "out of memory for a file's name") : run(merging, sql);
    sqlite3_free(sql);
    free(uri);
    return result;
}

static int detach(struct merging *merging, int result)
{
    sqlite3_exec(merging->database, "DETACH source", NULL, NULL, NULL);
    return result;
}

static int check_version(const struct merging *merging, int64_t version)
{
    if (version > STORE_SCHEMA_VERSION) {
        return log_error_return(-EPROTO,
                                "%s has schema version %" PRId64 ", this qpscope merges version %d: use the qpscope "
                                "that came with the correlator which wrote it",
                                merging->path, version, STORE_SCHEMA_VERSION);
    }
    return version == STORE_SCHEMA_VERSION
               ? 0
               : log_error_return(-EPROTO,
                                  "%s has schema version %" PRId64 ", this qpscope merges version %d: make it again, "
                                  "with qpscope replay %s.journal --store FILE or from the capture files",
                                  merging->path, version, STORE_SCHEMA_VERSION, merging->path);
}

static int check_source(struct merging *merging)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t sources = 0;
    char *state = NULL;
    int result = read_number(merging, "PRAGMA source.application_id", &application);
    result = result == 0 ? read_number(merging, "PRAGMA source.user_version", &version) : result;
    if (result != 0) {
        return result;
    }
    if (application != STORE_APPLICATION_ID) {
        return log_error_return(-EINVAL, "%s is not a qpscope store", merging->path);
    }
    result = check_version(merging, version);
    if (result != 0) {
        return result;
    }
    result = read_one(merging, prepare(merging, "PRAGMA source.quick_check(1)", 0, 0), NULL, &state);
    if (result == 0 && (state == NULL || strcmp(state, "ok") != 0)) {
        result =
            log_error_return(-EBADMSG, "%s is damaged (%s): make it again from the capture files with qpscope replay",
                             merging->path, state == NULL ? "it cannot be read" : state);
    }
    free(state);
    result = result == 0 ? read_number(merging, "SELECT count(*) FROM source.source", &sources) : result;
    return sources == 0 || result != 0
               ? result
               : log_error_return(-EINVAL, "%s is a merged store itself: name those that it was made of",
                                  merging->path);
}

static int look_at(struct merging *merging, size_t number)
{
    int result = attach(merging, merging->sources[number].path);
    result = result == 0 ? check_source(merging) : result;
    for (size_t i = 0; i < sizeof(survey) / sizeof(survey[0]) && result == 0; i++) {
        result = read_one(merging, prepare(merging, survey[i], (int64_t)number, 0), NULL, NULL);
        result = result == -ENOENT ? 0 : result;
    }
    return detach(merging, result);
}

/* ---- which of them go together ---- */

static int refuse_one_job(const struct store_source *a, const struct store_source *b)
{
    return log_error_return(
        -EEXIST,
        "%s and %s are of one job: its steps and verdicts follow from all that is known of it together, so "
        "merge what they were made of: qpscope merge -o job.capture %s %s && qpscope replay job.capture",
        a->path, b->path, a->path, b->path);
}

static int find_one_job(struct merging *merging)
{
    sqlite3_stmt *statement = prepare(merging, one_job, 0, 0);
    int result = statement == NULL ? -EIO : 0;
    while (result == 0 && sqlite3_step(statement) == SQLITE_ROW) {
        struct store_source *a = &merging->sources[sqlite3_column_int64(statement, 0)];
        struct store_source *b = &merging->sources[sqlite3_column_int64(statement, 1)];
        int64_t state = sqlite3_column_int64(statement, 2);
        if (state == 0) {
            result = refuse_one_job(a, b);
        } else {
            *(state == 1 ? &b->later : &a->later) = (state == 1 ? a : b)->path;
        }
    }
    sqlite3_finalize(statement);
    return result;
}

static int tie(struct merging *merging, size_t first, size_t number)
{
    struct store_source *source = &merging->sources[number];
    sqlite3_stmt *statement = first == number ? NULL : prepare(merging, ties, (int64_t)first, (int64_t)number);
    if (statement == NULL) {
        return first == number ? 0 : -EIO;
    }
    int result = 0;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        source->tie = (enum store_tie)sqlite3_column_int(statement, 0);
        source->shift_ns = sqlite3_column_int64(statement, 1);
        source->bound_ns = sqlite3_column_int64(statement, 2);
    } else {
        result = log_error_return(
            -ENODATA,
            "the times of %s and %s cannot be compared: they are of different clocks, no agent was heard by "
            "both, and one of them has none beside CLOCK_REALTIME",
            merging->sources[first].path, source->path);
    }
    sqlite3_finalize(statement);
    return result;
}

/* ---- copying ---- */

/* Behind the last row of each table, and the last rank of all. */
static int measure(struct merging *merging, int64_t *first_rank)
{
    char *sql = NULL;
    int result = run(merging, "DELETE FROM temp.base");
    result =
        result == 0
            ? read_one(
                  merging,
                  prepare(merging,
                          "SELECT group_concat(format('INSERT INTO temp.base SELECT %Q, coalesce(max(rowid) + 1, 0) "
                          "FROM main.\"%w\"', t.name, t.name), ';') " COPIED,
                          0, 0),
                  NULL, &sql)
            : result;
    result = result == 0 ? run(merging, sql) : result;
    free(sql);
    char *apart =
        sqlite3_mprintf("UPDATE temp.base SET base = base + %d WHERE name = 'step' AND base > 0", COPY_STEPS_APART);
    result = result == 0 ? run(merging, apart) : result;
    sqlite3_free(apart);
    sql = NULL;
    result =
        result == 0
            ? read_one(
                  merging,
                  prepare(
                      merging,
                      "SELECT 'SELECT coalesce(max(r) + 1, 0) FROM (' || group_concat(format('SELECT max(\"%w\") AS "
                      "r FROM main.\"%w\"', c.name, t.name), ' UNION ALL ') || ')' FROM main.sqlite_schema AS t, "
                      "pragma_table_info(t.name) AS c JOIN temp.rule AS k ON k.name = c.name AND k.kind = 'rank' "
                      "WHERE t.type = 'table'",
                      0, 0),
                  NULL, &sql)
            : result;
    result = result == 0 ? read_number(merging, sql, first_rank) : result;
    free(sql);
    return result;
}

static int copy_table(struct merging *merging, size_t number, const char *table, bool is_numbered)
{
    struct store_source *source = &merging->sources[number];
    char *sql = NULL;
    sqlite3_stmt *statement = prepare(merging, copy, 0, source->shift_ns);
    if (statement == NULL) {
        return -EIO;
    }
    sqlite3_bind_text(statement, 1, table, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 3, source->first_rank);
    int result = read_one(merging, statement, NULL, &sql);
    result = result == 0 ? run(merging, sql) : result;
    free(sql);
    int64_t rows = sqlite3_changes64(merging->database);
    if (result != 0 || rows == 0) {
        return result;
    }
    source->rows += rows;
    if (!is_numbered) {
        return 0;
    }
    char *range = sqlite3_mprintf(
        "INSERT INTO main.source_rows SELECT %lld, %Q, min(rowid), max(rowid) FROM main.\"%w\" WHERE rowid >= "
        "(SELECT base FROM temp.base WHERE name = %Q)",
        (long long)number + 1, table, table, table);
    result = run(merging, range);
    sqlite3_free(range);
    return result;
}

static int copy_tables(struct merging *merging, size_t number)
{
    sqlite3_stmt *statement = prepare(merging, tables, 0, 0);
    int result = statement == NULL ? -EIO : 0;
    while (result == 0 && sqlite3_step(statement) == SQLITE_ROW) {
        result = copy_table(merging, number, (const char *)sqlite3_column_text(statement, 0),
                            sqlite3_column_int(statement, 1) != 0);
    }
    sqlite3_finalize(statement);
    return result;
}

static int copy_source(struct merging *merging, size_t number)
{
    struct store_source *source = &merging->sources[number];
    int result = attach(merging, source->path);
    result = result == 0 ? run(merging, "BEGIN") : result;
    result = result == 0 ? measure(merging, &source->first_rank) : result;
    char *sql = sqlite3_mprintf(
        "INSERT INTO main.source SELECT %lld, %Q, (SELECT value FROM source.meta WHERE key = 'reference_boot'), "
        "%Q, %lld, %lld, %lld; INSERT INTO temp.fact SELECT %lld, key, value FROM source.meta",
        (long long)number + 1, source->path, store_tie_name(source->tie), (long long)source->shift_ns,
        (long long)source->bound_ns, (long long)source->first_rank, (long long)number);
    result = result == 0 ? run(merging, sql) : result;
    sqlite3_free(sql);
    result = result == 0 ? copy_tables(merging, number) : result;
    result = result == 0 ? run(merging, "COMMIT") : result;
    return detach(merging, result);
}

/* ---- the whole ---- */

static int open_output(struct merging *merging, const char *output)
{
    struct store *store = NULL;
    int result = store_open(&store, output);
    store_close(&store);
    merging->path = output;
    if (result == 0 &&
        sqlite3_open_v2(output, &merging->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL) != SQLITE_OK) {
        result = fail(merging);
    }
    if (result == 0) {
        result = run(merging, "PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY");
    }
    if (result == 0 && sqlite3_create_function(merging->database, "moved_ranks", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                               NULL, move_ranks, NULL, NULL) != SQLITE_OK) {
        result = fail(merging);
    }
    return result == 0 ? run(merging, start) : result;
}

static int check_columns(struct merging *merging)
{
    char *unknown = NULL;
    int result = read_one(merging, prepare(merging, unknown_columns, 0, 0), NULL, &unknown);
    if (result == 0 && unknown != NULL) {
        result = log_error_return(-ENOTSUP, "stores of this version cannot be merged: it is not known what %s hold",
                                  unknown);
    }
    free(unknown);
    return result;
}

static int check_references(struct merging *merging)
{
    char *table = NULL;
    int result = read_one(merging, prepare(merging, "PRAGMA main.foreign_key_check", 0, 0), NULL, &table);
    if (result == 0) {
        result = log_error_return(-EBADMSG, "a source is damaged: rows of %s refer to what is not there", table);
    }
    free(table);
    return result == -ENOENT ? 0 : result;
}

static int merge(struct merging *merging)
{
    size_t first = SIZE_MAX;
    int result = check_columns(merging);
    for (size_t i = 0; i < merging->count && result == 0; i++) {
        result = look_at(merging, i);
    }
    result = result == 0 ? find_one_job(merging) : result;
    for (size_t i = 0; i < merging->count && result == 0; i++) {
        if (merging->sources[i].later != NULL) {
            continue;
        }
        first = first == SIZE_MAX ? i : first;
        result = tie(merging, first, i);
        result = result == 0 ? copy_source(merging, i) : result;
    }
    merging->path = "the facts of each";
    result = result == 0 ? run(merging, facts) : result;
    return result == 0 ? check_references(merging) : result;
}

const char *store_tie_name(enum store_tie tie)
{
    static const char *const names[] = {"first", "one clock", "agent", "realtime"};
    return names[tie];
}

static void remove_all(const char *output)
{
    char path[4096];
    output_remove(output);
    snprintf(path, sizeof(path), "%s-wal", output);
    output_remove(path);
    snprintf(path, sizeof(path), "%s-shm", output);
    output_remove(path);
}

int store_merge(const char *output, struct store_source *sources, size_t count)
{
    struct merging merging = {.sources = sources, .count = count};
    int result = open_output(&merging, output);
    result = result == 0 ? merge(&merging) : result;
    sqlite3_close(merging.database);
    if (result != 0) {
        remove_all(output);
    }
    return result;
}
