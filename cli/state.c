/* SPDX-License-Identifier: BSD-2-Clause */
/* The present state: each line is a row of a table of what is asked; the last one follows from what they found. */
#include "cli/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "report/form/text.h"
#include "report/subject/job_list.h"
#include "report/subject/loss.h"
#include "report/subject/step_choice.h"
#include "report/subject/verdict_words.h"

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define LABEL_COLUMNS 11
#define LATEST_BYTES  512

struct state {
    struct report report;
    const char *store;
    size_t running; /* kinds of daemons */
    bool is_stale;
};

struct line {
    const char *key; /* of the JSON object */
    const char *sql; /* one row, or none */
    const struct column *columns;
    size_t columns_count;
    void (*say)(const struct report *report, const struct store_query *row);
    const char *label;
    const char *nothing; /* what is said without a row */
};

static void say(const struct report *report, const char *label, const char *text)
{
    char *wrapped = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&wrapped, &length);
    if (out == NULL) {
        return;
    }
    text_paragraph(out, text, LABEL_COLUMNS, report->terminal.width);
    if (fclose(out) == 0) {
        fprintf(report_out(report), "%s%-*s%s%s", report->terminal.colour ? "\033[1m" : "", LABEL_COLUMNS, label,
                report->terminal.colour ? "\033[0m" : "", length > LABEL_COLUMNS ? wrapped + LABEL_COLUMNS : "\n");
    }
    free(wrapped);
}

static void __attribute__((format(printf, 3, 4)))
say_format(const struct report *report, const char *label, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) >= 0) {
        say(report, label, text);
        free(text);
    }
    va_end(arguments);
}

static const struct column count_columns[] = {
    {"steps", NULL, COLUMN_INTEGER},
    {"usual_ns", NULL, COLUMN_INTEGER},
    {"steps_with_verdict", NULL, COLUMN_INTEGER},
    {"past_steps", NULL, COLUMN_INTEGER},
};

static const struct column step_columns[] = {
    {"step", NULL, COLUMN_INTEGER},          {"kind", NULL, COLUMN_TEXT},
    {"duration_ns", NULL, COLUMN_INTEGER},   {"bound_ns", NULL, COLUMN_INTEGER},
    {"slowest_rank", NULL, COLUMN_INTEGER},  {"late_ns", NULL, COLUMN_INTEGER},
    {"late_bound_ns", NULL, COLUMN_INTEGER}, {"slowest_on", NULL, COLUMN_TEXT},
};

static const struct column verdict_columns[] = {
    {"step", NULL, COLUMN_INTEGER},    {"class", NULL, COLUMN_TEXT},        {"rank", NULL, COLUMN_INTEGER},
    {"candidates", NULL, COLUMN_TEXT}, {"peer_rank", NULL, COLUMN_INTEGER}, {"device", NULL, COLUMN_TEXT},
    {"size_ns", NULL, COLUMN_INTEGER}, {"bound_ns", NULL, COLUMN_INTEGER},  {"confidence", NULL, COLUMN_REAL},
    {"steps", NULL, COLUMN_INTEGER},
};

static void say_steps(const struct report *report, const struct store_query *row)
{
    struct store_value usual = store_query_value(row, 1);
    char duration[TEXT_NUMBER_BYTES] = "";
    char past[64] = "";
    if (usual.kind == STORE_INTEGER) {
        text_duration(duration, usual.integer);
    }
    if (store_query_value(row, 3).integer > 0) {
        snprintf(past, sizeof(past), "; %" PRId64 " earlier ones without detail", store_query_value(row, 3).integer);
    }
    say_format(report, "steps", "%" PRId64 " seen%s%s, %" PRId64 " with a verdict%s", store_query_value(row, 0).integer,
               *duration == '\0' ? "" : ", usually ", duration, store_query_value(row, 2).integer, past);
}

static void say_last_step(const struct report *report, const struct store_query *row)
{
    struct store_value kind = store_query_value(row, 1);
    struct store_value late = store_query_value(row, 5);
    struct store_value late_bound = store_query_value(row, 6);
    char number[4][TEXT_NUMBER_BYTES] = {"", "", "", "unknown"};
    char latest[LATEST_BYTES] = "";
    text_duration(number[0], store_query_value(row, 2).integer);
    text_duration(number[1], store_query_value(row, 3).integer);
    if (late_bound.kind == STORE_INTEGER) {
        text_duration(number[3], late_bound.integer);
    }
    if (late.kind == STORE_INTEGER) {
        snprintf(latest, sizeof(latest), "; the latest was %s, by %s ±%s", store_query_value(row, 8).text,
                 text_duration(number[2], late.integer), number[3]);
    }
    say_format(report, "last step", "step %" PRId64 "%s%s%s: %s ±%s%s", store_query_value(row, 0).integer,
               strcmp(kind.text, "training") == 0 ? "" : " (", strcmp(kind.text, "training") == 0 ? "" : kind.text,
               strcmp(kind.text, "training") == 0 ? "" : ")", number[0], number[1], latest);
}

static void say_worst(const struct report *report, const struct store_query *row)
{
    struct store_value step = store_query_value(row, 0);
    char size[TEXT_NUMBER_BYTES];
    char bound[TEXT_NUMBER_BYTES];
    int64_t steps = store_query_value(row, 9).integer;
    const char *words = store_query_value(row, 10).text;
    if (step.kind == STORE_NULL) {
        say_format(report, "worst", "%s: an operation was begun and does not end", words);
        return;
    }
    text_duration(size, store_query_value(row, 6).integer);
    text_duration(bound, store_query_value(row, 7).integer);
    say_format(report, "worst", "%s: %s ±%s in step %" PRId64 ", confidence %.0f %%; %" PRId64 " step%s with it", words,
               size, bound, step.integer, store_query_value(row, 8).real * 100, steps, steps == 1 ? "" : "s");
}

#define USUAL                                                                                                          \
    "(SELECT CAST(avg(duration_ns) AS INTEGER) FROM (SELECT duration_ns, row_number() OVER (ORDER BY duration_ns) AS " \
    "place, count(*) OVER () AS steps FROM step WHERE kind = 'training') "                                             \
    "WHERE place IN ((steps + 1) / 2, (steps + 2) / 2))"

static const struct line lines[] = {
    {"steps",
     "SELECT (SELECT count(*) FROM step), " USUAL ", (SELECT count(DISTINCT step) FROM verdict), "
     "(SELECT count(*) FROM past_step)",
     count_columns, COUNT(count_columns), say_steps, "steps", NULL},
    {"last_step",
     "SELECT id, kind, duration_ns, bound_ns, slowest_rank, late_ns, late_bound_ns, (SELECT name FROM " RANK_PLACES
     "AS place WHERE place.rank = step.slowest_rank), " RANK_NAMED(
         "step.slowest_rank") " FROM step "
                              "WHERE id = (SELECT max(id) FROM step)",
     step_columns, COUNT(step_columns), say_last_step, "last step",
     "none yet: none of the job's operations has been seen to repeat"},
    {"worst_verdict",
     "SELECT step, class, rank, candidates, peer_rank, device, size_ns, bound_ns, confidence, (SELECT count(DISTINCT "
     "step) "
     "FROM verdict AS other WHERE other.class = verdict.class AND other.rank IS verdict.rank AND other.candidates IS "
     "verdict.candidates AND other.peer_rank IS "
     "verdict.peer_rank), " VERDICT_NAMED("verdict") " || coalesce(' (' || device || ')', '') "
                                                     "FROM verdict ORDER BY " VERDICTS_BY_WORST " LIMIT 1",
     verdict_columns, COUNT(verdict_columns), say_worst, "worst", "no verdict: nothing stands out"},
};

static int print_line(struct report *report, const struct line *line)
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, report->store, line->sql, NULL, 0);
    if (result != 0) {
        return result;
    }
    result = store_query_next(query);
    if (result == 1 && report->as_json) {
        json_object_begin(&report->json, line->key);
        column_json_row(line->columns, line->columns_count, query, &report->json);
        json_object_end(&report->json);
    } else if (result == 1) {
        line->say(report, query);
    } else if (result == 0 && report->as_json) {
        json_null(&report->json, line->key);
    } else if (result == 0) {
        say(report, line->label, line->nothing);
    }
    store_query_close(&query);
    return result < 0 ? result : 0;
}

static void print_daemons(struct state *state)
{
    const struct doctor_machine machine = {.root = "", .store = state->store};
    char text[128] = "";
    size_t length = 0;
    if (state->report.as_json) {
        json_array_begin(&state->report.json, "daemons");
    }
    for (size_t i = 0; i < DOCTOR_DAEMONS; i++) {
        size_t count = doctor_daemon_count(&machine, i);
        state->running += count > 0;
        if (state->report.as_json) {
            json_object_begin(&state->report.json, NULL);
            json_text(&state->report.json, "name", doctor_daemon_name(i));
            json_integer(&state->report.json, "running", (int64_t)count);
            json_object_end(&state->report.json);
        } else {
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %s", i == 0 ? "" : ", ",
                                       doctor_daemon_name(i), count > 0 ? "running" : "not running");
        }
    }
    if (state->report.as_json) {
        json_array_end(&state->report.json);
    } else {
        say(&state->report, "daemons", text);
    }
}

static void print_store(struct state *state)
{
    char age[TEXT_NUMBER_BYTES];
    char size[TEXT_NUMBER_BYTES];
    struct stat status = {0};
    int64_t age_ns = doctor_store_age_ns(state->store);
    stat(state->store, &status);
    state->is_stale = age_ns > DOCTOR_STALE_NS;
    if (state->report.as_json) {
        json_object_begin(&state->report.json, "store");
        json_text(&state->report.json, "path", state->store);
        json_integer(&state->report.json, "bytes", status.st_size);
        json_integer(&state->report.json, "age_ns", age_ns);
        json_object_end(&state->report.json);
    } else {
        say_format(&state->report, "store", "%s, %s, written %s ago", state->store, text_bytes(size, status.st_size),
                   text_duration(age, age_ns));
    }
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void say_job(struct report *report, const struct store_query *row)
{
    int64_t counts[5];
    for (size_t i = 0; i < COUNT(counts); i++) {
        counts[i] = store_query_value(row, i).integer;
    }
    say_format(report, "job",
               "%" PRId64 " rank%s in %" PRId64 " process%s on %" PRId64 " node%s, %" PRId64 " communicator%s, %" PRId64
               " queue pair%s; qpscope jobs",
               counts[0], plural(counts[0]), counts[1], counts[1] == 1 ? "" : "es", counts[2], plural(counts[2]),
               counts[3], plural(counts[3]), counts[4], plural(counts[4]));
}

/* What to do next: the first row that applies. */
static const char next_sql[] =
    "SELECT CASE "
    "WHEN NOT EXISTS (SELECT * FROM process) THEN 'no process of a job was seen: is qpscope-host running where the job "
    "is? qpscope doctor says' "
    "WHEN EXISTS (SELECT * FROM verdict WHERE step IS NULL) THEN 'qpscope why: who is missing in what does not end' "
    "WHEN EXISTS (SELECT * FROM verdict) THEN (SELECT 'qpscope why --step ' || step || ': the evidence' || "
    "CASE WHEN more IS NULL THEN '' ELSE '; for more, while it goes on, ' || more END FROM verdict ORDER "
    "BY " VERDICTS_BY_WORST " LIMIT 1) "
    "WHEN NOT EXISTS (SELECT * FROM step) THEN 'qpscope qps: what was seen of the job so far' "
    "WHEN ?1 THEN 'qpscope report: one page to show to others' "
    "ELSE 'qpscope top: the steps as they end' END";

static int print_next(struct state *state)
{
    struct store_value is_stale = store_integer(state->is_stale);
    struct store_query *query = NULL;
    int result = store_query_open(&query, state->report.store, next_sql, &is_stale, 1);
    if (result != 0) {
        return result;
    }
    result = store_query_next(query);
    if (result == 1 && state->report.as_json) {
        json_text(&state->report.json, "next", store_query_value(query, 0).text);
    } else if (result == 1) {
        say(&state->report, "next", store_query_value(query, 0).text);
    }
    store_query_close(&query);
    return result < 0 ? result : 0;
}

static void print_without_store(struct state *state)
{
    const char *next = state->running == 0
                           ? "qpscope doctor: what is missing; then start the daemons, or qpscope replay capture files"
                           : "name the correlator's store with --store FILE or QPSCOPE_STORE";
    if (state->report.as_json) {
        json_null(&state->report.json, "store");
        json_text(&state->report.json, "next", next);
    } else {
        say_format(&state->report, "store", "none at %s", state->store);
        say(&state->report, "next", next);
    }
}

#define JOB_COUNTS                                                                                                     \
    "SELECT (SELECT count(DISTINCT rank) FROM member), (SELECT count(DISTINCT process) FROM member), "                 \
    "(SELECT count(DISTINCT emitter.host) FROM member JOIN process ON process.id = member.process "                    \
    "JOIN emitter ON emitter.id = process.emitter), (SELECT count(*) FROM communicator), "                             \
    "(SELECT count(*) FROM queue_pair WHERE member IS NOT NULL)"

static int say_lost(struct report *report)
{
    char words[LOSS_WORDS_BYTES] = "";
    int result = loss_words(report, words);
    if (result == 0) {
        say(report, "lost", words);
    }
    return result;
}

int state_print_job(struct report *report)
{
    int result = 0;
    for (size_t i = 0; i < COUNT(lines) && result == 0; i++) {
        result = print_line(report, &lines[i]);
    }
    if (result == 0) {
        result = report->as_json ? loss_report(report) : say_lost(report);
    }
    return result;
}

static int print_of_store(struct state *state)
{
    struct report *report = &state->report;
    print_store(state);
    int result =
        report->as_json ? job_list_print(report, NULL) : report_each(report, JOB_COUNTS, NULL, 0, say_job, NULL);
    result = result == 0 ? state_print_job(report) : result;
    return result == 0 ? print_next(state) : result;
}

int state_print(const struct report_options *options)
{
    struct state state = {.store = report_store_path(options->store), .report = {.as_json = options->json}};
    bool has_store = access(state.store, F_OK) == 0;
    int result = has_store ? store_reader_open(&state.report.store, state.store) : 0;
    if (result != 0) {
        return result;
    }
    terminal_init(&state.report.terminal, STDOUT_FILENO);
    json_init(&state.report.json, stdout);
    if (options->json) {
        report_json_begin(&state.report.json);
    }
    print_daemons(&state);
    if (has_store) {
        result = print_of_store(&state);
    } else {
        print_without_store(&state);
    }
    if (options->json) {
        json_object_end(&state.report.json);
    } else {
        say(&state.report, "help", "qpscope --help lists the subcommands");
    }
    store_reader_close(&state.report.store);
    return result;
}
