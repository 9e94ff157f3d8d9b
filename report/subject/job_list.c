/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs of a store. A job is a set of processes that communicators (or the number of a Slurm job) connect: union-find
 * over the rows of `member` and `process_fact`; the rest is one query over the map from process to job that this gives.
 */
#include "report/subject/job_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/subject/step_choice.h"
#include "report/subject/verdict_words.h"
#include "wire/log.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* parents[process id]; a process that is its own parent stands for its job. */
struct forest {
    int64_t *parents;
    int64_t count;
};

/* Rows of the same key belong together; NULL where nothing does. */
#define SAME_COMMUNICATOR "SELECT 'c' || communicator, process FROM member "
#define SAME_SLURM_JOB    "SELECT 's' || value, process FROM process_fact WHERE name = 'slurm_job' "
#define TOGETHER          SAME_COMMUNICATOR "UNION ALL " SAME_SLURM_JOB "ORDER BY 1, 2"

static const struct column columns[] = {
    {"job", "job", COLUMN_INTEGER},
    {"name", "name", COLUMN_TEXT},
    {"slurm_job", NULL, COLUMN_TEXT},
    {"ranks", "ranks", COLUMN_INTEGER},
    {"processes", NULL, COLUMN_INTEGER},
    {"nodes", "nodes", COLUMN_INTEGER | COLUMN_SPARE},
    {"communicators", "comms", COLUMN_INTEGER | COLUMN_SPARE},
    {NULL, "started (UTC)", COLUMN_TEXT | COLUMN_RIGHT | COLUMN_SPARE},
    {"started_utc", NULL, COLUMN_TEXT},
    {"started_ns", NULL, COLUMN_INTEGER},
    {"state", "state", COLUMN_TEXT},
    {"ended", NULL, COLUMN_FLAG},
    {"steps", "steps", COLUMN_INTEGER},
    {"usual_ns", "usual ms", COLUMN_MS},
    {"steps_with_verdict", "judged", COLUMN_INTEGER},
    {"verdict", NULL, COLUMN_TEXT},
    {"verdict_rank", NULL, COLUMN_INTEGER},
    {"verdict_peer_rank", NULL, COLUMN_INTEGER},
    {"verdict_step", NULL, COLUMN_INTEGER},
    {"verdict_size_ns", NULL, COLUMN_INTEGER},
    {"verdict_bound_ns", NULL, COLUMN_INTEGER},
    {NULL, "worst verdict", COLUMN_TEXT},
};

#define STARTED_S                                                                                                      \
    "(started_ns + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'realtime_minus_reference_ns')) / "            \
    "1000000000, "                                                                                                     \
    "'unixepoch'"

/* A process takes part in no job any longer: it has ended, or all its communicators were destroyed. */
#define PROCESS_LEFT                                                                                                   \
    "(ended_ns IS NOT NULL OR (SELECT min(destroyed_ns IS NOT NULL) FROM member WHERE member.process = process.id) "   \
    "IS 1)"

/* What hung when the job ended hangs no longer; its verdict stays. */
#define STATE                                                                                                          \
    "CASE WHEN all_of.ended THEN 'ended' WHEN judged.id IS NOT NULL AND judged.step IS NULL THEN 'hangs' WHEN "        \
    "all_of.heard_out THEN 'recording ended' ELSE 'running' END"

/* ?1: a JSON array that has each process's job at its number, or null. */
static const struct listing jobs = {
    "jobs",
    "WITH mine AS (SELECT key AS process, value AS job FROM json_each(?1) WHERE value IS NOT NULL), "
    "joined AS (SELECT DISTINCT job, communicator FROM mine JOIN member USING (process)), "
    "taken AS (SELECT DISTINCT joined.job, operation.step FROM joined JOIN operation USING (communicator) "
    "WHERE operation.step IS NOT NULL), "
    "ordered AS (SELECT job, duration_ns, row_number() OVER (PARTITION BY job ORDER BY duration_ns) AS place, "
    "count(*) OVER (PARTITION BY job) AS steps FROM taken JOIN step ON step.id = taken.step "
    "WHERE kind = 'training'), "
    "usual AS (SELECT job, CAST(avg(duration_ns) AS INTEGER) AS duration_ns FROM ordered "
    "WHERE place IN ((steps + 1) / 2, (steps + 2) / 2) GROUP BY job), "
    "judged AS (SELECT joined.job, verdict.*, row_number() OVER (PARTITION BY joined.job ORDER BY " VERDICTS_BY_WORST
    ") AS place FROM joined JOIN operation USING (communicator) "
    "JOIN verdict ON verdict.operation = operation.id), "
    "fact AS (SELECT job, name, min(value) AS value FROM mine JOIN process_fact USING (process) "
    "WHERE name IN ('slurm_job', 'pod', 'container') GROUP BY job, name), "
    "all_of AS (SELECT job, min(command) AS command, count(*) AS processes, count(DISTINCT emitter.host) AS nodes, "
    "min(process.started_ns) AS started_ns, min(" PROCESS_LEFT ") AS ended, min(" PROCESS_LEFT
    " OR emitter.ended) AS heard_out "
    "FROM mine JOIN process ON process.id = mine.process JOIN emitter ON emitter.id = process.emitter GROUP BY job) "
    "SELECT all_of.job, coalesce('slurm ' || (SELECT value FROM fact WHERE fact.job = all_of.job AND name = "
    "'slurm_job'), 'pod ' || (SELECT value FROM fact WHERE fact.job = all_of.job AND name = 'pod'), "
    "'container ' || (SELECT substr(value, 1, 12) FROM fact WHERE fact.job = all_of.job AND name = 'container'), "
    "command), (SELECT value FROM fact WHERE fact.job = all_of.job AND name = 'slurm_job'), "
    "(SELECT count(DISTINCT rank) FROM mine JOIN member USING (process) WHERE mine.job = all_of.job), processes, "
    "nodes, (SELECT count(*) FROM joined WHERE joined.job = all_of.job), "
    "strftime('%m-%d %H:%M', " STARTED_S "), strftime('%Y-%m-%dT%H:%M:%SZ', " STARTED_S "), started_ns, " STATE
    ", ended, "
    "(SELECT count(*) FROM taken WHERE taken.job = all_of.job), usual.duration_ns, "
    "(SELECT count(DISTINCT step) FROM judged WHERE judged.job = all_of.job), judged.class, judged.rank, "
    "judged.peer_rank, judged.step, judged.size_ns, judged.bound_ns, " VERDICT_WORDS(
        "judged") " "
                  "FROM all_of LEFT JOIN usual ON usual.job = all_of.job LEFT JOIN judged ON judged.job = all_of.job "
                  "AND "
                  "judged.place = 1 ORDER BY all_of.job",
    columns,
    COUNT(columns),
};

static int64_t root_of(struct forest *forest, int64_t process)
{
    while (forest->parents[process] != process) {
        forest->parents[process] = forest->parents[forest->parents[process]];
        process = forest->parents[process];
    }
    return process;
}

/* The smaller number stands for both, so that jobs come in the order of their first process. */
static void join(struct forest *forest, int64_t first, int64_t second)
{
    int64_t a = root_of(forest, first);
    int64_t b = root_of(forest, second);
    forest->parents[a < b ? b : a] = a < b ? a : b;
}

static bool is_process(const struct forest *forest, int64_t process)
{
    return process >= 0 && process < forest->count;
}

static int connect(struct forest *forest, struct report *report)
{
    struct store_query *query = NULL;
    char key[64] = "";
    int64_t before = -1;
    int result = store_query_open(&query, report->store, TOGETHER, NULL, 0);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        const char *found = store_query_value(query, 0).text;
        int64_t process = store_query_value(query, 1).integer;
        if (!is_process(forest, process)) {
            continue;
        }
        if (forest->parents[process] < 0) {
            forest->parents[process] = process;
        }
        if (before >= 0 && strncmp(found, key, sizeof(key) - 1) == 0) {
            join(forest, before, process);
        }
        snprintf(key, sizeof(key), "%s", found);
        before = process;
    }
    store_query_close(&query);
    return result;
}

/* All processes, each alone in no job. */
static int forest_init(struct forest *forest, struct report *report)
{
    struct store_value last;
    int result = store_reader_number(report->store, "SELECT coalesce(max(id), -1) + 1 FROM process", NULL, 0, &last);
    if (result != 0) {
        return result;
    }
    forest->count = last.integer;
    forest->parents = malloc(((size_t)last.integer + 1) * sizeof(*forest->parents));
    if (forest->parents == NULL) {
        return log_error_return(-ENOMEM, "out of memory for %" PRId64 " processes", last.integer);
    }
    for (int64_t i = 0; i < forest->count; i++) {
        forest->parents[i] = -1;
    }
    result = connect(forest, report);
    if (result != 0) {
        free(forest->parents);
    }
    return result;
}

/* Jobs are numbered from 1; to be freed, NULL after logging. */
static char *map_of(struct forest *forest)
{
    int64_t *numbers = calloc((size_t)forest->count + 1, sizeof(*numbers));
    int64_t jobs_count = 0;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (numbers == NULL || out == NULL) {
        log_error("out of memory for the map of jobs");
        free(numbers);
        return NULL;
    }
    for (int64_t i = 0; i < forest->count; i++) {
        fputs(i == 0 ? "[" : ",", out);
        if (forest->parents[i] < 0) {
            fputs("null", out);
            continue;
        }
        int64_t *number = &numbers[root_of(forest, i)];
        *number = *number == 0 ? ++jobs_count : *number;
        fprintf(out, "%" PRId64, *number);
    }
    fputs(forest->count == 0 ? "[]" : "]", out);
    free(numbers);
    if (fclose(out) != 0) {
        log_error("out of memory for the map of jobs");
        free(text);
        return NULL;
    }
    return text;
}

static int find_jobs(struct report *report, char **map)
{
    struct forest forest;
    int result = forest_init(&forest, report);
    if (result == 0) {
        *map = map_of(&forest);
        free(forest.parents);
        result = *map == NULL ? -ENOMEM : 0;
    }
    return result;
}

int job_list_print(struct report *report, size_t *jobs_count)
{
    char *map = NULL;
    int result = find_jobs(report, &map);
    if (result == 0) {
        struct store_value argument = store_text(map);
        result = report_list(report, &jobs, &argument, 1, jobs_count);
        free(map);
    }
    return result;
}
