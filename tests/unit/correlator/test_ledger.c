/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What metrics are made of: a job told little by little to an analysis that holds half of it; in the end each step,
 * operation and verdict was entered once, whatever was cut out meanwhile. What is expected follows from how the job is
 * made.
 */
#include "correlator/exposition/ledger.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/correlator/world.h"
#include "wire/log.h"

#define STEPS      48
#define FIRST_LATE 4
#define LATE_RANK  2
#define PARTS      16

static const struct made_options late_host = {.ranks = 4,
                                              .channels = 2,
                                              .steps = STEPS,
                                              .seed = 9,
                                              .fault = MADE_HOST,
                                              .fault_rank = LATE_RANK,
                                              .fault_first_step = FIRST_LATE,
                                              .fault_ns = 40 * MADE_MS};

static void tell(struct analysis *analysis, const struct feed *feed, unsigned part)
{
    for (size_t i = feed->count * part / PARTS; i < feed->count * (part + 1) / PARTS; i++)
        analysis_add_batch(analysis, feed->batches[i].bytes, feed->batches[i].length_bytes);
}

struct sums {
    uint64_t steps;
    uint64_t operations;
    uint64_t verdicts;
    double step_seconds;
    double late_seconds;
    double cost_seconds;
    double wire_bytes;
};

static struct sums sums_of(const struct ledger *ledger)
{
    struct sums sums = {0};

    for (size_t i = 0; i < STEP_KINDS; i++) {
        sums.steps += ledger->steps[i].total;
        sums.step_seconds += ledger->steps[i].sum;
    }
    for (size_t i = 0; i < VERDICT_CLASSES; i++)
        sums.verdicts += ledger->verdicts[i];
    for (size_t i = 0; i < ledger->kinds.count; i++) {
        sums.operations += ledger->kinds.items[i].count;
        sums.wire_bytes += ledger->kinds.items[i].wire_bytes;
    }
    for (size_t i = 0; i < ledger->ranks.count; i++) {
        sums.late_seconds += ledger->ranks.items[i].late_seconds;
        sums.cost_seconds += ledger->ranks.items[i].cost_seconds;
    }
    return sums;
}

static void assert_nothing_fell(const struct sums *before, const struct sums *after)
{
    assert_true(after->steps >= before->steps && after->operations >= before->operations &&
                after->verdicts >= before->verdicts);
    assert_true(after->step_seconds >= before->step_seconds && after->late_seconds >= before->late_seconds);
    assert_true(after->cost_seconds >= before->cost_seconds && after->wire_bytes >= before->wire_bytes);
}

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

/* Tells all of it to an analysis with so much memory; the ledger is to be ended by the caller. */
static struct analysis *follow(const struct made_job *job, size_t memory_bytes, unsigned runs, struct ledger *ledger)
{
    struct analysis *analysis = analysis_create(memory_bytes);
    struct sums before = {0};

    ledger_init(ledger);
    for (unsigned part = 0; part < PARTS; part++) {
        tell(analysis, &job->nic, part);
        tell(analysis, &job->host, part);
        if ((part + 1) % (PARTS / runs) != 0)
            continue;
        analysis_run(analysis);
        ledger_take(ledger, analysis);
        struct sums now = sums_of(ledger);
        assert_nothing_fell(&before, &now);
        ledger_take(ledger, analysis); /* a second look at the same changes nothing */
        before = sums_of(ledger);
        assert_memory_equal(&before, &now, sizeof now);
    }
    return analysis;
}

static uint64_t of_late_hosts(const struct ledger *ledger)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < VERDICT_CLASSES; i++)
        if (strncmp(verdict_class_name(i), "host late", strlen("host late")) == 0)
            count += ledger->verdicts[i];
    return count;
}

static void enters_each_once_though_memory_is_cut(void **state)
{
    struct made_job *job = made_create(&late_host);
    struct ledger ledger;
    struct analysis *analysis = follow(job, whole_bytes(job) / 2, PARTS, &ledger);
    struct sums sums = sums_of(&ledger);

    (void)state;
    assert_true(intake_has_forgotten(&analysis->intake));
    assert_true(analysis->job.steps.count < STEPS * 3 / 4);
    assert_int_equal(sums.steps, STEPS);
    assert_int_equal(sums.operations, STEPS * job->operations);
    assert_true(sums.wire_bytes == (double)job->sent_bytes);
    assert_in_range(of_late_hosts(&ledger), STEPS - FIRST_LATE,
                    STEPS - FIRST_LATE + 2); /* two may have been judged anew */
    assert_int_equal(ledger.left_out, 0);
    const struct ledger_rank *late = &ledger.ranks.items[LATE_RANK];
    for (size_t i = 0; i < ledger.ranks.count; i++)
        assert_true(i == LATE_RANK || ledger.ranks.items[i].cost_seconds < late->cost_seconds / 4);
    assert_true(late->late_seconds >= (STEPS - FIRST_LATE) * 0.035);
    ledger_fini(&ledger);
    analysis_destroy(&analysis);
    made_destroy(job);
}

static const struct ledger_kind *kind_named(const struct ledger *ledger, uint8_t operation)
{
    for (size_t i = 0; i < ledger->kinds.count; i++)
        if (ledger->kinds.items[i].operation == operation)
            return &ledger->kinds.items[i];
    fail_msg("no operation of kind %u", operation);
    return NULL;
}

/* As nccl-tests counts: of 4 ranks an all-reduce's bus factor is 6/4, an all-gather moves 3/4 of all ranks' parts. */
static void counts_sizes_as_nccl_tests_does(void **state)
{
    struct made_options options = late_host;
    struct ledger ledger;

    (void)state;
    options.groups = true;
    struct made_job *job = made_create(&options);
    struct analysis *analysis = follow(job, ANALYSIS_MEMORY_BYTES, 1, &ledger);
    uint64_t all_reduce_bytes = 0, all_gather_bytes = 0;
    for (size_t i = 0; i < analysis->job.operations.count; i++) {
        const struct operation *operation = &analysis->job.operations.items[i];
        all_reduce_bytes += operation->kind == OPERATION_ALL_REDUCE ? operation->buffer_bytes : 0;
        all_gather_bytes += operation->kind == OPERATION_ALL_GATHER ? operation->buffer_bytes : 0;
    }
    const struct ledger_kind *all_reduce = kind_named(&ledger, OPERATION_ALL_REDUCE);
    const struct ledger_kind *all_gather = kind_named(&ledger, OPERATION_ALL_GATHER);
    assert_true(all_reduce_bytes > 0 && all_gather_bytes > 0);
    assert_true(all_reduce->message_bytes == (double)all_reduce_bytes);
    assert_true(all_reduce->bus_bytes == (double)all_reduce_bytes * 6 / 4);
    assert_true(all_gather->message_bytes == (double)all_gather_bytes * 4);
    assert_true(all_gather->bus_bytes == (double)all_gather_bytes * 3);
    assert_int_equal(all_reduce->size.total, all_reduce->count);
    assert_int_equal(all_reduce->duration.total, all_reduce->count);
    assert_true(fabs(all_reduce->duration.sum - all_reduce->wait_seconds - all_reduce->transfer_seconds) < 1e-6);
    ledger_fini(&ledger);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* Groups of sends and receives are numbered anew when what was before them is cut out. */
static void finds_groups_again_behind_a_cut(void **state)
{
    struct made_options options = late_host;
    struct ledger ledger;

    (void)state;
    options.groups = true;
    struct made_job *job = made_create(&options);
    struct analysis *analysis = follow(job, whole_bytes(job) / 2, PARTS, &ledger);
    assert_true(intake_has_forgotten(&analysis->intake));
    assert_int_equal(kind_named(&ledger, OPERATION_GROUP)->count, STEPS);
    ledger_fini(&ledger);
    analysis_destroy(&analysis);
    made_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enters_each_once_though_memory_is_cut),
        cmocka_unit_test(counts_sizes_as_nccl_tests_does),
        cmocka_unit_test(finds_groups_again_behind_a_cut),
    };

    log_init("test_ledger", LOG_NONE);
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
