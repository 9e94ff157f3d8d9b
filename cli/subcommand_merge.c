/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope merge: captures, and the journals of stores, of several nodes as one capture; or rows of stores as one store.
 */
#include "cli/gather/merger.h"
#include "cli/gather/store_merger.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "report/form/text.h"
#include "report/report.h"
#include "wire/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct merge_options {
    const char *output;
    bool rows;
    bool force;
    bool json;
};

static const struct option_spec option_specs[] = {
    {
        .name = "output",
        .short_name = 'o',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct merge_options, output),
        .argument = "FILE",
        .help = "the capture that is made; with --rows the store",
    },
    {
        .name = "rows",
        .short_name = 'r',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct merge_options, rows),
        .help = "merge the rows of stores, of as many jobs, into one store",
    },
    {
        .name = "force",
        .short_name = 'f',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct merge_options, force),
        .help = "replace a file of that name",
    },
    {
        .name = "json",
        .short_name = 'j',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct merge_options, json),
        .help = "print one JSON object instead of text",
    },
};

const struct option_program subcommand_merge_program = {
    .name = "qpscope merge",
    .summary = "Makes one capture of several, and of stores by their journals; or one store of several jobs' stores.",
    .usage = "[OPTIONS] {CAPTURE|STORE}...",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "What several of them hold is taken once; machines are kept apart, even where they have one name.\n"
                "Of a store its journal (STORE.journal) is taken: rows follow from what it holds.\n"
                "With --rows stores of different jobs become one store of all of them; those of one job do not.\n"
                "Examples:\n"
                "  qpscope merge --rows -o week.db monday.db tuesday.db && qpscope jobs --store week.db\n"
                "  qpscope merge -o job.capture node*.capture rest.db && qpscope replay job.capture --store job.db\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
    .positionals_max = SIZE_MAX,
};

#define SQLITE_HEADER "SQLite format 3"

static bool is_database(const char *path)
{
    char header[sizeof(SQLITE_HEADER)] = "";
    struct stat status;
    bool is_file = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = is_file ? fopen(path, "re") : NULL;
    size_t length = file == NULL ? 0 : fread(header, 1, sizeof(header), file);
    if (file != NULL) {
        fclose(file);
    }
    return length == sizeof(header) && memcmp(header, SQLITE_HEADER, sizeof(header)) == 0;
}

/* The capture that stands for what was named, to be freed; NULL after logging. */
static char *capture_of(const char *named)
{
    char *path = NULL;
    if (!is_database(named)) {
        path = strdup(named);
    } else if (asprintf(&path, "%s.journal", named) < 0) {
        path = NULL;
    } else if (access(path, R_OK) != 0) {
        log_error("%s is a store, and its journal %s cannot be read: %s: name the capture files that it was made of",
                  named, path, strerror(errno));
        free(path);
        return NULL;
    }
    if (path == NULL) {
        log_error("out of memory for a file's name");
    }
    return path;
}

static int check_output(const struct merge_options *options, char **captures, size_t captures_count)
{
    struct stat output;
    struct stat input;
    if (stat(options->output, &output) != 0) {
        return 0;
    }
    for (size_t i = 0; i < captures_count; i++) {
        if (stat(captures[i], &input) == 0 && input.st_dev == output.st_dev && input.st_ino == output.st_ino) {
            return log_error_return(-EINVAL, "%s is one of those to be merged: name a new file with --output",
                                    options->output);
        }
    }
    return options->force
               ? 0
               : log_error_return(-EEXIST, "%s exists: name a new file with --output, or add --force", options->output);
}

static int merge_all(struct merger *merger, char **captures, size_t captures_count)
{
    uint64_t *batches = calloc(captures_count, sizeof(*batches));
    int result = batches == NULL ? log_error_return(-ENOMEM, "out of memory to merge captures") : 0;
    for (size_t i = 0; i < captures_count && result == 0; i++) {
        result = merger_survey(merger, captures[i], &batches[i]);
    }
    for (size_t i = 0; i < captures_count && result == 0; i++) {
        result = merger_add(merger, captures[i], batches[i]);
    }
    free(batches);
    return result;
}

static const struct {
    const char *key;
    const char *text;
    size_t offset;
} counts_shown[] = {
    {"written", "batches written", offsetof(struct merger_counts, written)},
    {"duplicates", "more that several files held", offsetof(struct merger_counts, duplicates)},
    {"contradicting", "left out: another one of that emitter and number was there",
     offsetof(struct merger_counts, contradicting)},
    {"renamed", "emitters whose id another machine had: changed", offsetof(struct merger_counts, renamed)},
};

static void print(const struct merger *merger, const struct merge_options *options)
{
    struct merger_counts counts = merger_counts(merger);
    struct json json;
    json_init(&json, stdout);
    if (options->json) {
        report_json_begin(&json);
        json_text(&json, "file", options->output);
    } else {
        puts("read:");
    }
    gather_tally_print(merger_tally(merger), options->json ? &json : NULL);
    for (size_t i = 0; i < sizeof(counts_shown) / sizeof(counts_shown[0]); i++) {
        uint64_t count;
        memcpy(&count, (const char *)&counts + counts_shown[i].offset, sizeof(count));
        if (options->json) {
            json_integer(&json, counts_shown[i].key, (int64_t)count);
        } else if (count > 0) {
            printf("%8" PRIu64 " %s\n", count, counts_shown[i].text);
        }
    }
    if (options->json) {
        json_object_end(&json);
    }
}

/* ---- rows ---- */

static void print_source(const struct store_source *source, struct json *json)
{
    char shift[TEXT_NUMBER_BYTES];
    char bound[TEXT_NUMBER_BYTES];
    if (json != NULL) {
        json_object_begin(json, NULL);
        json_text(json, "file", source->path);
        json_text(json, "earlier_than", source->later);
        json_text(json, "tie", source->later != NULL ? NULL : store_tie_name(source->tie));
        json_integer(json, "rows", source->rows);
        json_integer(json, "first_rank", source->first_rank);
        json_integer(json, "shift_ns", source->shift_ns);
        json_integer(json, "bound_ns", source->bound_ns);
        json_object_end(json);
    } else if (source->later != NULL) {
        printf("%s: left out: an earlier state of %s\n", source->path, source->later);
    } else {
        printf("%s: %" PRId64 " rows, ranks from %" PRId64 " on", source->path, source->rows, source->first_rank);
        if (source->tie != STORE_TIE_FIRST) {
            printf("; times moved by %s, by %s, within %s%s", text_duration(shift, source->shift_ns),
                   store_tie_name(source->tie), text_duration(bound, source->bound_ns),
                   source->tie == STORE_TIE_REALTIME ? " and what the machines' CLOCK_REALTIMEs differ by" : "");
        }
        putchar('\n');
    }
}

static void print_sources(const struct merge_options *options, const struct store_source *sources, size_t count)
{
    struct json json;
    json_init(&json, stdout);
    if (options->json) {
        report_json_begin(&json);
        json_text(&json, "file", options->output);
        json_array_begin(&json, "sources");
    }
    for (size_t i = 0; i < count; i++) {
        print_source(&sources[i], options->json ? &json : NULL);
    }
    if (options->json) {
        json_array_end(&json);
        json_object_end(&json);
    }
}

/* Under another name, so that what stands there goes only for what is whole. */
static int merge_beside(const char *output, struct store_source *sources, size_t count)
{
    char *part = NULL;
    if (asprintf(&part, "%s.part", output) < 0) {
        return log_error_return(-ENOMEM, "out of memory for a file's name");
    }
    output_remove(part);
    int result = store_merge(part, sources, count);
    if (result == 0 && rename(part, output) != 0) {
        result = output_fail(output, errno);
        output_remove(part);
    }
    free(part);
    return result;
}

static int merge_rows(const struct merge_options *options, char **named, size_t count)
{
    struct store_source *sources = calloc(count, sizeof(*sources));
    int result = sources == NULL ? log_error_return(-ENOMEM, "out of memory for the names of files")
                                 : check_output(options, named, count);
    for (size_t i = 0; i < count && result == 0; i++) {
        sources[i].path = named[i];
        if (!is_database(named[i])) {
            result = log_error_return(-EINVAL, "%s is no store that can be read: --rows merges stores", named[i]);
        }
    }
    if (result == 0) {
        result = merge_beside(options->output, sources, count);
    }
    if (result == 0) {
        print_sources(options, sources, count);
    }
    free(sources);
    return result;
}

/* ---- captures ---- */

static int merge(const struct merge_options *options, char **captures, size_t captures_count)
{
    struct merger *merger = NULL;
    int result = check_output(options, captures, captures_count);
    if (result == 0) {
        result = merger_create(&merger, options->output);
    }
    if (result != 0) {
        return result;
    }
    result = merge_all(merger, captures, captures_count);
    if (result == 0) {
        print(merger, options);
    }
    int closed = merger_close(&merger, result == 0);
    return result != 0 ? result : closed;
}

static int merge_named(const struct merge_options *options, char **named, size_t count)
{
    char **captures = calloc(count, sizeof(*captures));
    size_t found = 0;
    int result = captures == NULL ? log_error_return(-ENOMEM, "out of memory for the names of files") : 0;
    while (result == 0 && found < count) {
        captures[found] = capture_of(named[found]);
        result = captures[found] == NULL ? -ENOENT : 0;
        found += result == 0;
    }
    if (result == 0) {
        result = merge(options, captures, count);
    }
    for (size_t i = 0; i < found; i++) {
        free(captures[i]);
    }
    free(captures);
    return result;
}

int subcommand_merge(int argc, char **argv)
{
    struct merge_options options = {0};
    char **named;
    size_t count;
    int exit_code;
    if (!subcommand_parse_words(&subcommand_merge_program, argc, argv, &options, &named, &count, &exit_code)) {
        return exit_code;
    }
    if (count == 0 || options.output == NULL) {
        return subcommand_usage_error(&subcommand_merge_program,
                                      "name captures or stores, and with --output what is made of them");
    }
    return subcommand_exit(options.rows ? merge_rows(&options, named, count) : merge_named(&options, named, count));
}
