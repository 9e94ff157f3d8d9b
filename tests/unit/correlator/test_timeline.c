/* SPDX-License-Identifier: BSD-2-Clause */
#include "correlator/intake/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/correlator/feed.h"
#include "wire/log.h"

#define SECOND 1000000000ULL
#define BASE   (1000 * SECOND)

struct truth { /* an emitter's clock: emitter = reference + offset + drift x (reference - BASE) */
    int64_t offset_ns;
    double drift;
};

static uint64_t emitter_time(const struct truth *truth, uint64_t reference_ns)
{
    return reference_ns + (uint64_t)(truth->offset_ns + (int64_t)(truth->drift * (double)(reference_ns - BASE)));
}

static uint64_t random_state;

static uint64_t chance(uint64_t below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (random_state >> 33) % below;
}

/* 20 us to 120 us, one in ten up to 20 ms: queues, and a CPU that is taken away. */
static uint64_t delay(void)
{
    return 20000 + chance(100000) + (chance(10) == 0 ? chance(20000000) : 0);
}

static void add_sample(struct feed *feed, const struct truth *truth, uint64_t boot, uint64_t at_ns, uint64_t there,
                       uint64_t back)
{
    struct record_clock_sample sample = {
        .reference_boot = boot,
        .sent_ns = emitter_time(truth, at_ns),
        .received_ns = at_ns + there,
        .replied_ns = at_ns + there + 500,
        .returned_ns = emitter_time(truth, at_ns + there + 500 + back),
    };
    feed_add(feed, RECORD_CLOCK_SAMPLE, &sample);
}

static void hand_over(struct intake *intake, const struct feed *feed)
{
    for (size_t i = 0; i < feed->count; i++)
        intake_add(intake, feed->batches[i].bytes, feed->batches[i].length_bytes);
}

/* Ten exchanges a second for a minute. */
static void exchange_for_a_minute(struct feed *feed, const struct truth *truth, uint64_t boot)
{
    for (unsigned tenth = 0; tenth < 600; tenth++) {
        add_sample(feed, truth, boot, BASE + tenth * SECOND / 10, delay(), delay());
        if (tenth % 20 == 19)
            feed_send(feed, BASE + tenth * SECOND / 10);
    }
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Offsets up to 10 s, drifts up to 100 ppm, delays that are lopsided and heavy-tailed: the truth lies within the bound.
 */
static void test_true_time_lies_within_the_bound(void **state)
{
    unsigned outside = 0;
    uint64_t widest = 0;
    (void)state;
    for (unsigned seed = 0; seed < 60; seed++) {
        struct feed feed;
        struct intake intake;
        struct timeline timeline;
        random_state = seed;
        struct truth truth = {.offset_ns = (int64_t)chance(20 * SECOND) - (int64_t)(10 * SECOND),
                              .drift = ((double)chance(200001) - 100000) * 1e-9};
        feed_init(&feed, EMITTER_NIC, 1, 1, 0);
        exchange_for_a_minute(&feed, &truth, 7);
        intake_init(&intake, 1u << 30);
        hand_over(&intake, &feed);
        timeline_build(&timeline, &intake);
        assert_int_equal(timeline.clocks.items[0].source, TIMELINE_EXCHANGE);
        for (unsigned i = 0; i < 100; i++) {
            uint64_t at = BASE + chance(60 * SECOND);
            struct timeline_time time = timeline_map(&timeline, 0, emitter_time(&truth, at));
            outside += distance(time.ns, at) > time.bound_ns;
            widest = time.bound_ns > widest ? time.bound_ns : widest;
        }
        timeline_fini(&timeline);
        intake_fini(&intake);
        feed_fini(&feed);
    }
    assert_int_equal(outside, 0);
    assert_true(widest < 200000); /* the shortest round trips are well below 100 us each way */
}

/* All delay is on the way there: the bound is half the round trip, and it is needed. */
static void test_bound_is_half_of_the_round_trip(void **state)
{
    const struct truth truth = {.offset_ns = 5000};
    struct feed feed;
    struct intake intake;
    struct timeline timeline;
    (void)state;
    feed_init(&feed, EMITTER_HOST, 1, 1, 0);
    for (unsigned i = 0; i < 20; i++)
        add_sample(&feed, &truth, 7, BASE + i * SECOND, 100000, 0);
    feed_send(&feed, BASE + 20 * SECOND);
    intake_init(&intake, 1u << 30);
    hand_over(&intake, &feed);
    timeline_build(&timeline, &intake);
    struct timeline_time time = timeline_map(&timeline, 0, emitter_time(&truth, BASE + 5 * SECOND));
    assert_in_range(distance(time.ns, BASE + 5 * SECOND), 49000, 51000);
    assert_in_range(time.bound_ns, 50000, 50100);
    assert_int_equal(timeline_unmap(&timeline, 0, time.ns), emitter_time(&truth, BASE + 5 * SECOND));
    timeline_fini(&timeline);
    intake_fini(&intake);
    feed_fini(&feed);
}

static void add_pair(struct feed *feed, const struct truth *truth, uint64_t at_ns)
{
    struct record_clock_pair pair = {
        .monotonic_ns = emitter_time(truth, at_ns), .realtime_ns = at_ns + 1700000000ULL * SECOND, .bound_ns = 300};
    feed_add(feed, RECORD_CLOCK_PAIR, &pair);
}

static void add_hello(struct feed *feed, const char *kernel)
{
    struct record_hello hello = {.started_ns = 1};
    memcpy(hello.kernel_boot, kernel, strlen(kernel));
    feed_add(feed, RECORD_HELLO, &hello);
}

/* No exchange, but the same machine as one that has: by way of CLOCK_REALTIME. Another machine: not comparable. */
static void test_realtime_stands_in_on_the_same_machine(void **state)
{
    const struct truth exchanged = {.offset_ns = 3 * (int64_t)SECOND};
    const struct truth silent = {.offset_ns = -2 * (int64_t)SECOND};
    struct feed feeds[3];
    struct intake intake;
    struct timeline timeline;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        feed_init(&feeds[i], EMITTER_NIC, i + 1, 1, 0);
        add_hello(&feeds[i], i < 2 ? "machine one" : "machine two");
        for (unsigned second = 0; second < 30; second++)
            add_pair(&feeds[i], i == 0 ? &exchanged : &silent, BASE + second * SECOND);
    }
    exchange_for_a_minute(&feeds[0], &exchanged, 7);
    intake_init(&intake, 1u << 30);
    for (unsigned i = 0; i < 3; i++) {
        feed_send(&feeds[i], BASE + 61 * SECOND);
        hand_over(&intake, &feeds[i]);
    }
    timeline_build(&timeline, &intake);
    assert_string_equal(timeline_source_name(timeline.clocks.items[0].source), "exchange");
    assert_string_equal(timeline_source_name(timeline.clocks.items[1].source), "realtime");
    assert_string_equal(timeline_source_name(timeline.clocks.items[2].source), "none");
    struct timeline_time time = timeline_map(&timeline, 1, emitter_time(&silent, BASE + 10 * SECOND));
    assert_true(distance(time.ns, BASE + 10 * SECOND) <= time.bound_ns);
    assert_true(time.bound_ns < 200000);
    for (unsigned i = 0; i < 3; i++)
        feed_fini(&feeds[i]);
    timeline_fini(&timeline);
    intake_fini(&intake);
}

/* A correlator that came back has another boot id; its clock is laid onto the old one by who has exchanged with both.
 */
static void test_second_reference_is_bridged(void **state)
{
    const struct truth both = {.offset_ns = 3 * (int64_t)SECOND};
    const struct truth late = {.offset_ns = -(int64_t)SECOND};
    struct feed feeds[2];
    struct intake intake;
    struct timeline timeline;
    (void)state;
    feed_init(&feeds[0], EMITTER_NIC, 1, 1, 0);
    feed_init(&feeds[1], EMITTER_HOST, 1, 1, 0);
    exchange_for_a_minute(&feeds[0], &both, 7);
    for (unsigned second = 0; second < 20; second++) {
        add_sample(&feeds[0], &both, 8, BASE + (60 + second) * SECOND, 30000, 30000);
        add_sample(&feeds[1], &late, 8, BASE + (60 + second) * SECOND, 30000, 30000);
    }
    intake_init(&intake, 1u << 30);
    for (unsigned i = 0; i < 2; i++) {
        feed_send(&feeds[i], BASE + 90 * SECOND);
        hand_over(&intake, &feeds[i]);
    }
    timeline_build(&timeline, &intake);
    assert_int_equal(timeline.reference_boot, 7);
    struct timeline_time time = timeline_map(&timeline, 1, emitter_time(&late, BASE + 70 * SECOND));
    assert_true(time.bound_ns > 30000);
    assert_true(distance(time.ns, BASE + 70 * SECOND) <= time.bound_ns);
    for (unsigned i = 0; i < 2; i++)
        feed_fini(&feeds[i]);
    timeline_fini(&timeline);
    intake_fini(&intake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_true_time_lies_within_the_bound),
        cmocka_unit_test(test_bound_is_half_of_the_round_trip),
        cmocka_unit_test(test_realtime_stands_in_on_the_same_machine),
        cmocka_unit_test(test_second_reference_is_bridged),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
