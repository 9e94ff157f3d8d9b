/* SPDX-License-Identifier: BSD-2-Clause */
#include "correlator/detail/counted.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "correlator/verdict/verdict.h"
#include "tests/unit/correlator/query.h"
#include "tests/unit/correlator/world.h"

#define SECOND WORLD_SECOND
#define OFFSET 7000000000LL /* of the NIC side's clock */

static const uint8_t here[ADDRESS_BYTES] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};

/* One machine's host side and NIC side, the latter 7 s ahead. */
static struct world *begin(void)
{
    struct world *world = world_create_pair(0, OFFSET);
    struct record_port port = {.port = 1, .name = "rxe0/1"};

    feed_add(world->nic, RECORD_PORT, &port);
    return world;
}

static struct counted build(struct world *world)
{
    struct counted counted = {0};

    world_name(world);
    counted_build(&counted, &world->naming, &world->intake, &world->timeline);
    return counted;
}

static void end(struct world *world, struct counted *counted)
{
    counted_fini(counted);
    world_destroy(world);
}

static void add_queue_pair(struct world *world, uint32_t number, const char *device, uint32_t qpn, uint64_t created_ns,
                           uint64_t destroyed_ns, const uint8_t *address)
{
    struct record_queue_pair pair = {.queue_pair = number,
                                     .process = 1,
                                     .qpn = qpn,
                                     .remote_qpn = 99,
                                     .port = 1,
                                     .created_ns = created_ns,
                                     .destroyed_ns = destroyed_ns};

    strcpy(pair.device, device);
    if (address != NULL)
        memcpy(pair.address, address, ADDRESS_BYTES);
    feed_add(world->host, RECORD_QUEUE_PAIR, &pair);
}

static void add_endpoint(struct world *world, uint32_t number, uint32_t qpn, uint64_t first_ns, uint64_t gone_ns,
                         const uint8_t *address)
{
    struct record_endpoint endpoint = {.endpoint = number,
                                       .qpn = qpn,
                                       .remote_qpn = 99,
                                       .port = 1,
                                       .state = 3,
                                       .type = 2,
                                       .first_ns = feed_time(world->nic, first_ns),
                                       .gone_ns = feed_time(world->nic, gone_ns)};

    if (address != NULL)
        memcpy(endpoint.address, address, ADDRESS_BYTES);
    feed_add(world->nic, RECORD_ENDPOINT, &endpoint);
}

/* By address where both know it, else by device and machine; a QPN that was used twice by who lived when. */
static void endpoints_find_their_queue_pairs(void **state)
{
    struct world *world = begin();

    (void)state;
    add_queue_pair(world, 1, "rxe0", 17, 10 * SECOND, 20 * SECOND, here);
    add_queue_pair(world, 2, "rxe0", 17, 30 * SECOND, 0, here);
    add_queue_pair(world, 3, "rxe0", 18, 10 * SECOND, 0, NULL);
    add_queue_pair(world, 4, "rxe1", 19, 10 * SECOND, 0, NULL);
    add_endpoint(world, 1, 17, 10 * SECOND, 20 * SECOND, here);
    add_endpoint(world, 2, 17, 31 * SECOND, 0, here);
    add_endpoint(world, 3, 18, 11 * SECOND, 0, NULL);
    add_endpoint(world, 4, 19, 11 * SECOND, 0, NULL);
    add_endpoint(world, 3, 18, 11 * SECOND, 50 * SECOND, NULL); /* told again when it went */
    struct counted counted = build(world);
    assert_int_equal(counted.endpoints.count, 4);
    assert_int_equal(counted.endpoints.items[0].queue_pair, 0);
    assert_int_equal(counted.endpoints.items[1].queue_pair, 1);
    assert_int_equal(counted.endpoints.items[2].queue_pair, 2);
    assert_int_equal(counted.endpoints.items[3].queue_pair, -1);
    assert_in_range(counted.endpoints.items[2].gone_ns, 50 * SECOND - 60000, 50 * SECOND + 60000);
    end(world, &counted);
}

static void readings_and_counters_are_in_the_reference_clock(void **state)
{
    struct world *world = begin();
    struct record_reading reading = {.header.source = 1, .fields = SOURCE_PROGRESS, .sent_packets = 5};
    struct record_port_counter counter = {
        .header.source = 1, .metric = PORT_METRIC_ACK_TIMEOUTS, .priority = 255, .value = 3};

    (void)state;
    reading.from_ns = feed_time(world->nic, 20 * SECOND);
    reading.to_ns = feed_time(world->nic, 21 * SECOND);
    feed_add(world->nic, RECORD_READING, &reading); /* before the endpoint that it is of */
    add_endpoint(world, 1, 17, 10 * SECOND, 0, here);
    reading.header.source = 77;
    feed_add(world->nic, RECORD_READING, &reading);
    counter.from_ns = feed_time(world->nic, 22 * SECOND);
    counter.to_ns = feed_time(world->nic, 23 * SECOND);
    feed_add(world->nic, RECORD_PORT_COUNTER, &counter);
    feed_add(world->nic, RECORD_PORT_COUNTER, &counter); /* told again for somebody else */
    counter.header.source = 9;
    feed_add(world->nic, RECORD_PORT_COUNTER, &counter);
    struct counted counted = build(world);
    assert_int_equal(counted.readings.count, 1);
    assert_in_range(counted.readings.items[0].from_ns, 20 * SECOND - 60000, 20 * SECOND + 60000);
    assert_in_range(counted.readings.items[0].bound_ns, 1, 1000000);
    assert_int_equal(counted.port_counters.count, 1);
    assert_in_range(counted.port_counters.items[0].to_ns, 23 * SECOND - 60000, 23 * SECOND + 60000);
    assert_int_equal(counted.orphans_count, 2);
    end(world, &counted);
}

/* A NIC side that says psn sees no messages; one that says nothing is older than the record and sees frames. */
static void what_is_seen_is_what_sources_say(void **state)
{
    struct world *world = begin();
    struct record_traffic_source source = {.kind = TRAFFIC_SOURCE_PSN, .fields = 0x418};

    (void)state;
    feed_add(world->nic, RECORD_TRAFFIC_SOURCE, &source);
    struct counted counted = build(world);
    assert_int_equal(counted.fields, 0x418);
    assert_int_equal(counted.sources.count, 1);
    end(world, &counted);
    world = begin();
    counted = build(world);
    assert_int_equal(counted.fields & SOURCE_MESSAGES, SOURCE_MESSAGES);
    end(world, &counted);
}

static void classes_rest_on_what_is_seen(void **state)
{
    char text[256];

    (void)state;
    assert_false(verdict_withheld(SOURCE_MESSAGES, text, sizeof text));
    assert_true(verdict_withheld(SOURCE_PROGRESS, text, sizeof text));
    assert_non_null(strstr(text, "no source of messages"));
    assert_non_null(strstr(text, verdict_class_name(VERDICT_GPU_LATE)));
    assert_null(strstr(text, verdict_class_name(VERDICT_HOST_LATE)));
}

/* Of a port: what its source does not fill, and what its flags leave out. */
static void each_port_has_its_own_sight(void **state)
{
    uint32_t frames = traffic_source_fields(TRAFFIC_SOURCE_DPDK);
    char text[128];

    (void)state;
    assert_int_equal(verdict_sight(VERDICT_NETWORK_LOSSY, frames, 0, text, sizeof text), VERDICT_SIGHT_WHOLE);
    assert_int_equal(verdict_sight(VERDICT_HOST_LATE, SOURCE_PROGRESS, 0, text, sizeof text), VERDICT_SIGHT_WHOLE);
    assert_int_equal(verdict_sight(VERDICT_GPU_LATE, SOURCE_PROGRESS, 0, text, sizeof text), VERDICT_SIGHT_NONE);
    assert_string_equal(text, "messages");
    assert_int_equal(verdict_sight(VERDICT_NETWORK_LOSSY, SOURCE_MESSAGES | SOURCE_ANSWERS, 0, text, sizeof text),
                     VERDICT_SIGHT_PART);
    assert_string_equal(text, "retransmissions");
    assert_int_equal(verdict_sight(VERDICT_RECEIVER_SLOW, frames, PORT_ONE_QUEUE, text, sizeof text),
                     VERDICT_SIGHT_PART);
    assert_int_equal(verdict_sight(VERDICT_PAUSING, frames, PORT_ONE_QUEUE, text, sizeof text), VERDICT_SIGHT_WHOLE);
    assert_int_equal(verdict_sight(VERDICT_GPU_LATE, frames, PORT_PART_OF_FLOWS, text, sizeof text),
                     VERDICT_SIGHT_PART);
    assert_string_equal(text, "some of the flows");
}

/* In the store: progress has no packets of mlx5's, and what is not counted is NULL. */
static void the_store_has_what_was_counted(void **state)
{
    struct world *world = begin();
    struct record_traffic_source source = {.kind = TRAFFIC_SOURCE_MLX5, .fields = 3, .grain_ns = 200000};
    struct record_reading reading = {.header.source = 1,
                                     .fields = SOURCE_PACKETS | SOURCE_WIRE_BYTES,
                                     .flags = READING_SENT_ONLY,
                                     .sent_packets = 7,
                                     .sent_bytes_least = 700,
                                     .sent_bytes_most = 700};
    struct record_port_counter counter = {
        .header.source = 1, .metric = PORT_METRIC_PAUSE_RECEIVED_TIME, .priority = 3, .value = 5000};
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    char path[] = "/tmp/qpscope-counted-XXXXXX";
    sqlite3 *store;

    (void)state;
    feed_add(world->nic, RECORD_TRAFFIC_SOURCE, &source);
    add_endpoint(world, 1, 17, 10 * SECOND, 0, here);
    reading.from_ns = counter.from_ns = feed_time(world->nic, 20 * SECOND);
    reading.to_ns = counter.to_ns = feed_time(world->nic, 21 * SECOND);
    feed_add(world->nic, RECORD_READING, &reading);
    feed_add(world->nic, RECORD_PORT_COUNTER, &counter);
    struct counted counted = build(world);
    analysis_add_batch(analysis, world->nic->batches[0].bytes, world->nic->batches[0].length_bytes);
    analysis_run(analysis);
    close(mkstemp(path));
    assert_int_equal(analysis_write(analysis, path), 0);
    assert_int_equal(sqlite3_open(path, &store), SQLITE_OK);
    assert_int_equal(query_number(store,
                                  "SELECT count(*) FROM traffic_source WHERE kind = 'mlx5' AND grain_ns = 200000 AND "
                                  "fields = 'packets, wire_bytes' AND missing LIKE '%messages%'"),
                     1);
    assert_int_equal(
        query_number(store, "SELECT count(*) FROM endpoint WHERE qpn = 17 AND address = '10.0.0.1' AND port = 1 AND "
                            "remote_address IS NULL AND gone_ns IS NULL AND state = 'RTS'"),
        1);
    assert_int_equal(query_number(store,
                                  "SELECT sent_bytes_most FROM reading WHERE endpoint = 1 AND sent_packets = 7 AND "
                                  "received_packets IS NULL AND acknowledged_packets IS NULL"),
                     700);
    assert_int_equal(
        query_number(store, "SELECT value FROM port_counter WHERE metric = 'pause_received_ns' AND priority = 3"),
        5000);
    assert_int_equal(query_number(store, "SELECT count(*) FROM meta WHERE key = 'verdicts_withheld'"), 1);
    sqlite3_close(store);
    unlink(path);
    analysis_destroy(&analysis);
    end(world, &counted);
}

/* A pin of a flow that was described, in the reference clock and in the store; one of no flow is left out. */
static void pins_are_in_the_store(void **state)
{
    struct world *world = begin();
    char path[] = "/tmp/qpscope-pins-XXXXXX";
    struct record_flow flow = {.flow = 4, .port = 1};
    struct record_pin pin = {
        .header.source = 4, .cause = PIN_STALLED_BETWEEN, .usual_ns = 5000000, .found_ns = 40000000};
    sqlite3 *store;

    (void)state;
    feed_add(world->nic, RECORD_FLOW, &flow);
    pin.from_ns = feed_time(world->nic, 20 * SECOND);
    pin.to_ns = feed_time(world->nic, 21 * SECOND);
    feed_add(world->nic, RECORD_PIN, &pin);
    pin.header.source = 5;
    feed_add(world->nic, RECORD_PIN, &pin);
    struct counted counted = build(world);
    struct analysis *analysis = analysis_create(1u << 30);
    analysis_add_batch(analysis, world->nic->batches[0].bytes, world->nic->batches[0].length_bytes);
    analysis_run(analysis);
    close(mkstemp(path));
    unlink(path);
    assert_int_equal(analysis_write(analysis, path), 0);
    assert_int_equal(sqlite3_open(path, &store), SQLITE_OK);
    assert_int_equal(query_number(store, "SELECT count(*) FROM pin"), 1);
    assert_int_equal(
        query_number(store, "SELECT count(*) FROM pin JOIN flow ON flow.id = pin.flow WHERE cause = 'stalled between "
                            "messages' AND usual_ns = 5000000 AND found_ns = 40000000"),
        1);
    assert_in_range(query_number(store, "SELECT from_ns FROM pin"), 20 * SECOND - 60000, 20 * SECOND + 60000);
    assert_in_range(query_number(store, "SELECT to_ns FROM pin"), 21 * SECOND - 60000, 21 * SECOND + 60000);
    sqlite3_close(store);
    unlink(path);
    analysis_destroy(&analysis);
    end(world, &counted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_find_their_queue_pairs),
        cmocka_unit_test(readings_and_counters_are_in_the_reference_clock),
        cmocka_unit_test(what_is_seen_is_what_sources_say),
        cmocka_unit_test(pins_are_in_the_store),
        cmocka_unit_test(classes_rest_on_what_is_seen),
        cmocka_unit_test(each_port_has_its_own_sight),
        cmocka_unit_test(the_store_has_what_was_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
