/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of the store as files. All are of one snapshot: the report's. */
#include "cli/table_export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/output.h"
#include "wire/log.h"

#define NAMES_SQL                                                                                                      \
    "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' "                     \
    "AND (?1 IS NULL OR name = ?1) ORDER BY name"

struct writing {
    struct report *report;
    const struct table_export_options *options;
    const char *folder; /* NULL: `file` */
    const char *file;
};

static void say(const struct writing *writing, const char *table, const char *path, size_t rows)
{
    struct json *json = &writing->report->json;
    if (!writing->report->as_json) {
        printf("%s: %zu rows of %s\n", path, rows, table);
        return;
    }
    json_object_begin(json, NULL);
    json_text(json, "table", table);
    json_text(json, "file", path);
    json_integer(json, "rows", (int64_t)rows);
    json_object_end(json);
}

static int write_rows(const struct writing *writing, const char *table, FILE *out, size_t *rows)
{
    struct store_query *query = NULL;
    char *sql = NULL;
    if (asprintf(&sql, "SELECT * FROM \"%s\"", table) < 0) {
        return log_error_return(-ENOMEM, "out of memory for a table");
    }
    int result = store_query_open(&query, writing->report->store, sql, NULL, 0);
    free(sql);
    if (result == 0) {
        result = rows_write(query, writing->options->format, out, NULL, rows);
        store_query_close(&query);
    }
    return result;
}

/* Of a table in the folder, or the only file's; to be freed. */
static char *path_of(const struct writing *writing, const char *table)
{
    char *path = NULL;
    if (writing->folder == NULL) {
        return strdup(writing->file);
    }
    return asprintf(&path, "%s/%s.%s", writing->folder, table, writing->options->ending) < 0 ? NULL : path;
}

static int write_table(const struct writing *writing, const char *table)
{
    char *path = path_of(writing, table);
    FILE *out = NULL;
    size_t rows = 0;
    if (path == NULL) {
        return log_error_return(-ENOMEM, "out of memory for a file's name");
    }
    int result = output_open(&out, path);
    if (result == 0) {
        result = write_rows(writing, table, out, &rows);
        int closed = output_close(&out, path, result == 0);
        result = result != 0 ? result : closed;
    }
    if (result == 0 && !output_is_stdout(path)) {
        say(writing, table, path, rows);
    }
    free(path);
    return result;
}

static int write_named(const struct writing *writing, const char *name)
{
    struct store_value wanted = store_text(name);
    struct store_query *query = NULL;
    size_t tables = 0;
    int result = store_query_open(&query, writing->report->store, NAMES_SQL, &wanted, 1);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        tables++;
        result = write_table(writing, store_query_value(query, 0).text);
        if (result != 0) {
            break;
        }
    }
    store_query_close(&query);
    if (result == 0 && tables == 0) {
        return log_error_return(-ENOENT,
                                "the store has no table or view '%s': doc/store.md names them, as does qpscope query "
                                "'SELECT name FROM sqlite_schema'",
                                name);
    }
    return result;
}

static int write_all(const struct writing *writing)
{
    const struct option_list *tables = writing->options->tables;
    int result = tables->count == 0 ? write_named(writing, NULL) : 0;
    for (size_t i = 0; i < tables->count && result == 0; i++) {
        result = write_named(writing, tables->values[i]);
    }
    return result;
}

static int make_folder(const char *path)
{
    struct stat status;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode))) {
        return 0;
    }
    return log_error_return(-errno, "cannot make the folder %s: %s", path, strerror(errno));
}

int table_export(struct report *report, const struct table_export_options *options)
{
    struct writing writing = {.report = report, .options = options};
    char standard[32];
    if (options->tables->count == 1) {
        writing.file = options->output == NULL ? "-" : options->output;
    } else {
        snprintf(standard, sizeof(standard), "qpscope-%s", options->ending);
        writing.folder = options->output == NULL ? standard : options->output;
        int result = make_folder(writing.folder);
        if (result != 0) {
            return result;
        }
    }
    if (report->as_json) {
        json_array_begin(&report->json, "files");
    }
    int result = write_all(&writing);
    if (report->as_json) {
        json_array_end(&report->json);
    }
    return result;
}
