/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs from traffic alone: whose flows are a job's, and which bursts are one repeat, of traffic that is made up. A made
 * job has three places in a ring; in a step each sends the next one STEP_MESSAGES messages of one size.
 */
#include "correlator/traffic/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/traffic/burst.h"
#include "tests/unit/correlator/world.h"

#define SECOND        WORLD_SECOND
#define STEP_NS       20000000ULL
#define STEPS         12
#define STEP_MESSAGES 4
#define PLACES        3
#define BYTES         65536
#define SEND_NS       10000 /* a message takes it */
#define LATE_NS       5000000

static void add_flow(struct world *world, uint8_t from, uint8_t to, uint32_t qpn)
{
    struct record_flow flow = {
        .flow = ++world->flows, .destination_qpn = qpn, .first_ns = 10 * SECOND, .vantage = VANTAGE_TX, .port = 1};
    world_address(flow.source, from);
    world_address(flow.destination, to);
    feed_add(world->nic, RECORD_FLOW, &flow);
}

static void add_message(struct world *world, uint32_t flow, uint64_t first_ns, uint32_t bytes, uint16_t flags)
{
    struct record_message message = {.header.source = flow,
                                     .first_ns = first_ns,
                                     .duration_ns = SEND_NS,
                                     .payload_bytes = bytes,
                                     .frames = 1,
                                     .role = ROLE_DATA,
                                     .flags = flags};
    feed_add(world->nic, RECORD_MESSAGE, &message);
}

/* What the library writes: the data, then an empty write with immediate, as it does for large ones. */
static void add_steps(struct world *world)
{
    for (uint32_t step = 0; step < STEPS; step++)
        for (uint32_t flow = 1; flow <= PLACES; flow++) {
            uint64_t at_ns = 10 * SECOND + step * STEP_NS;
            add_message(world, flow, at_ns, BYTES, 0);
            add_message(world, flow, at_ns + SEND_NS, 0, MESSAGE_IMMEDIATE);
        }
}

static struct world *ring(void)
{
    struct world *world = world_create();

    world->nic = world_add(world, EMITTER_NIC, 1, 1, 0, SECOND);
    for (uint8_t place = 1; place <= PLACES; place++)
        add_flow(world, place, (uint8_t)(place % PLACES + 1), 16U + place);
    add_steps(world);
    return world;
}

/* A target of storage (10.0.0.9) writes into each machine's memory what it reads: no place of the job, no operation. */
static void test_storage_is_no_job(void **state)
{
    struct world *world = ring();
    rank_operation_records records = {0};
    (void)state;

    for (uint8_t place = 1; place <= PLACES; place++)
        add_flow(world, 9, place, 40U + place);
    for (uint32_t i = 0; i < STEPS * 2; i++)
        for (uint32_t flow = 1; flow <= PLACES; flow++)
            add_message(world, PLACES + flow, 10 * SECOND + i * STEP_NS / 2 + 7000000, 4096 + i, 0);
    world_name(world);
    traffic_run(&records, &world->naming);
    assert_int_equal(world->naming.communicators.count, 1);
    assert_int_equal(world->naming.communicators.items[0].ranks_count, PLACES);
    assert_int_equal(records.count, STEPS * PLACES);
    for (size_t i = 0; i < records.count; i++)
        assert_int_equal(records.items[i].observed_bytes, BYTES);
    array_fini(&records);
    world_destroy(world);
}

/* Of flows whose messages were all merged nothing tells whether immediates were among them. */
static void test_merged_messages_may_be_a_job(void **state)
{
    struct world *world = world_create();
    rank_operation_records records = {0};
    (void)state;

    world->nic = world_add(world, EMITTER_NIC, 1, 1, 0, SECOND);
    add_flow(world, 1, 2, 17);
    add_message(world, 1, 10 * SECOND, BYTES, MESSAGE_MERGED);
    world_name(world);
    traffic_run(&records, &world->naming);
    assert_int_equal(world->naming.communicators.count, 1);
    array_fini(&records);
    world_destroy(world);
}

static void add_span(span_list *spans, size_t from, uint64_t first_ns)
{
    *(struct span *)array_add(spans) =
        (struct span){first_ns, first_ns + SEND_NS, BYTES, from, (from + 1) % PLACES, (int32_t)spans->count};
}

/* One step after the other; in those from `late` on place 0 is late, and the others' first messages come before. */
static void add_ring(span_list *spans, size_t steps, size_t late, size_t late_end)
{
    for (size_t step = 0; step < steps; step++) {
        bool is_late = step >= late && step < late_end;
        for (size_t message = 0; message < STEP_MESSAGES; message++)
            for (size_t place = 0; place < PLACES; place++) {
                bool waits = is_late && (place == 0 || message > 0);
                add_span(spans, place, (step + 1) * STEP_NS + message * 1000000 + (waits ? LATE_NS : 0));
            }
    }
}

static int by_start(const void *a, const void *b)
{
    const struct span *left = a;
    const struct span *right = b;

    if (left->first_ns != right->first_ns)
        return left->first_ns < right->first_ns ? -1 : 1;
    return (left->message > right->message) - (left->message < right->message);
}

/* However the bursts of late steps are cut, those before them are as many, and none is astray. */
static void test_late_steps_behind_others(void **state)
{
    span_list spans = {0};
    burst_list bursts = {0};
    uint64_t bytes = 0;
    (void)state;

    add_ring(&spans, 40, 14, 36);
    array_sort(&spans, by_start);
    burst_find(&bursts, &spans, PLACES);
    assert_true(bursts.count > 0);
    for (size_t i = 0; i < bursts.count; i++) {
        assert_false(bursts.items[i].is_astray);
        bytes += bursts.items[i].bytes;
    }
    assert_int_equal(bytes, 40ULL * STEP_MESSAGES * PLACES * BYTES);
    array_fini(&spans);
    array_fini(&bursts);
}

/* What goes on and on without any repeat is no job's steps. */
static void test_no_repeat(void **state)
{
    span_list spans = {0};
    burst_list bursts = {0};
    (void)state;

    for (size_t i = 0; i < 60; i++) {
        add_span(&spans, i % PLACES, STEP_NS + i * i * 1000000);
        spans.items[i].bytes = 1000 + i * i * 7;
    }
    burst_find(&bursts, &spans, PLACES);
    for (size_t i = 0; i < bursts.count; i++)
        assert_true(bursts.items[i].is_astray);
    array_fini(&spans);
    array_fini(&bursts);
}

/* Three equal bursts a step, a longer pause behind the third, and every tenth step a pause of ten steps. */
static void test_heads(void **state)
{
    span_list spans = {0};
    burst_list bursts = {0};
    size_t heads = 0;
    (void)state;

    for (size_t step = 0, at = STEP_NS; step < 40; step++, at += step % 10 == 0 ? 10 * STEP_NS : STEP_NS)
        for (size_t burst = 0; burst < 3; burst++)
            for (size_t place = 0; place < PLACES; place++)
                add_span(&spans, place, at + burst * 2000000);
    burst_find(&bursts, &spans, PLACES);
    assert_int_equal(bursts.count, 120);
    for (size_t i = 0; i < bursts.count; i++)
        heads += bursts.items[i].is_head;
    assert_int_equal(heads, 39); /* before the first burst no pause is seen */
    array_fini(&spans);
    array_fini(&bursts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storage_is_no_job),
        cmocka_unit_test(test_merged_messages_may_be_a_job),
        cmocka_unit_test(test_late_steps_behind_others),
        cmocka_unit_test(test_no_repeat),
        cmocka_unit_test(test_heads),
    };
    return cmocka_run_group_tests_name("traffic", tests, NULL, NULL);
}
