/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store of bounded size: a job longer than it, told little by little. The file and its log stay below the limit after
 * each write; each step is in the store once, whole, as what is left of it, or in a sum; the last steps have all that
 * they have in a store without a limit; a reader who has it open goes on.
 */
#include "correlator/store/limit.h"

#include <errno.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "correlator/analysis.h"
#include "correlator/store/store.h"
#include "tests/unit/correlator/query.h"
#include "tests/unit/correlator/world.h"
#include "tests/unit/scratch.h"
#include "wire/log.h"

#define STEPS      120
#define FIRST_LATE 40
#define PARTS      12
#define LAST_STEPS 4 /* that a limit leaves alone */
#define MIB        (1u << 20)

static const struct made_options options = {.ranks = 4,
                                            .channels = 2,
                                            .steps = STEPS,
                                            .seed = 11,
                                            .fault = MADE_HOST,
                                            .fault_rank = 2,
                                            .fault_first_step = FIRST_LATE,
                                            .fault_ns = 40 * MADE_MS};

static uint64_t bytes_of(const char *path)
{
    struct stat status;
    char log[4096];

    snprintf(log, sizeof log, "%s-wal", path);
    assert_int_equal(stat(path, &status), 0);
    uint64_t bytes = (uint64_t)status.st_size;
    return stat(log, &status) == 0 ? bytes + (uint64_t)status.st_size : bytes;
}

static void tell(struct analysis *analysis, const struct feed *feed, unsigned part)
{
    for (size_t i = feed->count * part / PARTS; i < feed->count * (part + 1) / PARTS; i++)
        analysis_add_batch(analysis, feed->batches[i].bytes, feed->batches[i].length_bytes);
}

static void tell_part(struct analysis *analysis, const struct made_job *job, unsigned part)
{
    tell(analysis, &job->nic, part);
    tell(analysis, &job->host, part);
    analysis_run(analysis);
}

static sqlite3 *open_store(const char *path)
{
    sqlite3 *database;

    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    return database;
}

/* All parts of the job in a store of this size; returns its path. */
static const char *play(void **state, const char *name, uint64_t limit_bytes, size_t memory_bytes)
{
    struct made_job *job = made_create(&options);
    struct analysis *analysis = analysis_create(memory_bytes);
    const char *path = scratch_path(state, "", name);
    struct store *store;

    assert_int_equal(store_open(&store, path), 0);
    assert_int_equal(store_set_limit(store, limit_bytes), 0);
    for (unsigned part = 0; part < PARTS; part++) {
        tell_part(analysis, job, part);
        assert_int_equal(store_write(store, analysis), 0);
        if (limit_bytes != 0)
            assert_true(bytes_of(path) <= limit_bytes);
    }
    store_close(&store);
    analysis_destroy(&analysis);
    made_destroy(job);
    return path;
}

static const char *const references[] = {
    "rank_operation WHERE operation NOT IN (SELECT id FROM operation)",
    "message WHERE rank_operation NOT IN (SELECT id FROM rank_operation)",
    "call WHERE rank_operation NOT IN (SELECT id FROM rank_operation)",
    "verdict WHERE step NOT IN (SELECT id FROM step) OR operation NOT IN (SELECT id FROM operation)",
    "critical_path WHERE step NOT IN (SELECT id FROM step) OR operation NOT IN (SELECT id FROM operation)",
    "rank_step WHERE step NOT IN (SELECT id FROM step)",
    "past_verdict WHERE step_start_ns NOT IN (SELECT start_ns FROM past_step)",
};

static void check_references(sqlite3 *database)
{
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        char sql[256];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", references[i]);
        assert_int_equal(query_number(database, sql), 0);
    }
}

/* What a table has of the last steps, by a time of it. */
static int64_t count_last(sqlite3 *database, const char *table, const char *time)
{
    char sql[256];

    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM %s WHERE %s >= (SELECT start_ns FROM step ORDER BY id DESC LIMIT 1 OFFSET %d)",
             table, time, LAST_STEPS - 1);
    return query_number(database, sql);
}

static void check_last_steps(sqlite3 *limited, sqlite3 *whole)
{
    static const char *const tables[][2] = {{"message", "last_ns"},
                                            {"operation", "start_ns"},
                                            {"rank_operation", "enqueued_ns"},
                                            {"call", "enqueued_ns"},
                                            {"rank_step", "start_ns"}};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        int64_t count = count_last(whole, tables[i][0], tables[i][1]);
        assert_true(count > 0);
        assert_int_equal(count_last(limited, tables[i][0], tables[i][1]), count);
    }
}

#define HELD_STEPS "(SELECT count(*) FROM step WHERE partial = 0) + (SELECT count(*) FROM past_step)"
#define HELD_VERDICTS                                                                                                  \
    "(SELECT count(*) FROM verdict WHERE class = 'host late' AND rank = 2) + (SELECT count(*) FROM past_verdict "      \
    "WHERE class = 'host late' AND rank = 2)"

static void detail_goes_first(void **state)
{
    sqlite3 *whole = open_store(play(state, "whole.db", 0, ANALYSIS_MEMORY_BYTES));
    sqlite3 *limited = open_store(play(state, "limited.db", 3 * MIB, ANALYSIS_MEMORY_BYTES));

    assert_int_equal(query_number(whole, "SELECT count(*) FROM step"), STEPS);
    assert_true(query_number(whole, "PRAGMA page_count") * 4096 > 3 * MIB); /* or the limit would not matter */
    assert_int_equal(query_number(limited, "SELECT " HELD_STEPS), STEPS);
    assert_int_equal(query_number(limited, "SELECT " HELD_VERDICTS), STEPS - FIRST_LATE);
    int64_t messages_from = query_number(limited, "SELECT value + 0 FROM meta WHERE key = 'traffic_from_ns'");
    assert_true(messages_from > query_number(limited, "SELECT coalesce(min(start_ns), 0) FROM step"));
    assert_int_equal(query_number(limited, "SELECT min(last_ns) < (SELECT value + 0 FROM meta WHERE key = "
                                           "'traffic_from_ns') FROM message"),
                     0);
    check_references(limited);
    check_last_steps(limited, whole);
    sqlite3_close(limited);
    sqlite3_close(whole);
}

#define LONG_AGO 6000 /* steps, every tenth of which has a verdict on one of three ranks */

/* Steps of long ago: the n-th began at n x 1000 ns and took 500 + n ns. */
static void add_long_ago(sqlite3 *database)
{
    char sql[512];

    snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO past_step "
        "SELECT i * 1000, i * 1000 + 500 + i %% 100, 500 + i %% 100, 1, iif(i %% 1000 = 0, 'evaluation', 'training'), "
        "4, 0, NULL, NULL FROM n",
        LONG_AGO);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(database,
                     "INSERT INTO past_verdict SELECT start_ns, 'gpu late', start_ns / 10000 % 3, NULL, NULL, "
                     "NULL, 100, 1, 0.5, 'made up' FROM past_step WHERE start_ns % 10000 = 0",
                     NULL, NULL, NULL),
        SQLITE_OK);
}

static void check_sums(sqlite3 *database)
{
    int64_t steps = query_number(database, "SELECT sum(steps) FROM past_summary");

    assert_in_range(steps, LONG_AGO / 2, LONG_AGO - 1);
    assert_int_equal(query_number(database, "SELECT count(*) FROM past_step"), LONG_AGO - steps);
    assert_int_equal(query_number(database, "SELECT sum(duration_ns) + (SELECT sum(duration_ns) FROM past_step) FROM "
                                            "past_summary"),
                     LONG_AGO * 500 + LONG_AGO / 100 * 4950);
    assert_int_equal(query_number(database, "SELECT sum(steps) FROM past_summary WHERE kind = 'evaluation'"),
                     steps / 1000);
    assert_int_equal(query_number(database, "SELECT sum(steps_with_verdict) FROM past_summary"), steps / 10);
    assert_int_equal(query_number(database, "SELECT min(shortest_ns) * 1000 + max(longest_ns) FROM past_summary"),
                     500 * 1000 + 599);
    assert_int_equal(query_number(database, "SELECT count(*) FROM past_blame WHERE class = 'gpu late'"), 3);
    assert_int_equal(
        query_number(database, "SELECT sum(verdicts) + (SELECT count(*) FROM past_verdict) FROM past_blame"),
        LONG_AGO / 10);
    assert_int_equal(query_number(database, "SELECT sum(size_ns) FROM past_blame"), 100 * (steps / 10));
}

/* They are many: the older ones become sums, which say of all of them together what they said one by one. */
static void past_steps_become_sums(void **state)
{
    struct made_job *job = made_create(&options);
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    const char *path = scratch_path(state, "", "sums.db");
    struct store *store;

    assert_int_equal(store_open(&store, path), 0);
    assert_int_equal(store_set_limit(store, 3 * MIB), 0);
    tell_part(analysis, job, 0);
    assert_int_equal(store_write(store, analysis), 0);
    sqlite3 *database = open_store(path);
    add_long_ago(database);
    for (int write = 0; write < 6; write++)
        assert_int_equal(store_write(store, analysis), 0);
    check_sums(database);
    assert_true(bytes_of(path) <= 3 * MIB);
    sqlite3_close(database);
    store_close(&store);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* It holds its answer while the store is written again and again, and the log may not outgrow the limit for it. */
static void a_reader_goes_on(void **state)
{
    struct made_job *job = made_create(&options);
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    const char *path = scratch_path(state, "", "read.db");
    struct store *store;
    sqlite3 *reader = NULL;
    int64_t steps = 0;
    unsigned refused = 0;

    assert_int_equal(store_open(&store, path), 0);
    assert_int_equal(store_set_limit(store, 3 * MIB), 0);
    for (unsigned part = 0; part < PARTS; part++) {
        tell_part(analysis, job, part);
        int error = store_write(store, analysis);
        assert_true(error == 0 || (error == -EBUSY && reader != NULL));
        refused += error != 0;
        assert_true(bytes_of(path) <= 3 * MIB);
        if (part == PARTS / 4) {
            reader = open_store(path);
            assert_int_equal(sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
            steps = query_number(reader, "SELECT " HELD_STEPS);
        }
        if (reader != NULL)
            assert_int_equal(query_number(reader, "SELECT " HELD_STEPS), steps);
    }
    assert_true(steps > 0 && refused > 0);
    assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(store_write(store, analysis), 0);
    assert_int_equal(query_number(reader, "SELECT " HELD_STEPS), STEPS);
    sqlite3_close(reader);
    store_close(&store);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* A file that was larger becomes smaller, and loses no step by it. */
static void a_large_store_shrinks(void **state)
{
    struct made_job *job = made_create(&options);
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    const char *path = play(state, "large.db", 0, ANALYSIS_MEMORY_BYTES);
    struct store *store;

    assert_true(bytes_of(path) > 3 * MIB);
    assert_int_equal(store_open(&store, path), 0);
    assert_int_equal(store_set_limit(store, 3 * MIB), 0);
    for (unsigned part = 0; part < PARTS; part++)
        tell_part(analysis, job, part);
    assert_int_equal(store_write(store, analysis), 0);
    sqlite3 *database = open_store(path);
    assert_true(bytes_of(path) <= 3 * MIB);
    assert_int_equal(query_number(database, "SELECT " HELD_STEPS), STEPS);
    check_references(database);
    sqlite3_close(database);
    store_close(&store);
    analysis_destroy(&analysis);
    made_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(detail_goes_first, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(past_steps_become_sums, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_reader_goes_on, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_large_store_shrinks, scratch_setup, scratch_teardown),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
