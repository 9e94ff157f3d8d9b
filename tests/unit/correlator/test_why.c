/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a rank was late. A made-up job whose rank 2 is late by 67 ms from step 4 on; beside it each rank's threads, whose
 * every state is made up here, and told as the kernel's probes do: in sums that end when the thread comes to run and a
 * tenth of a second has passed. What follows is known from that by arithmetic.
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
#include "tests/unit/correlator/query.h"
#include "tests/unit/correlator/world.h"
#include "tests/unit/scratch.h"
#include "wire/log.h"

#define RANKS      4
#define LATE_RANK  2
#define FIRST_STEP 4
#define STEPS      16
#define FAULT_NS   (67 * MADE_MS)
#define EVERYONE   -1
#define NOBODY     -2
#define SLICE      65536

#define TELL_NS  (100 * MADE_MS)
#define SHORT_NS (6 * MADE_MS)

enum state { RUNS, SLEEPS, WAITS_FOR_CPU, WAITS_FOR_DEVICE };

struct thread { /* what is being summed up */
    struct feed *feed;
    struct record_host_delay sums;
    uint64_t now_ns;
};

struct story {     /* what the threads of whom do while the rank is late */
    int rank;      /* whose threads; EVERYONE, NOBODY */
    uint16_t role; /* HOST_DELAY_CALLS or HOST_DELAY_SERVES */
    enum state state;
    uint64_t length_ns;
    uint32_t major_faults;
    bool in_marker; /* in a call that waits for the GPU */
    bool in_sums;   /* of a proxy: told in sums of a tenth of a second, else each delay by itself */
    int last_told;  /* nothing is told of later steps */
};

static const struct made_options late_host = {.ranks = RANKS,
                                              .channels = 2,
                                              .steps = STEPS,
                                              .seed = 5,
                                              .fault = MADE_HOST,
                                              .fault_rank = LATE_RANK,
                                              .fault_first_step = FIRST_STEP,
                                              .fault_ns = FAULT_NS};

/* ---- threads ---- */

static void tell(struct thread *thread)
{
    struct record_host_delay record = thread->sums;

    record.from_ns = feed_time(thread->feed, thread->sums.from_ns);
    record.to_ns = feed_time(thread->feed, thread->now_ns);
    feed_add(thread->feed, RECORD_HOST_DELAY, &record);
    thread->sums = (struct record_host_delay){.header.source = thread->sums.header.source,
                                              .from_ns = thread->now_ns,
                                              .tid = thread->sums.tid,
                                              .role = thread->sums.role};
}

static void be(struct thread *thread, enum state state, uint64_t until_ns)
{
    uint64_t spent_ns = until_ns > thread->now_ns ? until_ns - thread->now_ns : 0;

    thread->now_ns += spent_ns;
    thread->sums.sleep_ns += state == SLEEPS ? spent_ns : 0;
    thread->sums.run_queue_ns += state == WAITS_FOR_CPU ? spent_ns : 0;
    thread->sums.io_wait_ns += state == WAITS_FOR_DEVICE ? spent_ns : 0;
    if (state != RUNS && thread->now_ns - thread->sums.from_ns >= TELL_NS)
        tell(thread);
}

static struct thread thread_of(struct made_job *job, int rank, uint16_t role)
{
    struct thread thread = {.feed = &job->host, .now_ns = job->step_begin_ns[0]};

    thread.sums = (struct record_host_delay){.header.source = (uint32_t)rank + 1,
                                             .from_ns = thread.now_ns,
                                             .tid = (role == HOST_DELAY_CALLS ? 500u : 900u) + (uint32_t)rank,
                                             .role = role};
    return thread;
}

static void add_wait(struct made_job *job, int rank, uint64_t from_ns, uint64_t length_ns)
{
    struct record_marker marker = {.header.source = (uint32_t)rank + 1,
                                   .entered_ns = feed_time(&job->host, from_ns),
                                   .duration_ns = length_ns,
                                   .tid = 500u + (uint32_t)rank,
                                   .marker = 3}; /* waited for a stream */
    feed_add(&job->host, RECORD_MARKER, &marker);
}

/* It computes and sleeps, is late in the story's way, gives the step's operations, and sleeps until they are over. */
static void live_caller(struct made_job *job, const struct story *story, int rank)
{
    struct thread thread = thread_of(job, rank, HOST_DELAY_CALLS);

    for (int step = 0; step < STEPS && step <= story->last_told; step++) {
        uint64_t begin_ns = job->step_begin_ns[step];
        bool acts =
            (story->rank == rank || story->rank == EVERYONE) && story->role == HOST_DELAY_CALLS && step >= FIRST_STEP;
        be(&thread, RUNS, begin_ns + 8 * MADE_MS);
        be(&thread, SLEEPS, begin_ns + 18 * MADE_MS);
        be(&thread, RUNS, begin_ns + 20 * MADE_MS);
        if (acts) {
            thread.sums.major_faults += story->major_faults;
            if (story->in_marker)
                add_wait(job, rank, begin_ns + 20 * MADE_MS, story->length_ns);
            be(&thread, story->state, begin_ns + 20 * MADE_MS + story->length_ns);
        }
        be(&thread, RUNS, job->enqueue_ns[step][rank] + MADE_MS);
        be(&thread, SLEEPS, job->step_end_ns[step]);
    }
}

/* The library's thread is late from the enqueue on. When it only sleeps nothing is told of it. */
static void live_proxy(struct made_job *job, const struct story *story, int rank)
{
    struct thread thread = thread_of(job, rank, HOST_DELAY_SERVES);

    if ((story->rank != rank && story->rank != EVERYONE) || story->role != HOST_DELAY_SERVES)
        return;
    for (int step = story->in_sums ? 0 : FIRST_STEP; step < STEPS && step <= story->last_told; step++) {
        if (!story->in_sums)
            thread.now_ns = thread.sums.from_ns = job->enqueue_ns[step][rank];
        be(&thread, RUNS, job->enqueue_ns[step][rank]);
        if (step >= FIRST_STEP)
            be(&thread, story->state, job->enqueue_ns[step][rank] + story->length_ns);
        if (!story->in_sums || thread.now_ns - thread.sums.from_ns >= TELL_NS)
            tell(&thread);
    }
}

static struct made_job *make(const struct made_options *options, const struct story *story)
{
    struct made_job *job = made_create(options);

    for (int rank = 0; rank < RANKS; rank++) {
        live_caller(job, story, rank);
        live_proxy(job, story, rank);
    }
    feed_send(&job->host, job->step_end_ns[STEPS - 1] + 2 * MADE_MS);
    return job;
}

/* ---- what is expected ---- */

/* Every step from FIRST_STEP on has one verdict, of that rank, with that class, and words that say so. */
static void check_class(const struct analysis *analysis, enum verdict_class class, const char *words)
{
    assert_int_equal(analysis->job.verdicts.count, STEPS - FIRST_STEP);
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        const struct verdict *verdict = &analysis->job.verdicts.items[i];
        if (verdict->class != class)
            printf("# %d: %s\n", verdict->step, verdict->evidence);
        assert_string_equal(verdict_class_name(verdict->class), verdict_class_name(class));
        assert_int_equal(verdict->step, FIRST_STEP + (int)i);
        assert_int_equal(verdict->rank, LATE_RANK);
        assert_int_equal(verdict->peer_rank, -1);
        assert_in_range(verdict->size_ns, FAULT_NS - 2 * MADE_MS, FAULT_NS + 2 * MADE_MS);
        if (strstr(verdict->evidence, words) == NULL)
            fail_msg("'%s' is not in: %s", words, verdict->evidence);
    }
}

static void check(const struct made_options *options, const struct story *story, enum verdict_class class,
                  const char *words)
{
    struct made_job *job = make(options, story);
    struct analysis *analysis = world_analysis(job);

    check_class(analysis, class, words);
    analysis_destroy(&analysis);
    made_destroy(job);
}

static const struct story starved = {
    .rank = LATE_RANK, .role = HOST_DELAY_CALLS, .state = WAITS_FOR_CPU, .length_ns = FAULT_NS, .last_told = STEPS};

static void each_cause_has_its_class(void **state)
{
    struct story story = starved;

    (void)state;
    check(&late_host, &story, VERDICT_HOST_NO_CPU, "the thread that calls NCCL (thread 502) waited for a CPU for ");
    story.state = SLEEPS;
    check(&late_host, &story, VERDICT_HOST_BLOCKED, "(thread 502) slept for ");
    story.state = WAITS_FOR_DEVICE;
    check(&late_host, &story, VERDICT_HOST_IO, "(thread 502) waited for a block device for ");
    story.major_faults = 40;
    check(&late_host, &story, VERDICT_HOST_FAULTS, "(thread 502) waited for a block device for ");
    story = starved;
    story.state = SLEEPS;
    story.in_marker = true;
    check(&late_host, &story, VERDICT_HOST_AWAITS_GPU, "(thread 502) waited for its GPU for 67.0 of those ");
}

/* The rank asked in time, and it is NCCL's own thread that was held up. */
static void a_proxy_that_waits_for_a_cpu(void **state)
{
    struct made_options options = late_host;
    struct story story = starved;

    (void)state;
    options.fault = MADE_PROXY;
    story.role = HOST_DELAY_SERVES;
    check(&options, &story, VERDICT_HOST_PROXY, "a thread of NCCL (thread 902) waited for a CPU for 67.0 of those ");
    story.rank = 1; /* another rank's */
    check(&options, &story, VERDICT_HOST_LATE, "no cause is seen");
}

/* A GPU is not called late when it was the proxy that sent late. */
static void a_proxy_that_sends_late_is_no_late_gpu(void **state)
{
    struct made_options options = late_host;
    struct story story = starved;

    (void)state;
    options.fault = MADE_GPU;
    story.role = HOST_DELAY_SERVES;
    check(&options, &story, VERDICT_HOST_PROXY, "a thread of NCCL (thread 902) waited for a CPU for ");
    story.rank = 1; /* another rank's */
    check(&options, &story, VERDICT_GPU_LATE, "of which it held credit for");
    story = starved; /* what its calling thread does meanwhile is no matter */
    check(&options, &story, VERDICT_GPU_LATE, "of which it held credit for");
}

static void what_all_have_or_others_have_is_no_cause(void **state)
{
    struct story story = starved;

    (void)state;
    story.rank = EVERYONE;
    check(&late_host, &story, VERDICT_HOST_LATE, "no cause is seen");
    story.rank = 1;
    check(&late_host, &story, VERDICT_HOST_LATE, "no cause is seen");
    story.rank = NOBODY;
    check(&late_host, &story, VERDICT_HOST_LATE, "waited for a CPU for 0.0 ms (usual: 0.0)");
    story = starved; /* a quarter of it explains nothing */
    story.length_ns = FAULT_NS / 4;
    check(&late_host, &story, VERDICT_HOST_LATE, "no cause is seen");
}

/*
 * A sum is as long as several steps, of each of which the wait is a small part: what it has beyond quiet sums lay where
 * the rank was late, and nowhere else.
 */
static void short_waits_in_long_sums_lay_where_the_rank_was_late(void **state)
{
    struct made_options options = late_host;
    struct story story = starved;

    (void)state;
    options.fault = MADE_PROXY;
    options.fault_ns = story.length_ns = SHORT_NS;
    story.role = HOST_DELAY_SERVES;
    story.in_sums = true;
    struct made_job *job = make(&options, &story);
    struct analysis *analysis = world_analysis(job);
    assert_int_equal(analysis->job.verdicts.count, STEPS - FIRST_STEP);
    size_t told = 0;
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        const struct verdict *verdict = &analysis->job.verdicts.items[i];
        assert_int_equal(verdict->rank, LATE_RANK);
        if (verdict->class == VERDICT_HOST_PROXY) {
            told++;
            assert_in_range(verdict->numbers.items[0].amount, SHORT_NS / 2, SHORT_NS);
        }
    }
    assert_in_range(told, (STEPS - FIRST_STEP) / 2, STEPS - FIRST_STEP); /* the last sum is never told */
    analysis_destroy(&analysis);
    made_destroy(job);
    story.rank = 1;
    job = make(&options, &story);
    analysis = world_analysis(job);
    for (size_t i = 0; i < analysis->job.verdicts.count; i++)
        assert_int_equal(analysis->job.verdicts.items[i].class, VERDICT_HOST_LATE);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* Where nobody looked the verdict says so, and that its host side took probes off. */
static void what_was_not_told_is_not_denied(void **state)
{
    struct story story = starved;
    struct record_counter counter = {.name = "probe_back_offs_total", .total = 3};

    (void)state;
    story.last_told = FIRST_STEP - 1;
    check(&late_host, &story, VERDICT_HOST_LATE, "why could not be seen: what kept its threads from running was told");
    story.last_told = -1;
    check(&late_host, &story, VERDICT_HOST_LATE, "was told for 0.0 of those");
    struct made_job *job = make(&late_host, &story);
    struct record_communicator second = {.communicator = 77,
                                         .process = LATE_RANK + 1,
                                         .identity = "another one",
                                         .ranks_count = 1,
                                         .created_ns = feed_time(&job->host, job->step_begin_ns[0])};
    feed_add(&job->host, RECORD_COMMUNICATOR, &second);
    counter.at_ns = feed_time(&job->host, job->step_end_ns[0]);
    feed_add(&job->host, RECORD_COUNTER, &counter);
    feed_send(&job->host, job->step_end_ns[STEPS - 1] + 3 * MADE_MS);
    struct analysis *analysis = world_analysis(job);
    check_class(analysis, VERDICT_HOST_LATE, "took probes off 3 times");
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* Threads of a job in which nothing is late make nobody late. */
static void threads_alone_make_no_verdict(void **state)
{
    struct made_options options = late_host;

    (void)state;
    options.fault = MADE_NONE;
    struct made_job *job = make(&options, &(struct story){.rank = NOBODY, .last_told = STEPS});
    struct analysis *analysis = world_analysis(job);
    assert_int_equal(analysis->job.verdicts.count, 0);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* ---- single stays, and posts ---- */

/* Each stay was followed: a thread of the library that only slept, of which sums are not told, shows in them. */
static void a_stopped_proxy_shows_in_its_stays(void **state)
{
    struct made_options options = late_host;

    (void)state;
    options.fault = MADE_PROXY;
    struct made_job *job = make(&options, &(struct story){.rank = NOBODY, .last_told = STEPS});
    struct record_followed followed = {.header.source = 1,
                                       .from_ns = feed_time(&job->host, job->step_begin_ns[0]),
                                       .to_ns = feed_time(&job->host, job->step_end_ns[STEPS - 1]),
                                       .what = FOLLOW_DELAYS,
                                       .end = FOLLOWED_IN_TIME};
    for (int step = FIRST_STEP; step < STEPS; step++) {
        struct record_host_delay stay = {.header.source = LATE_RANK + 1,
                                         .from_ns = feed_time(&job->host, job->enqueue_ns[step][LATE_RANK]),
                                         .to_ns = feed_time(&job->host, job->enqueue_ns[step][LATE_RANK] + FAULT_NS),
                                         .sleep_ns = FAULT_NS,
                                         .tid = 902,
                                         .role = HOST_DELAY_SERVES,
                                         .flags = HOST_DELAY_ALONE};
        feed_add(&job->host, RECORD_HOST_DELAY, &stay);
    }
    feed_add(&job->host, RECORD_FOLLOWED, &followed);
    feed_send(&job->host, job->step_end_ns[STEPS - 1] + 3 * MADE_MS);
    struct analysis *analysis = world_analysis(job);
    check_class(analysis, VERDICT_HOST_PROXY,
                "a thread of NCCL (thread 902) slept, or was stopped, for 67.0 of those ");
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* The first data of each step is posted so long before its first frame. */
static struct made_job *make_posts(uint64_t before_wire_ns)
{
    struct made_options options = late_host;

    options.fault = MADE_GPU;
    struct made_job *job = make(&options, &(struct story){.rank = NOBODY, .last_told = STEPS});
    for (int step = 0; step < STEPS; step++) {
        uint64_t wire_ns = job->first_data_ns[step][LATE_RANK];
        struct record_work work = {.header.source = LATE_RANK * 100 + 1,
                                   .at_ns = feed_time(&job->host, wire_ns - before_wire_ns),
                                   .request = (uint64_t)step,
                                   .bytes = SLICE,
                                   .requests = 1,
                                   .what = WORK_POSTED};
        if (step >= FIRST_STEP)
            feed_add(&job->host, RECORD_WORK, &work);
    }
    feed_send(&job->host, job->step_end_ns[STEPS - 1] + 3 * MADE_MS);
    return job;
}

static void posts_tell_a_late_nic_from_a_late_gpu(void **state)
{
    (void)state;
    struct made_job *job = make_posts(MADE_MS / 2);
    struct analysis *analysis = world_analysis(job);
    check_class(analysis, VERDICT_GPU_LATE, "; its data was posted 66.");
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        assert_int_equal(analysis->job.verdicts.items[i].numbers.count, 2);
        assert_string_equal(analysis->job.verdicts.items[i].numbers.items[1].metric, "post_to_wire_ns");
        assert_in_range(analysis->job.verdicts.items[i].numbers.items[1].amount, MADE_MS / 4, MADE_MS);
    }
    analysis_destroy(&analysis);
    made_destroy(job);
    job = make_posts(FAULT_NS);
    analysis = world_analysis(job);
    check_class(analysis, VERDICT_NIC_LATE, "after it held credit, and was on the wire 6");
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* ---- the store ---- */

/* The rows that a verdict names are of its thread, and hold at least as much as it says. */
static void the_store_leads_to_the_rows(void **state)
{
    struct made_job *job = make(&late_host, &starved);
    struct analysis *analysis = world_analysis(job);
    const char *path = scratch_path(state, "", "why.db");
    sqlite3 *store;

    assert_int_equal(analysis_write(analysis, path), 0);
    assert_int_equal(sqlite3_open(path, &store), SQLITE_OK);
    assert_int_equal(query_number(store,
                                  "SELECT count(*) FROM verdict_evidence AS e WHERE decides = 1 AND "
                                  "source = 'host_delay' AND metric = 'run_queue_ns' AND side = 'caller' AND rank = 2 "
                                  "AND tid = 502 AND port IS NULL AND flow IS NULL AND amount BETWEEN 33500000 AND "
                                  "67100000 AND (SELECT sum(run_queue_ns) FROM host_delay WHERE tid = 502 AND "
                                  "host_delay.id BETWEEN e.first_row AND e.last_row) >= amount"),
                     STEPS - FIRST_STEP);
    assert_int_equal(query_number(store, "SELECT count(*) FROM verdict WHERE class = 'host late: no cpu' AND "
                                         "more LIKE '%: qpscope follow --pid 102 --what delays'"),
                     STEPS - FIRST_STEP);
    assert_int_equal(query_number(store, "SELECT count(*) FROM host_delay AS a JOIN host_delay AS b ON b.id = a.id + 1 "
                                         "WHERE a.tid = b.tid AND b.from_ns < a.to_ns"),
                     0);
    sqlite3_close(store);
    analysis_destroy(&analysis);
    made_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cause_has_its_class),
        cmocka_unit_test(a_proxy_that_waits_for_a_cpu),
        cmocka_unit_test(a_proxy_that_sends_late_is_no_late_gpu),
        cmocka_unit_test(what_all_have_or_others_have_is_no_cause),
        cmocka_unit_test(short_waits_in_long_sums_lay_where_the_rank_was_late),
        cmocka_unit_test(what_was_not_told_is_not_denied),
        cmocka_unit_test(threads_alone_make_no_verdict),
        cmocka_unit_test(a_stopped_proxy_shows_in_its_stays),
        cmocka_unit_test(posts_tell_a_late_nic_from_a_late_gpu),
        cmocka_unit_test(the_store_leads_to_the_rows),
    };

    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("why", tests, scratch_setup, scratch_teardown);
}
