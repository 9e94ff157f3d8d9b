/* SPDX-License-Identifier: BSD-2-Clause */
/* A job without an end: what is held is bounded, what was given up is counted, what is new is whole. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/intake/gap.h"
#include "tests/unit/correlator/feed.h"
#include "wire/log.h"

#define SECOND  1000000000ULL
#define BEGIN   (50 * SECOND)
#define MEMORY  (1u << 20)
#define BATCHES 40000 /* of each of two emitters, ten a second: more than an hour */
#define CALLS   20    /* in each batch of the host's; as many messages in the NIC's */
#define FLOWS   16

static void add_nic(struct feed *feed, uint64_t at_ns)
{
    struct record_message message = {.duration_ns = 1000, .payload_bytes = 4096, .frames = 1, .role = ROLE_DATA};

    for (unsigned i = 0; i < CALLS; i++) {
        message.header.source = 1 + i % FLOWS;
        message.first_ns = feed_time(feed, at_ns + i);
        feed_add(feed, RECORD_MESSAGE, &message);
    }
    for (unsigned i = 0; i < FLOWS; i++) {
        struct record_flow_total total = {.header.source = 1 + i, .at_ns = feed_time(feed, at_ns)};
        feed_add(feed, RECORD_FLOW_TOTAL, &total);
    }
}

static void add_host(struct feed *feed, uint64_t at_ns)
{
    for (unsigned i = 0; i < CALLS; i++) {
        struct record_call call = {.entered_ns = feed_time(feed, at_ns + i)};
        feed_add(feed, RECORD_CALL, &call);
    }
}

/* Sends one batch of the emitter's and hands it over, twice every now and then. */
static void hand_over(struct intake *intake, struct feed *feed, uint64_t at_ns)
{
    struct record_heartbeat heartbeat = {.at_ns = feed_time(feed, at_ns)};

    feed_add(feed, RECORD_HEARTBEAT, &heartbeat);
    feed_exchange(feed, at_ns, 20000, 20000);
    feed_send(feed, at_ns);
    for (unsigned times = 0; times < 1u + (feed->sequence % 100 == 0); times++)
        assert_int_equal(intake_add(intake, feed->batches[0].bytes, feed->batches[0].length_bytes), times == 0);
    feed_fini(feed);
}

static uint64_t count_kind(const struct intake *intake, uint16_t kind)
{
    struct intake_walk walk = {.intake = intake};
    union record record;
    uint64_t count = 0;

    while (intake_next(&walk, &record))
        count += record.header.kind == kind;
    return count;
}

static void check(const struct intake *intake)
{
    const struct intake_stream *nic = &intake->streams.items[0];
    const struct intake_stream *host = &intake->streams.items[1];
    uint64_t messages = count_kind(intake, RECORD_MESSAGE);
    uint64_t calls = count_kind(intake, RECORD_CALL);

    assert_int_equal(messages + nic->forgotten_count, (uint64_t)BATCHES * CALLS);
    assert_int_equal(calls + host->forgotten_count, (uint64_t)BATCHES * CALLS);
    assert_int_equal(nic->batches_count, BATCHES);
    assert_true(messages > 1000 && calls > 1000);
    assert_true(nic->batches.count < BATCHES / 20 && host->batches.count < BATCHES / 20);
    /* both sides reach back to about the same time */
    int64_t apart = (int64_t)messages / CALLS - (int64_t)calls / CALLS;
    assert_in_range(llabs(apart), 0, 20);
    assert_int_equal(count_kind(intake, RECORD_FLOW), FLOWS);
}

static void check_gaps(const struct intake *intake)
{
    struct timeline timeline;
    gap_list gaps = {0};

    timeline_build(&timeline, intake);
    gap_find(&gaps, intake, &timeline);
    assert_int_equal(gaps.count, 2);
    for (size_t i = 0; i < gaps.count; i++)
        assert_string_equal(gap_cause_name(gaps.items[i].cause), "memory");
    array_fini(&gaps);
    timeline_fini(&timeline);
}

static void long_job_is_held_in_bounds(void **state)
{
    struct feed *nic = malloc(sizeof *nic), *host = malloc(sizeof *host);
    struct intake intake;
    size_t most = 0;

    (void)state;
    feed_init(nic, EMITTER_NIC, 1, 1, 7 * (int64_t)SECOND);
    feed_init(host, EMITTER_HOST, 2, 1, -5 * (int64_t)SECOND);
    intake_init(&intake, MEMORY);
    feed_hello(nic, BEGIN, 8000);
    feed_hello(host, BEGIN, 0);
    for (unsigned i = 0; i < FLOWS; i++) {
        struct record_flow flow = {.flow = 1 + i, .first_ns = feed_time(nic, BEGIN)};
        feed_add(nic, RECORD_FLOW, &flow);
    }
    size_t before = mallinfo2().uordblks;
    for (uint64_t i = 0; i < BATCHES; i++) {
        add_nic(nic, BEGIN + i * SECOND / 10);
        hand_over(&intake, nic, BEGIN + i * SECOND / 10);
        add_host(host, BEGIN + i * SECOND / 10);
        hand_over(&intake, host, BEGIN + i * SECOND / 10);
        assert_true(intake.held_bytes <= MEMORY);
        most = mallinfo2().uordblks > most && i % 100 == 0 ? mallinfo2().uordblks : most;
    }
    assert_true(most - before < 2 * MEMORY);
    check(&intake);
    check_gaps(&intake);
    intake_fini(&intake);
    free(nic);
    free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_job_is_held_in_bounds),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("intake", tests, NULL, NULL);
}
