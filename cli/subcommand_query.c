/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope query: SQL on the store, which is only read. */
#include "cli/subcommand.h"
#include "report/form/rows.h"
#include "report/report.h"
#include "wire/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_NS  60000000000u
#define SQL_BYTES (1u << 20)

struct query_options {
    struct report_options report;
    bool csv;
    bool ndjson;
    uint64_t limit_ns;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct query_options, report),
    REPORT_OPTION_JSON(struct query_options, report),
    {
        .name = "csv",
        .kind = OPTION_FLAG,
        .offset = offsetof(struct query_options, csv),
        .help = "print CSV with a line of names; what is not known is empty",
    },
    {
        .name = "ndjson",
        .kind = OPTION_FLAG,
        .offset = offsetof(struct query_options, ndjson),
        .help = "print one JSON object a row, a line each",
    },
    {
        .name = "time-limit",
        .short_name = 't',
        .kind = OPTION_DURATION,
        .offset = offsetof(struct query_options, limit_ns),
        .argument = "TIME",
        .help = "give up after this time; 0s: never",
    },
};

const struct option_program subcommand_query_program = {
    .name = "qpscope query",
    .summary = "SQL on the store, which is only read. Tables, views and columns: doc/store.md.",
    .usage = "[OPTIONS] [SQL]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "Without SQL it is read from standard input. Examples:\n"
                "  qpscope query 'SELECT * FROM slow_steps'\n"
                "  qpscope query --csv 'SELECT * FROM late_ranks WHERE late_us > 1000' > late.csv\n"
                "  qpscope query \"SELECT sql FROM sqlite_schema WHERE name = 'step'\"   what it holds\n"
                "Exit codes: 0 done, 1 failed (also: the time limit), 2 used wrongly.",
    .positionals_max = 1,
};

/* All of standard input, to be freed; NULL after logging. */
static char *read_sql(void)
{
    char *sql = malloc(SQL_BYTES);
    if (sql == NULL) {
        log_error("out of memory for a query");
        return NULL;
    }
    size_t length = fread(sql, 1, SQL_BYTES - 1, stdin);
    if (ferror(stdin) || !feof(stdin)) {
        log_error("cannot read the query from standard input: %s",
                  ferror(stdin) ? strerror(errno) : "it is longer than a mebibyte");
        free(sql);
        return NULL;
    }
    sql[length] = '\0';
    if (strlen(sql) != length) {
        log_error("the query from standard input is no text: it has a zero byte");
        free(sql);
        return NULL;
    }
    return sql;
}

static int print(struct report *report, const struct query_options *options, const char *sql)
{
    struct store_query *query = NULL;
    int result = store_query_open_foreign(&query, report->store, sql, options->limit_ns);
    if (result != 0) {
        return result;
    }
    if (options->report.json) {
        json_init(&report->json, stdout);
        report_json_begin(&report->json);
        result = rows_json(query, &report->json);
        json_object_end(&report->json);
    } else {
        enum rows_format format = options->csv ? ROWS_CSV : options->ndjson ? ROWS_NDJSON : ROWS_TABLE;
        result = rows_write(query, format, stdout, &report->terminal, NULL);
    }
    store_query_close(&query);
    return result;
}

static int ask(const struct query_options *options, const char *sql)
{
    /* The JSON object is begun only when the query is right. */
    const struct report_options text = {.store = options->report.store};
    struct report report;
    int result = report_open(&report, &text);
    if (result == 0) {
        result = print(&report, options, sql);
        report_close(&report);
    }
    return result;
}

int subcommand_query(int argc, char **argv)
{
    struct query_options options = {.limit_ns = LIMIT_NS};
    char **words;
    size_t words_count;
    int exit_code;
    if (!subcommand_parse_words(&subcommand_query_program, argc, argv, &options, &words, &words_count, &exit_code)) {
        return exit_code;
    }
    if (options.report.json + options.csv + options.ndjson > 1) {
        return subcommand_usage_error(&subcommand_query_program, "--json, --csv and --ndjson exclude each other");
    }
    if (words_count == 0 && isatty(STDIN_FILENO)) {
        return subcommand_usage_error(&subcommand_query_program, "give the SQL as one word, or on standard input");
    }
    char *read = words_count == 0 ? read_sql() : NULL;
    const char *sql = words_count == 0 ? read : words[0];
    exit_code = sql == NULL ? EXIT_CODE_FAILURE : subcommand_exit(ask(&options, sql));
    free(read);
    return exit_code;
}
