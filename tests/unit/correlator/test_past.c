/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job longer than the correlator's memory: 48 steps, rank 2 late from step 4 on, told little by little to an analysis
 * that holds a part of it. In the end each step is in the store once, with its verdict.
 */
#include "correlator/store/store.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "correlator/analysis.h"
#include "tests/unit/correlator/query.h"
#include "tests/unit/correlator/world.h"
#include "tests/unit/scratch.h"
#include "wire/log.h"

#define STEPS      48
#define FIRST_LATE 4
#define PARTS      16
#define ALL_STEPS                                                                                                      \
    "(SELECT start_ns, end_ns, duration_ns FROM past_step UNION ALL "                                                  \
    "SELECT start_ns, end_ns, duration_ns FROM step WHERE partial = 0)"

static const struct made_options options = {.ranks = 4,
                                            .channels = 2,
                                            .steps = STEPS,
                                            .seed = 9,
                                            .fault = MADE_HOST,
                                            .fault_rank = 2,
                                            .fault_first_step = FIRST_LATE,
                                            .fault_ns = 40 * MADE_MS};

static void tell(struct analysis *analysis, const struct feed *feed, unsigned part)
{
    for (size_t i = feed->count * part / PARTS; i < feed->count * (part + 1) / PARTS; i++)
        analysis_add_batch(analysis, feed->batches[i].bytes, feed->batches[i].length_bytes);
}

/* Tells parts [from, to) and writes after each. */
static void go_on(struct store *store, struct analysis *analysis, const struct made_job *job, unsigned from,
                  unsigned to)
{
    for (unsigned part = from; part < to; part++) {
        tell(analysis, &job->nic, part);
        tell(analysis, &job->host, part);
        analysis_run(analysis);
        assert_int_equal(store_write(store, analysis), 0);
    }
}

/* How much the whole job takes in an analysis that has room. */
static size_t whole_bytes(const struct made_job *job)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);

    for (unsigned part = 0; part < PARTS; part++) {
        tell(analysis, &job->nic, part);
        tell(analysis, &job->host, part);
    }
    size_t bytes = analysis->intake.held_bytes;
    analysis_destroy(&analysis);
    return bytes;
}

static sqlite3 *open_store(const char *path)
{
    sqlite3 *database;

    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    return database;
}

/* Each step once: none's middle lies within another one; the last one has the number that it has in the job. */
static void check_steps(sqlite3 *database)
{
    assert_int_equal(query_number(database, "SELECT max(id) FROM step"), STEPS - 1);
    assert_int_equal(query_number(database, "SELECT max(id) - min(id) + 1 - count(*) FROM step"), 0);
    assert_int_equal(query_number(database, "SELECT count(*) FROM " ALL_STEPS), STEPS);
    assert_int_equal(query_number(database, "SELECT count(*) FROM " ALL_STEPS " AS one JOIN " ALL_STEPS
                                            " AS other ON one.start_ns != other.start_ns AND "
                                            "(one.start_ns + one.end_ns) / 2 BETWEEN other.start_ns AND other.end_ns"),
                     0);
}

static void steps_outlive_their_detail(void **state)
{
    struct made_job *job = made_create(&options);
    struct analysis *analysis = analysis_create(whole_bytes(job) / 2);
    const char *path = scratch_path(state, "", "past.db");
    struct store *store;

    assert_int_equal(store_open(&store, path), 0);
    go_on(store, analysis, job, 0, PARTS);
    sqlite3 *database = open_store(path);
    assert_true(query_number(database, "SELECT count(*) FROM past_step") > STEPS / 4);
    assert_true(query_number(database, "SELECT count(*) FROM step") < STEPS * 3 / 4);
    check_steps(database);
    assert_int_equal(
        query_number(database,
                     "SELECT count(DISTINCT step_start_ns) FROM past_verdict WHERE class = 'host late' AND rank = 2"),
        query_number(database, "SELECT count(*) FROM past_step") - FIRST_LATE);
    sqlite3_close(database);
    store_close(&store);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* A correlator that is started again knows nothing of what was told before: its file still does. */
static void steps_outlive_their_correlator(void **state)
{
    struct made_job *job = made_create(&options);
    struct analysis *before = analysis_create(ANALYSIS_MEMORY_BYTES), *after = analysis_create(ANALYSIS_MEMORY_BYTES);
    const char *path = scratch_path(state, "", "again.db");
    struct store *store;

    assert_int_equal(store_open(&store, path), 0);
    go_on(store, before, job, 0, PARTS / 2);
    store_close(&store);
    assert_int_equal(store_open(&store, path), 0);
    /* who is who comes again with each greeting */
    analysis_add_batch(after, job->nic.batches[0].bytes, job->nic.batches[0].length_bytes);
    analysis_add_batch(after, job->host.batches[0].bytes, job->host.batches[0].length_bytes);
    go_on(store, after, job, PARTS / 2, PARTS);
    sqlite3 *database = open_store(path);
    int64_t past = query_number(database, "SELECT count(*) FROM past_step");
    assert_in_range(past, STEPS / 2 - 3, STEPS / 2 + 1);
    assert_int_equal(
        query_number(database, "SELECT count(*) FROM past_step JOIN step ON past_step.start_ns < step.end_ns - 1000000 "
                               "AND past_step.end_ns > step.start_ns + 1000000 WHERE step.partial = 0"),
        0);
    sqlite3_close(database);
    store_close(&store);
    analysis_destroy(&before);
    analysis_destroy(&after);
    made_destroy(job);
}

/* What a replay writes into a file that holds something else is that alone. */
static void another_job_has_no_past(void **state)
{
    struct made_job *job = made_create(&options);
    struct analysis *analysis = analysis_create(whole_bytes(job) / 2);
    const char *path = scratch_path(state, "", "other.db");
    struct store *store;

    assert_int_equal(store_open(&store, path), 0);
    go_on(store, analysis, job, 0, PARTS);
    store_close(&store);
    assert_int_equal(analysis_write(analysis, path), 0);
    sqlite3 *database = open_store(path);
    assert_int_equal(query_number(database, "SELECT count(*) FROM past_step"), 0);
    assert_int_equal(query_number(database, "SELECT count(*) FROM past_verdict"), 0);
    sqlite3_close(database);
    analysis_destroy(&analysis);
    made_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_outlive_their_detail, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(steps_outlive_their_correlator, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(another_job_has_no_past, scratch_setup, scratch_teardown),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("past", tests, NULL, NULL);
}
