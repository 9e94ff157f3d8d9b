/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a link was slow. A made-up job whose rank 2 sends ten times as slowly from step 4 on, or is late; beside it ports
 * and flows count so much in each millisecond of some steps. What follows is known from that by arithmetic.
 */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/analysis.h"
#include "correlator/store/store.h"
#include "tests/unit/correlator/query.h"
#include "tests/unit/correlator/world.h"
#include "tests/unit/scratch.h"
#include "wire/log.h"

#define SLOW_RANK  2
#define NEXT_RANK  3
#define FIRST_STEP 4
#define STEPS      12
#define EVERYWHERE -1

struct made_count { /* of a port, or of a flow when `field` is set */
    uint16_t metric;
    uint8_t priority;
    size_t field;   /* offset in struct record_flow_total */
    bool in_answer; /* in the flow that travels the other way */
    int rank;       /* whose port, or whose data; or EVERYWHERE */
    int first_step;
    int last_step;
    uint64_t each_ms; /* how much it rises in each millisecond of these steps */
};

#define FIELD(name) .field = offsetof(struct record_flow_total, name)

static const struct made_options slow_link = {.ranks = 4,
                                              .channels = 2,
                                              .steps = STEPS,
                                              .seed = 3,
                                              .fault = MADE_LINK,
                                              .fault_rank = SLOW_RANK,
                                              .fault_first_step = FIRST_STEP,
                                              .fault_ns = MADE_MS};

static void count_once(struct made_job *job, const struct made_count *count, int rank, uint64_t at_ns, uint64_t value)
{
    if (count->field != 0) {
        struct record_flow_total total = {
            .header.source = count->in_answer ? job->credit_flow[rank] : job->data_flow[rank],
            .at_ns = feed_time(&job->nic, at_ns + MADE_MS),
        };
        uint32_t narrow = (uint32_t)value;
        memcpy((char *)&total + count->field, &narrow, sizeof narrow);
        feed_add(&job->nic, RECORD_FLOW_TOTAL, &total);
    } else {
        struct record_port_counter counter = {
            .header.source = (uint32_t)rank + 1,
            .metric = count->metric,
            .priority = count->priority,
            .from_ns = feed_time(&job->nic, at_ns),
            .to_ns = feed_time(&job->nic, at_ns + MADE_MS),
            .value = value,
        };
        feed_add(&job->nic, RECORD_PORT_COUNTER, &counter);
    }
}

/* A flow's total is told each millisecond, whether it rose or not; a port's counter only when it did. */
static void count_rank(struct made_job *job, const struct made_count *count, int rank)
{
    uint64_t value = 0;

    for (int step = 0; step < job->options.steps; step++) {
        for (uint64_t at = job->step_begin_ns[step]; at < job->step_end_ns[step]; at += MADE_MS) {
            bool rises = step >= count->first_step && step <= count->last_step;
            value += rises ? count->each_ms : 0;
            if (rises || count->field != 0)
                count_once(job, count, rank, at, value);
        }
        feed_send(&job->nic, job->step_end_ns[job->options.steps - 1] + MADE_MS);
    }
}

static struct made_job *make(const struct made_options *options, const struct made_count *count)
{
    struct made_job *job = made_create(options);

    for (int rank = 0; rank < options->ranks; rank++)
        if (count->rank == rank || count->rank == EVERYWHERE)
            count_rank(job, count, rank);
    return job;
}

/* Every step from FIRST_STEP on has one verdict, at that link. */
static void check_class(const struct analysis *analysis, enum verdict_class class, const char *device)
{
    assert_int_equal(analysis->job.verdicts.count, STEPS - FIRST_STEP);
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        const struct verdict *verdict = &analysis->job.verdicts.items[i];
        assert_string_equal(verdict_class_name(verdict->class), verdict_class_name(class));
        assert_int_equal(verdict->step, FIRST_STEP + (int)i);
        assert_int_equal(verdict->rank, SLOW_RANK);
        assert_int_equal(verdict->peer_rank, NEXT_RANK);
        assert_string_equal(verdict->device, device);
    }
}

static void check(const struct made_count *count, enum verdict_class class, const char *device)
{
    struct made_job *job = make(&slow_link, count);
    struct analysis *analysis = world_analysis(job);

    check_class(analysis, class, device);
    analysis_destroy(&analysis);
    made_destroy(job);
}

static const struct made_count pause_of_sender = {.metric = PORT_METRIC_PAUSE_RECEIVED_TIME,
                                                  .priority = 3,
                                                  .rank = SLOW_RANK,
                                                  .first_step = FIRST_STEP,
                                                  .last_step = STEPS,
                                                  .each_ms = 600000};

static void each_count_has_its_class_and_place(void **state)
{
    static const struct {
        struct made_count count;
        enum verdict_class class;
        const char *device;
    } cases[] = {
        {{.metric = PORT_METRIC_PAUSE_SENT_TIME, .priority = 3, .rank = NEXT_RANK, .each_ms = 500000},
         VERDICT_PAUSING,
         "rxe3/1"},
        {{.metric = PORT_METRIC_PAUSE_RECEIVED, .priority = 3, .rank = SLOW_RANK, .each_ms = 9},
         VERDICT_PAUSING,
         "rxe2/1"},
        {{.metric = PORT_METRIC_SYMBOL_ERRORS, .priority = 255, .rank = NEXT_RANK, .each_ms = 2},
         VERDICT_LINK_BAD,
         "rxe3/1"},
        {{.metric = PORT_METRIC_SENT_DISCARDS, .priority = 255, .rank = SLOW_RANK, .each_ms = 1},
         VERDICT_LINK_BAD,
         "rxe2/1"},
        {{.metric = PORT_METRIC_ACK_TIMEOUTS, .priority = 255, .rank = SLOW_RANK, .each_ms = 1},
         VERDICT_NETWORK_LOSSY,
         "rxe2/1"},
        {{.metric = PORT_METRIC_OUT_OF_BUFFER, .priority = 255, .rank = NEXT_RANK, .each_ms = 1},
         VERDICT_RECEIVER_SLOW,
         "rxe3/1"},
        {{.metric = PORT_METRIC_CNP_HANDLED, .priority = 255, .rank = SLOW_RANK, .each_ms = 5},
         VERDICT_CONGESTED,
         "rxe2/1"},
        {{FIELD(retransmitted_frames), .rank = SLOW_RANK, .each_ms = 3}, VERDICT_NETWORK_LOSSY, "rxe2/1"},
        {{FIELD(timeouts), .rank = SLOW_RANK, .each_ms = 1}, VERDICT_NETWORK_LOSSY, "rxe2/1"},
        {{FIELD(naks), .in_answer = true, .rank = SLOW_RANK, .each_ms = 1}, VERDICT_NETWORK_LOSSY, "rxe2/1"},
        {{FIELD(rnr_naks), .in_answer = true, .rank = SLOW_RANK, .each_ms = 1}, VERDICT_RECEIVER_SLOW, "rxe2/1"},
        {{FIELD(cnps), .in_answer = true, .rank = SLOW_RANK, .each_ms = 4}, VERDICT_CONGESTED, "rxe2/1"},
        {{FIELD(marked_frames), .rank = SLOW_RANK, .each_ms = 8}, VERDICT_CONGESTED, "rxe2/1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made_count count = cases[i].count;
        count.first_step = FIRST_STEP;
        count.last_step = STEPS;
        check(&count, cases[i].class, cases[i].device);
    }
}

/* 0.6 ms of pause in each millisecond: six tenths of whatever time the transfer took. */
static void the_share_of_a_pause_is_right(void **state)
{
    struct made_job *job = make(&slow_link, &pause_of_sender);
    struct analysis *analysis = world_analysis(job);

    (void)state;
    check_class(analysis, VERDICT_PAUSING, "rxe2/1");
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        const struct verdict *verdict = &analysis->job.verdicts.items[i];
        assert_int_equal(verdict->numbers.count, 1);
        const struct verdict_evidence *number = &verdict->numbers.items[0];
        assert_true(number->decides && number->of_port);
        assert_int_equal(number->priority, 3);
        assert_in_range(number->amount * 100 / (number->to_ns - number->from_ns), 50, 70);
        assert_in_range(number->from_ns, job->step_begin_ns[verdict->step], job->step_end_ns[verdict->step]);
        assert_in_range(number->to_ns, number->from_ns, job->step_end_ns[verdict->step] + MADE_MS);
        assert_true(number->usual == 0);
        for (int32_t row = number->first_row; row <= number->last_row; row++)
            assert_int_equal(analysis->counted.port_counters.items[row].added, 600000);
        assert_non_null(strstr(verdict->evidence, "port fa2 counted pause_received_ns of priority 3"));
    }
    analysis_destroy(&analysis);
    made_destroy(job);
}

static void what_counts_elsewhere_or_at_another_time_is_no_cause(void **state)
{
    struct made_count count = pause_of_sender;

    (void)state;
    count.rank = 0; /* another port */
    check(&count, VERDICT_NETWORK_SLOW, "rxe2/1");
    count.rank = NEXT_RANK; /* the receiver's port, told to pause what it sends itself */
    check(&count, VERDICT_NETWORK_SLOW, "rxe2/1");
    count = pause_of_sender; /* before the link was slow */
    count.first_step = 0;
    count.last_step = FIRST_STEP - 1;
    check(&count, VERDICT_NETWORK_SLOW, "rxe2/1");
    count = pause_of_sender; /* a twentieth of the time explains nothing */
    count.each_ms = 50000;
    check(&count, VERDICT_NETWORK_SLOW, "rxe2/1");
    struct made_count flow = {FIELD(retransmitted_frames), .first_step = FIRST_STEP, .last_step = STEPS, .each_ms = 3};
    flow.rank = 1; /* another flow */
    check(&flow, VERDICT_NETWORK_SLOW, "rxe2/1");
    flow.rank = EVERYWHERE; /* nothing out of the usual */
    flow.first_step = 0;
    check(&flow, VERDICT_NETWORK_SLOW, "rxe2/1");
}

/* Nothing was counted in the last of eight steps; where that is so in half of them, it stays unsaid there. */
static void one_step_without_a_count_has_the_cause_of_the_others(void **state)
{
    struct made_count count = pause_of_sender;
    size_t pausing = 0;

    (void)state;
    count.last_step = STEPS - 2;
    check(&count, VERDICT_PAUSING, "rxe2/1");
    count.last_step = FIRST_STEP + 3;
    struct made_job *job = make(&slow_link, &count);
    struct analysis *analysis = world_analysis(job);
    for (size_t i = 0; i < analysis->job.verdicts.count; i++)
        pausing += analysis->job.verdicts.items[i].class == VERDICT_PAUSING;
    assert_int_equal(pausing, 4);
    assert_int_equal(analysis->job.verdicts.count, STEPS - FIRST_STEP);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* What the source or the port does not show is no evidence, whatever the record holds. */
static void what_is_not_seen_gives_no_class(void **state)
{
    struct made_count count = {FIELD(retransmitted_frames), .rank = SLOW_RANK, .first_step = FIRST_STEP,
                               .last_step = STEPS, .each_ms = 3};
    struct record_traffic_source source = {.kind = TRAFFIC_SOURCE_DPDK, .fields = SOURCE_MESSAGES | SOURCE_ANSWERS};
    struct record_port port = {.port = SLOW_RANK + 1, .name = "fa2", .flags = PORT_EDGES_ONLY};

    (void)state;
    struct made_job *job = make(&slow_link, &count);
    feed_add(&job->nic, RECORD_TRAFFIC_SOURCE, &source);
    feed_send(&job->nic, job->step_end_ns[STEPS - 1] + 2 * MADE_MS);
    struct analysis *analysis = world_analysis(job);
    check_class(analysis, VERDICT_NETWORK_SLOW, "rxe2/1");
    analysis_destroy(&analysis);
    source.fields = SOURCE_PROGRESS;
    feed_add(&job->nic, RECORD_TRAFFIC_SOURCE, &source);
    feed_send(&job->nic, job->step_end_ns[STEPS - 1] + 3 * MADE_MS);
    analysis = world_analysis(job);
    assert_int_equal(analysis->job.verdicts.count, 0);
    analysis_destroy(&analysis);
    made_destroy(job);
    job = make(&slow_link, &count);
    feed_add(&job->nic, RECORD_PORT, &port);
    feed_send(&job->nic, job->step_end_ns[STEPS - 1] + 2 * MADE_MS);
    analysis = world_analysis(job);
    check_class(analysis, VERDICT_NETWORK_SLOW, "rxe2/1");
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* Data that is late because its first frame was lost before our port: its sender's time-outs tell it from a late GPU.
 */
static void a_lost_first_frame_is_no_late_gpu(void **state)
{
    struct made_options late = slow_link;
    struct made_count count = {.metric = PORT_METRIC_ACK_TIMEOUTS,
                               .priority = 255,
                               .rank = SLOW_RANK,
                               .first_step = FIRST_STEP,
                               .last_step = STEPS,
                               .each_ms = 1};

    (void)state;
    late.fault = MADE_GPU;
    late.fault_ns = 67 * MADE_MS;
    for (int rank = 1; rank <= SLOW_RANK; rank++) {
        count.rank = rank;
        struct made_job *job = make(&late, &count);
        struct analysis *analysis = world_analysis(job);
        assert_int_equal(analysis->job.verdicts.count, STEPS - FIRST_STEP);
        for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
            const struct verdict *verdict = &analysis->job.verdicts.items[i];
            assert_int_equal(verdict->class, rank == SLOW_RANK ? VERDICT_NETWORK_LOSSY : VERDICT_GPU_LATE);
            assert_int_equal(verdict->rank, SLOW_RANK);
            assert_int_equal(verdict->peer_rank, rank == SLOW_RANK ? NEXT_RANK : -1);
            assert_in_range(verdict->size_ns, 65 * MADE_MS, 69 * MADE_MS);
        }
        analysis_destroy(&analysis);
        made_destroy(job);
    }
}

/*
 * Nothing is slow, but a flow waits half of each millisecond of some steps for acknowledgements, and stands still
 * there: half of these steps' length. A wait of less than a hundredth of a step is not worth a verdict.
 */
static void waiting_for_lost_frames_is_a_verdict(void **state)
{
    struct made_options stalls = slow_link;
    struct made_count count = {FIELD(timeout_us), .rank = SLOW_RANK, .first_step = FIRST_STEP, .last_step = STEPS,
                               .each_ms = 500};

    (void)state;
    stalls.fault = MADE_STALL;
    stalls.fault_ns = 120 * MADE_MS;
    struct made_job *job = make(&stalls, &count);
    struct analysis *analysis = world_analysis(job);
    assert_int_equal(analysis->job.verdicts.count, STEPS - FIRST_STEP);
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        const struct verdict *verdict = &analysis->job.verdicts.items[i];
        const struct step *step = &analysis->job.steps.items[verdict->step];
        uint64_t half_ns = (step->end_ns - step->start_ns) / 2;
        assert_int_equal(verdict->class, VERDICT_NETWORK_LOSSY);
        assert_int_equal(verdict->step, FIRST_STEP + (int)i);
        assert_int_equal(verdict->rank, SLOW_RANK);
        assert_int_equal(verdict->peer_rank, NEXT_RANK);
        assert_in_range(verdict->size_ns, half_ns - half_ns / 20, half_ns + half_ns / 20);
        assert_int_equal(analysis->job.operations.items[verdict->operation].step, verdict->step);
        assert_true(verdict->numbers.count > 0 && verdict->numbers.items[0].decides);
    }
    analysis_destroy(&analysis);
    made_destroy(job);
    count.each_ms = 9;
    job = make(&stalls, &count);
    analysis = world_analysis(job);
    for (size_t i = 0; i < analysis->job.verdicts.count; i++)
        assert_int_not_equal(analysis->job.verdicts.items[i].class, VERDICT_NETWORK_LOSSY);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* A flow waits as long, but no operation takes longer for it: it was an answer that nobody needed. */
static void a_wait_that_holds_up_nothing_is_no_verdict(void **state)
{
    struct made_options quiet = slow_link;
    struct made_count count = {FIELD(timeout_us), .rank = SLOW_RANK, .first_step = FIRST_STEP,
                               .last_step = FIRST_STEP + 2, .each_ms = 500};

    (void)state;
    quiet.fault = MADE_NONE;
    struct made_job *job = make(&quiet, &count);
    struct analysis *analysis = world_analysis(job);
    assert_int_equal(analysis->job.verdicts.count, 0);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* A late GPU stays one where its link also lost a frame, if that was waited for much less long. */
static void a_late_gpu_is_not_excused_by_a_short_wait(void **state)
{
    struct made_options late = slow_link;
    struct made_count count = {FIELD(timeout_us), .rank = SLOW_RANK, .first_step = FIRST_STEP, .last_step = STEPS,
                               .each_ms = 40};
    size_t gpu = 0;

    (void)state;
    late.fault = MADE_GPU;
    late.fault_ns = 67 * MADE_MS;
    struct made_job *job = make(&late, &count);
    struct analysis *analysis = world_analysis(job);
    for (size_t i = 0; i < analysis->job.verdicts.count; i++)
        gpu += analysis->job.verdicts.items[i].class == VERDICT_GPU_LATE;
    assert_int_equal(gpu, STEPS - FIRST_STEP);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* The rows that a verdict names are those of its port and priority, and add up to its amount, but for the two edges. */
static void the_store_leads_to_the_rows(void **state)
{
    struct made_job *job = make(&slow_link, &pause_of_sender);
    struct analysis *analysis = world_analysis(job);
    const char *path = scratch_path(state, "", "cause.db");
    sqlite3 *store;

    assert_int_equal(analysis_write(analysis, path), 0);
    assert_int_equal(sqlite3_open(path, &store), SQLITE_OK);
    assert_int_equal(query_number(store,
                                  "SELECT count(*) FROM verdict_evidence WHERE decides = 1 AND source = 'port_counter' "
                                  "AND side = 'sender' AND share BETWEEN 0.5 AND 0.7"),
                     STEPS - FIRST_STEP);
    assert_int_equal(
        query_number(
            store,
            "SELECT count(*) FROM verdict_evidence JOIN port ON port.id = verdict_evidence.port "
            "WHERE abs((SELECT sum(added) FROM port_counter WHERE port_counter.id BETWEEN first_row AND last_row "
            "AND port_counter.port = verdict_evidence.port AND priority = 3) - amount) <= 1200000 "
            "AND port.name = 'fa2'"),
        STEPS - FIRST_STEP);
    assert_int_equal(query_number(store, "SELECT count(*) FROM withheld"), 0);
    assert_int_equal(query_number(store, "SELECT count(*) FROM port WHERE sees = 'all'"), 4);
    sqlite3_close(store);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* A store of an earlier version is made anew, one of a later version is left alone. */
static void an_older_store_is_made_anew(void **state)
{
    struct made_job *job = make(&slow_link, &pause_of_sender);
    struct analysis *analysis = world_analysis(job);
    const char *path = scratch_path(state, "", "older.db");
    sqlite3 *store;

    assert_int_equal(sqlite3_open(path, &store), SQLITE_OK);
    assert_int_equal(sqlite3_exec(store,
                                  "PRAGMA application_id = 1364218691; PRAGMA user_version = 1;"
                                  "CREATE TABLE verdict (id INTEGER PRIMARY KEY, old TEXT);"
                                  "CREATE TABLE gone (x); CREATE VIEW old_view AS SELECT * FROM gone;",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(analysis_write(analysis, path), 0);
    assert_int_equal(query_number(store, "SELECT count(*) FROM verdict"), STEPS - FIRST_STEP);
    assert_int_equal(query_number(store, "SELECT count(*) FROM sqlite_master WHERE name IN ('gone', 'old_view')"), 0);
    assert_int_equal(query_number(store, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    assert_int_equal(sqlite3_exec(store, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    assert_true(analysis_write(analysis, path) < 0);
    sqlite3_close(store);
    analysis_destroy(&analysis);
    made_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_count_has_its_class_and_place),
        cmocka_unit_test(the_share_of_a_pause_is_right),
        cmocka_unit_test(what_counts_elsewhere_or_at_another_time_is_no_cause),
        cmocka_unit_test(one_step_without_a_count_has_the_cause_of_the_others),
        cmocka_unit_test(what_is_not_seen_gives_no_class),
        cmocka_unit_test(a_lost_first_frame_is_no_late_gpu),
        cmocka_unit_test(waiting_for_lost_frames_is_a_verdict),
        cmocka_unit_test(a_wait_that_holds_up_nothing_is_no_verdict),
        cmocka_unit_test(a_late_gpu_is_not_excused_by_a_short_wait),
        cmocka_unit_test(the_store_leads_to_the_rows),
        cmocka_unit_test(an_older_store_is_made_anew),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("cause", tests, scratch_setup, scratch_teardown);
}
