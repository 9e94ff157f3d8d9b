/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/meter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/nic/draft.h"

struct fixture {
    struct tallies tallies;
    struct meter meter;
    uint64_t at_ns;
};

static const struct meter_options options = {
    .window_ns = 8000, .flows_max = 16, .messages_max = 64, .memory_bytes = 4u << 20};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    *state = fixture;
    return fixture == NULL ? -1 : meter_init(&fixture->meter, &options, &fixture->tallies);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    meter_fini(&fixture->meter);
    free(fixture);
    return 0;
}

static void pass(struct fixture *fixture, const struct draft_frame *frame)
{
    struct draft draft;

    draft_roce(&draft, frame);
    fixture->at_ns += 1000;
    const struct source_frame seen = {.bytes = draft.bytes,
                                      .captured_bytes = (uint32_t)draft.length,
                                      .original_bytes = (uint32_t)draft.length,
                                      .at_ns = fixture->at_ns,
                                      .port = 1};
    meter_frames(&fixture->meter, &seen, 1);
}

/* SEND frames need no extension headers. */
static void pass_send(struct fixture *fixture, uint8_t opcode, uint32_t psn)
{
    const struct draft_frame frame = {
        .source = 1, .destination = 2, .opcode = opcode, .qpn = 7, .psn = psn, .payload_bytes = 100};

    pass(fixture, &frame);
}

static void pass_nak(struct fixture *fixture, uint32_t psn, uint8_t syndrome)
{
    const uint8_t aeth[4] = {syndrome};
    const struct draft_frame frame = {
        .source = 2, .destination = 1, .opcode = 0x11, .qpn = 8, .psn = psn, .extensions = aeth, .extensions_bytes = 4};

    pass(fixture, &frame);
}

static const struct record_flow_total *total_of(struct fixture *fixture, uint32_t number)
{
    static struct record_flow_total totals[17];

    flow_total_record(fixture->meter.flows, flow_at(fixture->meter.flows, number), &totals[number]);
    return &totals[number];
}

/* Seen downstream of the loss: 3 comes late, and a NAK had asked for it; then 4 again. */
static void test_late_and_asked_for(void **state)
{
    struct fixture *fixture = *state;

    pass_send(fixture, 0x00, 2);
    pass_send(fixture, 0x01, 4);
    pass_nak(fixture, 3, 0x60);
    pass_send(fixture, 0x01, 3);
    pass_send(fixture, 0x01, 4);
    pass_send(fixture, 0x02, 5);
    const struct record_flow_total *total = total_of(fixture, 1);
    assert_int_equal(total->data_frames, 5);
    assert_int_equal(total->payload_bytes, 500);
    assert_int_equal(total->late_frames, 1);
    assert_int_equal(total->repeated_frames, 1);
    assert_int_equal(total->retransmitted_frames, 2);
    assert_int_equal(total->retransmitted_bytes, 200);
    assert_int_equal(total->messages, 1);
    assert_int_equal(total_of(fixture, 2)->naks, 1);
}

/* Late without a NAK, or with one of another kind: reordered for all that is known. */
static void test_late_only(void **state)
{
    struct fixture *fixture = *state;

    pass_send(fixture, 0x00, 2);
    pass_send(fixture, 0x01, 4);
    pass_nak(fixture, 3, 0x61); /* invalid request */
    pass_send(fixture, 0x01, 3);
    assert_int_equal(total_of(fixture, 1)->late_frames, 1);
    assert_int_equal(total_of(fixture, 1)->retransmitted_frames, 0);
}

/* A NAK between other hosts explains nothing. */
static void test_a_nak_of_others(void **state)
{
    struct fixture *fixture = *state;
    const uint8_t aeth[4] = {0x60};
    const struct draft_frame nak = {
        .source = 3, .destination = 1, .opcode = 0x11, .psn = 3, .extensions = aeth, .extensions_bytes = 4};

    pass_send(fixture, 0x00, 2);
    pass_send(fixture, 0x01, 4);
    pass(fixture, &nak);
    pass_send(fixture, 0x01, 3);
    assert_int_equal(total_of(fixture, 1)->retransmitted_frames, 0);
}

/* PSNs far below the highest at the start of a message: a new connection under the old key. */
static void test_a_new_connection(void **state)
{
    struct fixture *fixture = *state;

    pass_send(fixture, 0x04, 9000);
    pass_send(fixture, 0x00, 9001);
    pass_send(fixture, 0x04, 0);
    assert_int_equal(flow_count(fixture->meter.flows), 2);
    assert_int_equal(flow_at(fixture->meter.flows, 2)->generation, 1);
    assert_int_equal(total_of(fixture, 1)->messages, 2);
    assert_int_equal(total_of(fixture, 2)->data_frames, 1);
    assert_int_equal(total_of(fixture, 2)->repeated_frames, 0);
    assert_int_equal(fixture->tallies.values[TALLY_FLOWS_RESTARTED], 1);
}

static void pass_write(struct fixture *fixture, uint32_t psn, uint64_t address)
{
    uint8_t reth[16];
    const struct draft_frame frame = {.source = 1,
                                      .destination = 2,
                                      .opcode = 0x0a,
                                      .qpn = 7,
                                      .psn = psn,
                                      .extensions = reth,
                                      .extensions_bytes = sizeof reth,
                                      .payload_bytes = 64};

    draft_reth(reth, address, 64);
    pass(fixture, &frame);
}

/* PSNs begin again at 0 soon after: to the same memory it is the message again, to other memory a new connection. */
static void test_a_new_connection_soon(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t psn = 0; psn < 20; psn++)
        pass_write(fixture, psn, 0x10000 + psn * 64);
    for (uint32_t psn = 15; psn < 20; psn++)
        pass_write(fixture, psn, 0x10000 + psn * 64);
    assert_int_equal(flow_count(fixture->meter.flows), 1);
    assert_int_equal(total_of(fixture, 1)->repeated_frames, 5);
    for (uint32_t psn = 0; psn < 20; psn++)
        pass_write(fixture, psn, 0x20000 + psn * 64);
    assert_int_equal(flow_count(fixture->meter.flows), 2);
    assert_int_equal(total_of(fixture, 1)->data_frames, 25);
    assert_int_equal(total_of(fixture, 2)->data_frames, 20);
    assert_int_equal(total_of(fixture, 2)->messages, 20);
    assert_int_equal(total_of(fixture, 2)->repeated_frames, 0);
}

/* As many messages later as no sender goes back: also to the same memory it is a new connection. */
static void test_a_new_connection_to_the_same_memory(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t psn = 0; psn < 1000; psn++)
        pass_write(fixture, psn, 0x10000);
    pass_write(fixture, 0, 0x10000);
    assert_int_equal(flow_count(fixture->meter.flows), 2);
}

/* A message that was lost on its way here comes late, and then once more: the same message, no new connection. */
static void test_a_late_message_again(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t psn = 0; psn < 400; psn++)
        if (psn != 390)
            pass_write(fixture, psn, 0x10000 + psn * 64);
    pass_write(fixture, 390, 0x10000 + 390 * 64);
    pass_write(fixture, 390, 0x10000 + 390 * 64);
    assert_int_equal(flow_count(fixture->meter.flows), 1);
    assert_int_equal(total_of(fixture, 1)->data_frames, 401);
    assert_int_equal(total_of(fixture, 1)->late_frames, 1);
    assert_int_equal(total_of(fixture, 1)->repeated_frames, 1);
}

static void test_no_room_for_a_flow(void **state)
{
    struct fixture *fixture = *state;

    for (uint8_t host = 10; host < 10 + 20; host++) {
        const struct draft_frame frame = {.source = host, .destination = 2, .opcode = 0x04, .payload_bytes = 8};
        pass(fixture, &frame);
    }
    assert_int_equal(flow_count(fixture->meter.flows), 16);
    assert_int_equal(fixture->tallies.values[TALLY_FRAMES_FLOW_TABLE_FULL], 4);
    assert_int_equal(fixture->tallies.values[TALLY_FRAMES_ROCE], 20);
}

static void test_vantage(void **state)
{
    struct fixture *fixture = *state;
    static const uint8_t address[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};

    fixture->meter.ports_count = 1;
    fixture->meter.ports[0].port = 1;
    memcpy(fixture->meter.ports[0].address, address, sizeof address);
    pass_send(fixture, 0x04, 1);
    pass_nak(fixture, 1, 0x00);
    const struct draft_frame other = {.source = 5, .destination = 6, .opcode = 0x04};
    pass(fixture, &other);
    assert_int_equal(flow_at(fixture->meter.flows, 1)->vantage, VANTAGE_TX);
    assert_int_equal(flow_at(fixture->meter.flows, 2)->vantage, VANTAGE_RX);
    assert_int_equal(flow_at(fixture->meter.flows, 3)->vantage, VANTAGE_MIDDLE);
}

static void test_too_little_memory(void **state)
{
    struct fixture *fixture = *state;
    struct meter_options little = options;
    struct meter meter;

    little.memory_bytes = 64 * 1024;
    assert_int_equal(meter_init(&meter, &little, &fixture->tallies), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_late_and_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_nak_of_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_new_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_new_connection_soon, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_new_connection_to_the_same_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_late_message_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room_for_a_flow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_vantage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_little_memory, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_meter", tests, NULL, NULL);
}
