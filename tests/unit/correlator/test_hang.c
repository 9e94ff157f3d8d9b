/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hangs, and who is missing. A made-up job that ends well; behind it an operation that some ranks give and that
 * never ends, with hosts that are heard of for a while longer.
 */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/analysis.h"
#include "tests/unit/correlator/world.h"
#include "tests/unit/scratch.h"
#include "wire/log.h"

#define STEPS       8
#define RANKS       4
#define MISSING     2
#define SECOND      (1000 * MADE_MS)
#define OTHER_FIRST 11 /* number of the second communicator on rank 0 */

static const struct made_options options = {.ranks = RANKS, .channels = 2, .steps = STEPS, .seed = 9};

static void add_call(struct made_job *job, uint32_t communicator, uint64_t sequence, uint64_t at_ns)
{
    struct record_call call = {.header.source = communicator,
                               .sequence = (uint32_t)sequence,
                               .count = 1 << 16,
                               .entered_ns = feed_time(&job->host, at_ns),
                               .enqueued_ns = feed_time(&job->host, at_ns),
                               .peer = -1,
                               .tid = 500 + communicator,
                               .operation = OPERATION_ALL_GATHER,
                               .datatype = 7,
                               .reduction = 255};
    feed_add(&job->host, RECORD_CALL, &call);
}

static uint64_t end_of(const struct made_job *job)
{
    return job->step_end_ns[STEPS - 1];
}

/* All but one rank give one more operation, 20 ms behind the last step. */
static void hang(struct made_job *job)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (rank != MISSING)
            add_call(job, rank + 1, 4 * STEPS, end_of(job) + 20 * MADE_MS + rank * MADE_MS);
}

static void hear_until(struct made_job *job, uint64_t after_ns)
{
    struct record_heartbeat beat = {.at_ns = feed_time(&job->host, end_of(job) + after_ns)};

    feed_add(&job->host, RECORD_HEARTBEAT, &beat);
    feed_send(&job->host, end_of(job) + after_ns);
}

static void check_one(const struct analysis *analysis, int32_t rank, const char *words)
{
    assert_int_equal(analysis->job.verdicts.count, 1);
    const struct verdict *verdict = &analysis->job.verdicts.items[0];
    assert_int_equal(verdict->class, VERDICT_HANG);
    assert_int_equal(verdict->rank, rank);
    assert_int_equal(verdict->step, -1);
    if (strstr(verdict->evidence, words) == NULL)
        fail_msg("'%s' is not in: %s", words, verdict->evidence);
}

static void check(struct made_job *job, int32_t rank, const char *words)
{
    struct analysis *analysis = world_analysis(job);

    check_one(analysis, rank, words);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* It began 20 ms behind the step, and was waited for for 3 s less 20 ms. */
static void names_who_is_missing(void **state)
{
    (void)state;
    struct made_job *job = made_create(&options);
    hang(job);
    hear_until(job, 3 * SECOND);
    struct analysis *analysis = world_analysis(job);
    check_one(analysis, MISSING, "3 of 4 ranks asked for the operation, and it had not ended 29");
    assert_non_null(strstr(analysis->job.verdicts.items[0].evidence, "missing: 2; "));
    assert_non_null(strstr(analysis->job.verdicts.items[0].evidence, "no sign of a failure was seen"));
    assert_in_range(analysis->job.verdicts.items[0].size_ns, 2979 * MADE_MS, 2981 * MADE_MS);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* The usual step takes tens of milliseconds: a second more is not yet over. */
static void waits_for_a_second_more_than_a_step(void **state)
{
    (void)state;
    struct made_job *job = made_create(&options);
    hang(job);
    hear_until(job, 900 * MADE_MS);
    struct analysis *analysis = world_analysis(job);
    assert_int_equal(analysis->job.verdicts.count, 0);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* A job that has ended well, and whose hosts live on, does not hang. */
static void what_has_ended_does_not_hang(void **state)
{
    (void)state;
    struct made_job *job = made_create(&options);
    hear_until(job, 60 * SECOND);
    struct analysis *analysis = world_analysis(job);
    assert_int_equal(analysis->job.verdicts.count, 0);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* Rank 0 is inside an operation of another communicator, for which rank 1 is missing, which waits for rank 2. */
static void who_waits_elsewhere_is_not_named(void **state)
{
    (void)state;
    struct made_job *job = made_create(&options);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct record_communicator other = {.communicator = OTHER_FIRST + rank,
                                            .process = rank + 1,
                                            .pointer = 0x2000,
                                            .identity = "made-up-job-two",
                                            .ranks_count = 2,
                                            .rank = (int32_t)rank,
                                            .created_ns = feed_time(&job->host, job->first_step_ns),
                                            .ready_ns = feed_time(&job->host, job->first_step_ns)};
        feed_add(&job->host, RECORD_COMMUNICATOR, &other);
    }
    add_call(job, OTHER_FIRST, 0, end_of(job) + 10 * MADE_MS);
    add_call(job, 2, 4 * STEPS, end_of(job) + 20 * MADE_MS);
    add_call(job, 4, 4 * STEPS, end_of(job) + 20 * MADE_MS);
    hear_until(job, 3 * SECOND);
    check(job, MISSING, "missing: 0, 2; ");
}

static void add_failure(struct made_job *job, uint32_t rank, uint32_t cause, uint64_t at_ns, const char *text)
{
    struct record_failure failure = {.header.source = rank + 1,
                                     .at_ns = feed_time(&job->host, at_ns),
                                     .communicator = cause == FAILURE_WARNING ? 0 : rank + 1,
                                     .queue_pair = cause == FAILURE_QUEUE_PAIR_ERROR ? rank * 100 + 1 : 0,
                                     .cause = cause,
                                     .result = cause == FAILURE_ASYNC_ERROR ? 6 : 0};
    strncpy(failure.text, text, sizeof failure.text - 1);
    feed_add(&job->host, RECORD_FAILURE, &failure);
}

/* The first failure since the operation before is named, with its rank and communicator; an earlier one is not. */
static void names_the_first_failure(void **state)
{
    (void)state;
    struct made_job *job = made_create(&options);
    const char *path = scratch_path(state, "", "hang.db");
    sqlite3 *store;

    add_failure(job, 0, FAILURE_ASYNC_ERROR, end_of(job) + 500 * MADE_MS, "");
    add_failure(job, 1, FAILURE_WARNING, job->step_begin_ns[1], "NET/Plugin: no %s found");
    add_failure(job, MISSING, FAILURE_QUEUE_PAIR_ERROR, end_of(job) + 5 * MADE_MS, "");
    add_failure(job, 3, FAILURE_WARNING, end_of(job) + 700 * MADE_MS, "transport/net_ib.cc:%d timeout");
    hang(job);
    hear_until(job, 3 * SECOND);
    struct analysis *analysis = world_analysis(job);
    check_one(
        analysis, MISSING,
        "the first sign of a failure since the operation before: queue pair error of rank 2 on communicator 1, 15.0 "
        "ms before the operation began");
    assert_int_equal(analysis_write(analysis, path), 0);
    assert_int_equal(sqlite3_open(path, &store), SQLITE_OK);
    sqlite3_stmt *row;
    assert_int_equal(
        sqlite3_prepare_v2(store,
                           "SELECT failure.cause, failure.rank, failure.id FROM verdict_evidence AS e JOIN "
                           "failure ON failure.id BETWEEN e.first_row AND e.last_row JOIN verdict ON "
                           "verdict.id = e.verdict WHERE e.source = 'failure' AND verdict.step IS NULL",
                           -1, &row, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(row, 0), "queue pair error");
    assert_int_equal(sqlite3_column_int(row, 1), MISSING);
    assert_int_equal(sqlite3_column_int(row, 2), 2); /* by time; the warning of the second step is the first */
    sqlite3_finalize(row);
    assert_int_equal(
        sqlite3_prepare_v2(store, "SELECT cause, rank, text, result, process FROM failure ORDER BY id", -1, &row, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW); /* a warning: of a process, of no communicator */
    assert_string_equal((const char *)sqlite3_column_text(row, 0), "warning");
    assert_string_equal((const char *)sqlite3_column_text(row, 2), "NET/Plugin: no %s found");
    assert_int_equal(sqlite3_column_type(row, 1), SQLITE_NULL);
    assert_int_equal(sqlite3_column_type(row, 3), SQLITE_NULL);
    assert_int_equal(sqlite3_column_int(row, 4), 2);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(row, 0), "async error");
    assert_int_equal(sqlite3_column_int(row, 1), 0);
    assert_int_equal(sqlite3_column_int(row, 3), 6);
    sqlite3_finalize(row);
    sqlite3_close(store);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* A rank whose process has ended is missing from then on, though nobody hears of it any more. */
static void a_rank_that_died_is_missing(void **state)
{
    (void)state;
    struct made_job *job = made_create(&options);
    struct record_process ended = {.process = MISSING + 1,
                                   .pid = 100 + MISSING,
                                   .command = "train",
                                   .ended_ns = feed_time(&job->host, end_of(job) + 8 * MADE_MS)};
    feed_add(&job->host, RECORD_PROCESS, &ended);
    add_failure(job, MISSING, FAILURE_PROCESS_ENDED, end_of(job) + 8 * MADE_MS, "");
    hang(job);
    hear_until(job, 3 * SECOND);
    check(job, MISSING, "process ended of rank 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_who_is_missing),         cmocka_unit_test(waits_for_a_second_more_than_a_step),
        cmocka_unit_test(what_has_ended_does_not_hang), cmocka_unit_test(who_waits_elsewhere_is_not_named),
        cmocka_unit_test(names_the_first_failure),      cmocka_unit_test(a_rank_that_died_is_missing),
    };

    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("hang", tests, scratch_setup, scratch_teardown);
}
