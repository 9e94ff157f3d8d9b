/* SPDX-License-Identifier: BSD-2-Clause */
/* Markers, delays and the way that a rank's data went; and what the correlator leaves out of the operations. */
#include "correlator/detail/hosted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/node/node.h"
#include "correlator/verdict/evidence.h"
#include "correlator/verdict/host_evidence_find.h"
#include "tests/unit/correlator/feed.h"

#define SECOND 1000000000ULL
#define OFFSET 3000000000LL /* of the host side's clock */

struct world {
    struct feed host;
    struct intake intake;
    struct timeline timeline;
    gap_list gaps;
    struct naming naming;
    rank_operation_records records;
    struct hosted hosted;
    struct posting posting;
    struct evidence evidence;
    struct job job;
};

static void begin(struct world *world)
{
    memset(world, 0, sizeof *world);
    feed_init(&world->host, EMITTER_HOST, 1, 1, OFFSET);
    feed_hello(&world->host, SECOND, 0);
    for (unsigned i = 0; i < 5; i++)
        feed_exchange(&world->host, (i + 1) * SECOND, 30000, 30000);
    for (uint32_t i = 1; i <= 2; i++) {
        struct record_process process = {.process = i, .pid = 100 + i, .command = "train"};
        struct record_communicator communicator = {.communicator = i,
                                                   .process = i,
                                                   .pointer = 0x7000 + i,
                                                   .identity = "one",
                                                   .ranks_count = 2,
                                                   .rank = (int32_t)i - 1,
                                                   .created_ns = feed_time(&world->host, 6 * SECOND),
                                                   .ready_ns = feed_time(&world->host, 7 * SECOND)};
        feed_add(&world->host, RECORD_PROCESS, &process);
        feed_add(&world->host, RECORD_COMMUNICATOR, &communicator);
    }
}

static int32_t rank_of(const void *context, const uint8_t *communicator, int32_t rank)
{
    const int32_t member = naming_member(context, communicator, rank);
    return member < 0 ? -1 : ((const struct naming *)context)->members.items[member].rank;
}

static void build(struct world *world)
{
    feed_send(&world->host, 60 * SECOND);
    intake_init(&world->intake, 1u << 30);
    intake_add(&world->intake, world->host.batches[0].bytes, world->host.batches[0].length_bytes);
    timeline_build(&world->timeline, &world->intake);
    gap_find(&world->gaps, &world->intake, &world->timeline);
    naming_build(&world->naming, &world->intake, &world->timeline);
    node_run(&world->records, &world->naming, &world->intake, &world->timeline, &world->gaps);
    const struct job_ranks ranks = {.context = &world->naming, .rank_of = rank_of};
    const struct host_tables tables = {&world->naming, &world->hosted, &world->posting, &world->intake,
                                       &world->timeline};
    hosted_build(&world->hosted, &world->naming, &world->intake, &world->timeline);
    host_evidence_find(&world->evidence.host, &tables);
    job_build(&world->job, ranks, &world->evidence, world->records.items, world->records.count);
}

static void end(struct world *world)
{
    job_fini(&world->job);
    evidence_fini(&world->evidence);
    hosted_fini(&world->hosted);
    array_fini(&world->records);
    naming_fini(&world->naming);
    array_fini(&world->gaps);
    timeline_fini(&world->timeline);
    intake_fini(&world->intake);
    feed_fini(&world->host);
}

static void add_call(struct world *world, uint32_t communicator, uint64_t at_ns, uint32_t sequence, uint8_t flags,
                     uint8_t operation)
{
    struct record_call call = {.header.source = communicator,
                               .sequence = sequence,
                               .count = 1 << 18, /* 1 MiB */
                               .entered_ns = feed_time(&world->host, at_ns),
                               .enqueued_ns = feed_time(&world->host, at_ns),
                               .peer = -1,
                               .tid = 100 + communicator,
                               .operation = operation,
                               .datatype = 7,
                               .flags = flags};
    feed_add(&world->host, RECORD_CALL, &call);
}

static void add_delay(struct world *world, uint32_t process, uint64_t from_ns, uint64_t to_ns, uint16_t role,
                      uint64_t tcp_bytes)
{
    struct record_host_delay delay = {.header.source = process,
                                      .from_ns = feed_time(&world->host, from_ns),
                                      .to_ns = feed_time(&world->host, to_ns),
                                      .tcp_bytes = tcp_bytes,
                                      .run_queue_ns = 5000000,
                                      .tid = 200 + process,
                                      .role = role};
    feed_add(&world->host, RECORD_HOST_DELAY, &delay);
}

/* A captured call, and what only signals, is a call and no operation; its launch is one. */
static void captured(void **state)
{
    (void)state;
    static struct world world;
    begin(&world);
    add_call(&world, 1, 10 * SECOND, 0, CALL_CAPTURED, OPERATION_ALL_REDUCE);
    add_call(&world, 1, 11 * SECOND, 0, CALL_REPLAYED, OPERATION_ALL_REDUCE);
    add_call(&world, 1, 12 * SECOND, 1, 0, OPERATION_ALL_REDUCE);
    add_call(&world, 1, 13 * SECOND, 0, 0, OPERATION_WAIT_SIGNAL);
    build(&world);
    assert_int_equal(world.naming.calls.count, 4);
    assert_int_equal(world.records.count, 2);
    assert_int_equal(world.records.items[0].sequence, 0);
    assert_int_equal(world.records.items[0].enqueued_ns / SECOND, 11);
    assert_int_equal(world.records.items[1].sequence, 1);
    assert_int_equal(world.naming.calls.items[0].rank_operation, -1);
    assert_int_equal(world.naming.calls.items[3].rank_operation, -1);
    end(&world);
}

/* A call that hung is there once, with its return. */
static void sent_again(void **state)
{
    (void)state;
    static struct world world;
    begin(&world);
    add_call(&world, 1, 10 * SECOND, 0, 0, OPERATION_ALL_REDUCE);
    struct record_call again = {.header.source = 1,
                                .returned_after_ns = 300000000,
                                .count = 1 << 18,
                                .entered_ns = feed_time(&world.host, 10 * SECOND),
                                .enqueued_ns = feed_time(&world.host, 10 * SECOND),
                                .peer = -1,
                                .tid = 101,
                                .operation = OPERATION_ALL_REDUCE,
                                .datatype = 7,
                                .flags = 1 << CALL_RESULT_SHIFT};
    feed_add(&world.host, RECORD_CALL, &again);
    build(&world);
    assert_int_equal(world.naming.calls.count, 1);
    assert_int_equal(world.naming.calls.items[0].record.returned_after_ns, 300000000);
    assert_int_equal(world.naming.calls.items[0].record.flags >> CALL_RESULT_SHIFT, 1);
    assert_int_equal(world.records.count, 1);
    end(&world);
}

static void markers(void **state)
{
    (void)state;
    static struct world world;
    begin(&world);
    struct record_marker marker = {
        .header.source = 2, .entered_ns = feed_time(&world.host, 9 * SECOND), .duration_ns = 77, .marker = 2};
    struct record_marker lost = {.header.source = 9, .entered_ns = 1, .marker = 2};
    feed_add(&world.host, RECORD_MARKER, &marker);
    feed_add(&world.host, RECORD_MARKER, &lost);
    build(&world);
    assert_int_equal(world.hosted.markers.count, 1);
    assert_int_equal(world.hosted.orphans_count, 1);
    assert_int_equal(world.hosted.markers.items[0].process, 1);
    assert_int_equal(world.hosted.markers.items[0].entered_ns / 1000000, 9000);
    assert_string_equal(marker_name(2), "graph submitted");
    assert_null(marker_name(4711));
    end(&world);
}

static const struct transport *whole_of(const struct world *world, int32_t rank)
{
    for (size_t i = 0; i < world->job.transports.count; i++)
        if (world->job.transports.items[i].rank == rank && world->job.transports.items[i].step < 0)
            return &world->job.transports.items[i];
    return NULL;
}

/* Rank 0's library sent what its calls asked for, rank 1's far less; what other threads sent does not count. */
static void sockets(void **state)
{
    (void)state;
    static struct world world;
    begin(&world);
    for (uint32_t i = 0; i < 2; i++) {
        add_call(&world, 1, (10 + i) * SECOND, i, 0, OPERATION_ALL_REDUCE);
        add_call(&world, 2, (10 + i) * SECOND, i, 0, OPERATION_ALL_REDUCE);
    }
    add_delay(&world, 1, 10 * SECOND, 11 * SECOND, HOST_DELAY_SERVES, 1 << 20);
    add_delay(&world, 1, 11 * SECOND, 12 * SECOND, HOST_DELAY_SERVES, 1 << 20);
    add_delay(&world, 1, 9 * SECOND, 11 * SECOND, HOST_DELAY_SERVES, 1000); /* half of it before the first call */
    add_delay(&world, 2, 10 * SECOND, 12 * SECOND, HOST_DELAY_SERVES, 3000);
    add_delay(&world, 2, 10 * SECOND, 12 * SECOND, HOST_DELAY_CALLS, 50 << 20);
    build(&world);
    assert_int_equal(world.hosted.delays.count, 5);
    assert_int_equal(world.hosted.delays.items[0].rank, 0);
    assert_int_equal(world.hosted.delays.items[3].rank, 1);
    const struct transport *over_tcp = whole_of(&world, 0);
    assert_non_null(over_tcp);
    assert_int_equal(over_tcp->asked_bytes, 2 << 20);
    assert_int_equal(over_tcp->rdma_bytes, 0);
    assert_in_range(over_tcp->tcp_bytes, (2 << 20) + 499, (2 << 20) + 501);
    assert_int_equal(over_tcp->kind, TRANSPORT_SOCKETS);
    const struct transport *other = whole_of(&world, 1);
    assert_non_null(other);
    assert_int_equal(other->tcp_bytes, 3000);
    assert_int_equal(other->kind, TRANSPORT_UNKNOWN);
    end(&world);
}

#define STEPS 12

/* Two calls of 1 MiB each a step of 200 ms; what each rank's library sends over TCP meanwhile. */
static void train(struct world *world, const uint64_t tcp_bytes[2])
{
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t at_ns = 10 * SECOND + step * (SECOND / 5);
        for (uint32_t rank = 0; rank < 2; rank++) {
            add_call(world, rank + 1, at_ns, 2 * step, 0, OPERATION_ALL_GATHER);
            add_call(world, rank + 1, at_ns + SECOND / 50, 2 * step + 1, 0, OPERATION_ALL_REDUCE);
            add_delay(world, rank + 1, at_ns, at_ns + SECOND / 5, HOST_DELAY_SERVES, tcp_bytes[rank]);
        }
    }
}

/*
 * Every step went over sockets, on both ranks: one verdict a step, whose numbers are the transports. Where no end is
 * seen a step ends with its last enqueue, so of the first one only 20 ms are known, in which not enough was sent.
 */
static void a_fallback_is_told(void **state)
{
    (void)state;
    static struct world world;
    begin(&world);
    train(&world, (const uint64_t[2]){3 << 20, 2 << 20});
    build(&world);
    assert_true(world.job.steps.count >= STEPS - 1);
    assert_int_equal(world.job.verdicts.count, world.job.steps.count - 1);
    for (size_t i = 0; i < world.job.verdicts.count; i++) {
        const struct verdict *verdict = &world.job.verdicts.items[i];
        assert_int_equal(verdict->class, VERDICT_SOCKETS);
        assert_int_equal(verdict->step, i + 1);
        assert_int_equal(verdict->rank, -1);
        assert_int_equal(verdict->numbers.count, 2);
        assert_int_equal(verdict->size_ns, 0);
        assert_non_null(strstr(verdict->evidence, "so what it costs is not known"));
        for (size_t j = 0; j < 2; j++)
            assert_int_equal(world.job.transports.items[verdict->numbers.items[j].first_row].rank, j);
    }
    end(&world);
}

/* One rank sent enough, the other did not: it alone is named. */
static void a_fallback_of_one_rank_is_its_own(void **state)
{
    (void)state;
    static struct world world;
    begin(&world);
    train(&world, (const uint64_t[2]){9000, 3 << 20});
    build(&world);
    assert_true(world.job.verdicts.count >= STEPS - 1);
    for (size_t i = 0; i < world.job.verdicts.count; i++) {
        assert_int_equal(world.job.verdicts.items[i].class, VERDICT_SOCKETS);
        assert_int_equal(world.job.verdicts.items[i].rank, 1);
        assert_int_equal(world.job.verdicts.items[i].numbers.count, 1);
    }
    end(&world);
}

static void a_little_tcp_is_no_fallback(void **state)
{
    (void)state;
    static struct world world;
    begin(&world);
    train(&world, (const uint64_t[2]){9000, 9000});
    build(&world);
    assert_int_equal(world.job.verdicts.count, 0);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured),
        cmocka_unit_test(sent_again),
        cmocka_unit_test(markers),
        cmocka_unit_test(sockets),
        cmocka_unit_test(a_fallback_is_told),
        cmocka_unit_test(a_fallback_of_one_rank_is_its_own),
        cmocka_unit_test(a_little_tcp_is_no_fallback),
    };
    return cmocka_run_group_tests_name("hosted", tests, NULL, NULL);
}
