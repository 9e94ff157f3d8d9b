/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The archive and its manifest. Invariant: a file is aligned by its host's CLOCK_REALTIME as that host's agents told it
 * beside the job's clock, or it is refused: none is laid beside the job on a guess.
 */
#include "cli/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/archive.h"
#include "cli/output.h"
#include "report/form/json.h"
#include "wire/log.h"

#define TRACE_NAME   "qpscope.pftrace"
#define HOST_BYTES   256
#define BASE_KEY     "\"baseTimeNanoseconds\""
#define ACROSS_BYTES 128 /* the key and its number may lie across two readings */

struct addition {
    char host[HOST_BYTES];
    const char *path;
    const char *name;  /* in the archive */
    bool is_json;      /* its times are of one clock; else it has clocks of its own */
    int64_t offset_ns; /* added to its times they are the job's CLOCK_REALTIME */
};

/* By how much the host's CLOCK_REALTIME was ahead of the job's, when the job began. */
#define AHEAD                                                                                                          \
    "SELECT c.realtime_ns - c.at_ns - (SELECT CAST(value AS INTEGER) FROM meta "                                       \
    "WHERE key = 'realtime_minus_reference_ns') FROM clock_pair AS c JOIN emitter AS e ON e.id = c.emitter "           \
    "WHERE e.host = ?1 AND e.clock_offset_ns IS NOT NULL "                                                             \
    "ORDER BY abs(c.at_ns - coalesce((SELECT min(start_ns) FROM step), 0)), e.id LIMIT 1"

static int find_ahead(struct store_reader *store, const char *host, int64_t *ahead_ns)
{
    const struct store_value argument = {.kind = STORE_TEXT, .text = host};
    struct store_query *query = NULL;
    int result = store_query_open(&query, store, AHEAD, &argument, 1);
    if (result != 0) {
        return result;
    }
    result = store_query_next(query);
    struct store_value value = {.kind = STORE_NULL};
    if (result == 1) {
        value = store_query_value(query, 0);
    }
    store_query_close(&query);
    if (result >= 0 && value.kind != STORE_INTEGER) {
        return log_error_return(-ENOENT,
                                "--add: no agent of host %s told its clock beside the job's; hosts stand in "
                                "'qpscope query \"SELECT DISTINCT host FROM emitter\"'",
                                host);
    }
    *ahead_ns = value.integer;
    return result < 0 ? result : 0;
}

/* PyTorch's profiler counts its times from a moment that stands in the file, or else from the epoch. */
static int64_t find_base(FILE *file)
{
    char window[65536 + 1];
    size_t kept = 0;
    size_t got;
    while ((got = fread(window + kept, 1, sizeof(window) - 1 - kept, file)) > 0) {
        window[kept + got] = '\0';
        char *found = memmem(window, kept + got, BASE_KEY, strlen(BASE_KEY));
        char *colon = found == NULL ? NULL : strchr(found, ':');
        if (colon != NULL && strpbrk(colon, ",}") != NULL) {
            return strtoll(colon + 1, NULL, 10);
        }
        size_t whole = kept + got;
        kept = whole < ACROSS_BYTES ? whole : ACROSS_BYTES;
        memmove(window, window + whole - kept, kept);
    }
    return 0;
}

static int look_at(struct addition *addition)
{
    FILE *file = fopen(addition->path, "rbe");
    if (file == NULL) {
        return log_error_return(-errno, "cannot read %s: %s", addition->path, strerror(errno));
    }
    int first = fgetc(file);
    if (first == 0x1f) {
        fclose(file);
        return log_error_return(-EINVAL, "%s is compressed: gunzip it first, so that its clock can be read",
                                addition->path);
    }
    addition->is_json = first == '{' || first == '[';
    rewind(file);
    addition->offset_ns = addition->is_json ? find_base(file) : 0;
    fclose(file);
    return 0;
}

static int read_addition(struct store_reader *store, struct addition *addition, const char *text)
{
    const char *equals = strchr(text, '=');
    int64_t ahead_ns = 0;
    if (equals == NULL || equals == text || equals[1] == '\0' || (size_t)(equals - text) >= HOST_BYTES) {
        return log_error_return(-EINVAL, "--add %s: give HOST=FILE", text);
    }
    memcpy(addition->host, text, (size_t)(equals - text));
    addition->host[equals - text] = '\0';
    addition->path = equals + 1;
    const char *slash = strrchr(addition->path, '/');
    addition->name = slash == NULL ? addition->path : slash + 1;
    int result = look_at(addition);
    if (result == 0) {
        result = find_ahead(store, addition->host, &ahead_ns);
    }
    addition->offset_ns -= ahead_ns;
    return result;
}

static void put_addition(struct json *json, const struct addition *addition)
{
    json_object_begin(json, NULL);
    json_text(json, "path", addition->name);
    json_object_begin(json, "machine");
    json_text(json, "name", addition->host);
    json_object_end(json);
    json_object_begin(json, "clocks");
    if (!addition->is_json) {
        json_text(json, "clock", "REALTIME");
    }
    json_object_begin(json, "is");
    json_text(json, "file", TRACE_NAME);
    json_text(json, "clock", "REALTIME");
    json_object_end(json);
    json_integer(json, "offset_ns", addition->offset_ns);
    json_object_end(json);
    json_object_end(json);
}

static int make_manifest(char **text, size_t *length, const struct addition *additions, size_t count)
{
    struct json json;
    FILE *out = open_memstream(text, length);
    if (out == NULL) {
        return log_error_return(-ENOMEM, "out of memory for the archive");
    }
    json_init(&json, out);
    json_object_begin(&json, NULL);
    json_object_begin(&json, "perfetto_manifest");
    json_integer(&json, "version", 1);
    json_object_begin(&json, "trace_time");
    json_text(&json, "clock", "MONOTONIC");
    json_text(&json, "file", TRACE_NAME);
    json_object_end(&json);
    json_array_begin(&json, "files");
    json_object_begin(&json, NULL);
    json_text(&json, "path", TRACE_NAME);
    json_object_end(&json);
    for (size_t i = 0; i < count; i++) {
        put_addition(&json, &additions[i]);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    return fclose(out) == 0 ? 0 : log_error_return(-ENOMEM, "out of memory for the archive");
}

static int write_archive(const char *path, const char *trace_path, const struct addition *additions, size_t count)
{
    struct archive archive;
    char *manifest = NULL;
    size_t length = 0;
    FILE *out = NULL;
    int result = make_manifest(&manifest, &length, additions, count);
    if (result == 0) {
        result = output_open(&out, path);
    }
    if (result == 0) {
        archive_begin(&archive, out);
        archive_add_bytes(&archive, "perfetto_manifest.json", manifest, length);
        archive_add_file(&archive, TRACE_NAME, trace_path);
        for (size_t i = 0; i < count; i++) {
            archive_add_file(&archive, additions[i].name, additions[i].path);
        }
        result = archive_end(&archive);
        int closed = output_close(&out, path, result == 0);
        result = result != 0 ? result : closed;
    }
    free(manifest);
    return result;
}

int bundle_write(struct store_reader *store, const char *path, const char *trace_path, const struct option_list *added)
{
    struct addition additions[OPTION_LIST_MAX];
    for (size_t i = 0; i < added->count; i++) {
        int result = read_addition(store, &additions[i], added->values[i]);
        if (result != 0) {
            return result;
        }
    }
    return write_archive(path, trace_path, additions, added->count);
}
