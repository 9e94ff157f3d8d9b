/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections between hosts 1 and 2: requests to QPN 100 + c of host 2, answers to QPN 200 + c of host 1. */
#include "nic/meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/nic/draft.h"

#define CONNECTIONS_MAX 300

struct fixture {
    struct tallies tallies;
    struct meter meter;
    uint64_t at_ns;
};

static int setup(void **state)
{
    const struct meter_options options = {
        .window_ns = 8000, .flows_max = 2 * CONNECTIONS_MAX + 8, .messages_max = 64, .memory_bytes = 16u << 20};
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
    struct record_message message;

    draft_roce(&draft, frame);
    fixture->at_ns += 1000;
    const struct source_frame seen = {.bytes = draft.bytes,
                                      .captured_bytes = (uint32_t)draft.length,
                                      .original_bytes = (uint32_t)draft.length,
                                      .at_ns = fixture->at_ns,
                                      .port = 1};
    meter_frames(&fixture->meter, &seen, 1);
    while (message_take(fixture->meter.messages, &message))
        continue;
}

static void pass_request(struct fixture *fixture, uint32_t qpn, uint32_t psn, uint64_t address)
{
    uint8_t reth[16];
    const struct draft_frame frame = {.source = 1,
                                      .destination = 2,
                                      .opcode = 0x0a,
                                      .qpn = qpn,
                                      .psn = psn,
                                      .extensions = reth,
                                      .extensions_bytes = sizeof reth,
                                      .payload_bytes = 64};

    draft_reth(reth, address, 64);
    pass(fixture, &frame);
}

static void pass_answer(struct fixture *fixture, uint32_t qpn, uint32_t psn, uint8_t syndrome)
{
    const uint8_t aeth[4] = {syndrome};
    const struct draft_frame frame = {.source = 2,
                                      .destination = 1,
                                      .opcode = 0x11,
                                      .qpn = qpn,
                                      .psn = psn,
                                      .extensions = aeth,
                                      .extensions_bytes = sizeof aeth};

    pass(fixture, &frame);
}

static struct flow *flow_of(struct fixture *fixture, uint8_t source, uint8_t destination, uint32_t qpn)
{
    struct flow_key key = {.destination_qpn = qpn, .port = 1};
    uint8_t ends[2][16] = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = source},
                           {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = destination}};

    memcpy(key.source, ends[0], sizeof key.source);
    memcpy(key.destination, ends[1], sizeof key.destination);
    return flow_find(fixture->meter.flows, &key);
}

static uint32_t answering_qpn(struct fixture *fixture, uint32_t qpn)
{
    struct record_flow_total total;

    flow_total_record(fixture->meter.flows, flow_of(fixture, 1, 2, qpn), &total);
    return total.source_qpn;
}

/* All count in step from 0, as NCCL's do, each message answered before the next connection sends its own. */
static void test_connections_that_count_in_step(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t psn = 0; psn < 40; psn++)
        for (uint32_t c = 0; c < 8; c++) {
            uint32_t which = (c + psn) % 8;
            pass_request(fixture, 100 + which, psn, 0x1000 + psn * 64);
            pass_answer(fixture, 200 + which, psn, 0x1f);
        }
    for (uint32_t c = 0; c < 8; c++)
        assert_int_equal(answering_qpn(fixture, 100 + c), 200 + c);
    assert_int_equal(fixture->tallies.values[TALLY_PAIRS], 8);
    assert_int_equal(fixture->tallies.values[TALLY_PAIRS_DISSOLVED], 0);
}

/* What nobody can tell apart stays unpaired: all have sent the PSN whenever it is answered. */
static void test_what_cannot_be_told_apart(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t psn = 0; psn < 200; psn++) {
        for (uint32_t c = 0; c < 3; c++)
            pass_request(fixture, 100 + c, psn, 0x1000 + psn * 64);
        for (uint32_t c = 0; c < 3; c++)
            pass_answer(fixture, 200 + c, psn, 0x1f);
    }
    for (uint32_t c = 0; c < 3; c++)
        assert_int_equal(answering_qpn(fixture, 100 + c), 0);
    assert_int_equal(fixture->tallies.values[TALLY_ANSWERS_UNPAIRED], 600);
}

/* 300 connections between two hosts, each with PSNs of its own. */
static void test_many_connections(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t n = 0; n < 8; n++)
        for (uint32_t c = 0; c < CONNECTIONS_MAX; c++) {
            pass_request(fixture, 100 + c, c * 50000 + n, 0x1000 + n * 64);
            pass_answer(fixture, 1000 + c, c * 50000 + n, 0x1f);
        }
    for (uint32_t c = 0; c < CONNECTIONS_MAX; c++)
        assert_int_equal(answering_qpn(fixture, 100 + c), 1000 + c);
}

/* Answers count for the flow that they concern, those from before the pair was known too. */
static void test_answers_concern_the_pair(void **state)
{
    struct fixture *fixture = *state;
    const struct draft_frame congestion = {
        .source = 2, .destination = 1, .opcode = 0x81, .qpn = 200, .payload_bytes = 16};
    struct record_flow_total total;

    pass_answer(fixture, 200, 9, 0x20 | 11); /* RNR NAK, 0.48 ms, before anything else */
    for (uint32_t psn = 10; psn < 16; psn++) {
        pass_request(fixture, 100, psn, 0x1000 + psn * 64);
        pass_answer(fixture, 200, psn, 0x1f);
    }
    pass_answer(fixture, 200, 15, 0x62); /* NAK, remote access error */
    pass(fixture, &congestion);
    flow_total_record(fixture->meter.flows, flow_of(fixture, 1, 2, 100), &total);
    assert_int_equal(total.acks + total.naks + total.rnr_naks + total.cnps, 0);
    assert_int_equal(total.pair, flow_of(fixture, 2, 1, 200)->number);
    assert_int_equal(total.paired_by, PAIRED_BY_ACKNOWLEDGEMENTS);
    assert_int_equal(total.got_acks, 6);
    assert_int_equal(total.got_naks[NAK_REMOTE_ACCESS_ERROR], 1);
    assert_int_equal(total.got_rnr_naks, 1);
    assert_int_equal(total.rnr_wait_ns, 480000);
    assert_int_equal(total.rnr_last_ns, 480000);
    assert_int_equal(total.got_cnps, 1);
    flow_total_record(fixture->meter.flows, flow_of(fixture, 2, 1, 200), &total);
    assert_int_equal(total.got_acks, 0);
    assert_int_equal(total.acks, 6);
}

/* Acknowledgements of what the pair has never sent: it was not the pair after all. */
static void test_a_wrong_pair_is_dissolved(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t psn = 0; psn < 6; psn++) {
        pass_request(fixture, 100, psn, 0x1000 + psn * 64);
        pass_answer(fixture, 200, psn, 0x1f);
    }
    assert_int_equal(answering_qpn(fixture, 100), 200);
    pass_answer(fixture, 200, 6, 0x1f); /* a frame that we missed */
    assert_int_equal(answering_qpn(fixture, 100), 200);
    for (uint32_t psn = 7; psn < 30; psn++)
        pass_answer(fixture, 200, psn, 0x1f);
    assert_int_equal(answering_qpn(fixture, 100), 0);
    assert_int_equal(fixture->tallies.values[TALLY_PAIRS_DISSOLVED], 1);
}

/* The receiver's QPN is used again with another sender's queue pair, and PSNs begin where the old ones did. */
static void test_a_qpn_used_again_with_another_peer(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t psn = 0; psn < 8; psn++) {
        pass_request(fixture, 100, psn, 0x1000 + psn * 64);
        pass_answer(fixture, 200, psn, 0x1f);
    }
    uint32_t old = flow_of(fixture, 1, 2, 100)->number;
    for (uint32_t psn = 0; psn < 8; psn++) {
        pass_request(fixture, 100, psn, 0x90000 + psn * 64);
        pass_answer(fixture, 201, psn, 0x1f);
    }
    assert_int_equal(flow_of(fixture, 1, 2, 100)->generation, 1);
    assert_int_equal(answering_qpn(fixture, 100), 201);
    struct record_flow_total total;
    flow_total_record(fixture->meter.flows, flow_at(fixture->meter.flows, old), &total);
    assert_int_equal(total.source_qpn, 200);
    assert_int_equal(total.got_acks, 8);
    assert_int_equal(total.data_frames, 8);
}

/* Both QPNs are used again: the answers of the new connection are not the old one's. */
static void test_both_qpns_used_again(void **state)
{
    struct fixture *fixture = *state;

    for (uint64_t round = 0; round < 3; round++)
        for (uint32_t psn = 0; psn < 8; psn++) {
            pass_request(fixture, 100, psn, (round + 1) * 0x100000 + psn * 64);
            pass_answer(fixture, 200, psn, 0x1f);
        }
    assert_int_equal(flow_count(fixture->meter.flows), 6);
    for (uint32_t number = 1; number <= 6; number++) {
        struct record_flow_total total;
        flow_total_record(fixture->meter.flows, flow_at(fixture->meter.flows, number), &total);
        assert_int_not_equal(total.pair, 0);
        assert_int_equal(total.got_acks + total.acks, 8);
    }
    assert_int_equal(flow_of(fixture, 1, 2, 100)->generation, 2);
    assert_int_equal(flow_of(fixture, 2, 1, 200)->generation, 2);
}

/* A NAK that only one of the unpaired flows can be meant by, and one that two can. */
static void test_a_nak_without_a_pair(void **state)
{
    struct fixture *fixture = *state;

    pass_request(fixture, 100, 1, 0x1000);
    pass_request(fixture, 100, 3, 0x1000);
    pass_request(fixture, 101, 2, 0x2000);
    pass_request(fixture, 101, 3, 0x2000);
    pass_answer(fixture, 200, 2, 0x60);
    pass_request(fixture, 100, 2, 0x1000);
    assert_int_equal(flow_of(fixture, 1, 2, 100)->odd.retransmitted_frames, 1);
    pass_request(fixture, 100, 5, 0x1000);
    pass_request(fixture, 101, 5, 0x1000);
    pass_answer(fixture, 200, 4, 0x60);
    pass_request(fixture, 100, 4, 0x1000);
    assert_int_equal(flow_of(fixture, 1, 2, 100)->odd.retransmitted_frames, 1);
    assert_int_equal(flow_of(fixture, 1, 2, 100)->recovery[FLOW_REQUESTS].late_unknown_frames, 1);
    assert_int_equal(fixture->tallies.values[TALLY_NAKS_UNPLACED], 1);
}

/* A management datagram of the connection manager, as the specification lays it out: from `source` to queue pair 1. */
static void pass_datagram(struct fixture *fixture, bool back, uint16_t attribute, uint32_t local, uint32_t remote,
                          uint32_t qpn)
{
    uint8_t bytes[8 + 256] = {
        [8] = 1, [9] = 7, [10] = 2, [11] = 3}; /* DETH, then base version, class, its version, method */
    uint8_t *data = bytes + 8 + 24, *qpn_at = data + (attribute == 0x10 ? 32 : 12);
    const struct draft_frame frame = {.source = back ? 2 : 1,
                                      .destination = back ? 1 : 2,
                                      .opcode = 0x64,
                                      .qpn = 1,
                                      .extensions = bytes,
                                      .extensions_bytes = sizeof bytes};

    bytes[8 + 16] = (uint8_t)(attribute >> 8);
    bytes[8 + 17] = (uint8_t)attribute;
    data[3] = (uint8_t)local;
    data[7] = (uint8_t)remote;
    qpn_at[1] = (uint8_t)(qpn >> 8);
    qpn_at[2] = (uint8_t)qpn;
    pass(fixture, &frame);
}

/* The connection was seen being made: its flows are paired by their first frames, though nothing tells them apart. */
static void test_a_connection_that_is_seen_being_made(void **state)
{
    struct fixture *fixture = *state;
    struct record_flow_total total;

    for (uint32_t c = 0; c < 3; c++) {
        pass_datagram(fixture, false, 0x10, 10 + c, 0, 200 + c);
        pass_datagram(fixture, true, 0x13, 20 + c, 10 + c, 100 + c);
    }
    pass_datagram(fixture, true, 0x13, 30, 99, 104); /* a reply to a request that was not seen */
    assert_int_equal(fixture->tallies.values[TALLY_CONNECTIONS_SET_UP], 3);
    for (uint32_t c = 0; c < 4; c++)
        pass_request(fixture, 100 + c, 5, 0x1000);
    for (uint32_t c = 0; c < 4; c++)
        pass_answer(fixture, 200 + c, 5, 0x1f);
    for (uint32_t c = 0; c < 3; c++) {
        flow_total_record(fixture->meter.flows, flow_of(fixture, 1, 2, 100 + c), &total);
        assert_int_equal(total.source_qpn, 200 + c);
        assert_int_equal(total.paired_by, PAIRED_BY_SET_UP);
        assert_int_equal(total.got_acks, 1);
    }
    assert_int_equal(answering_qpn(fixture, 103), 0);
}

/* A request from elsewhere with the same identifier makes no connection of it. */
static void test_a_reply_to_another(void **state)
{
    struct fixture *fixture = *state;

    pass_datagram(fixture, true, 0x10, 10, 0, 200);
    pass_datagram(fixture, true, 0x13, 20, 10, 100);
    assert_int_equal(fixture->tallies.values[TALLY_CONNECTIONS_SET_UP], 0);
}

/* The host side's word on queue pair `qpn` of host 1, connected to `remote` of host 2. */
static struct record_queue_pair word(uint32_t qpn, uint32_t remote)
{
    const uint8_t ends[2][ADDRESS_BYTES] = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
                                            {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};
    struct record_queue_pair pair = {.queue_pair = 1, .qpn = qpn, .remote_qpn = remote};

    memcpy(pair.address, ends[0], ADDRESS_BYTES);
    memcpy(pair.remote_address, ends[1], ADDRESS_BYTES);
    return pair;
}

static void assert_told(struct fixture *fixture, uint32_t qpn, uint32_t source_qpn, uint32_t got_acks)
{
    struct record_flow_total total;

    flow_total_record(fixture->meter.flows, flow_of(fixture, 1, 2, qpn), &total);
    assert_int_equal(total.source_qpn, source_qpn);
    assert_int_equal(total.paired_by, source_qpn == 0 ? PAIRED_NOT : PAIRED_BY_HOST);
    assert_int_equal(total.got_acks, got_acks);
}

/* Before the first frame, in between, of the other end, and of one that is gone; nothing else tells them apart. */
static void test_what_the_host_says(void **state)
{
    struct fixture *fixture = *state;
    struct record_queue_pair before = word(200, 100), between = word(201, 101), gone = word(203, 103);
    struct record_queue_pair unconnected = word(204, 0);

    meter_tell(&fixture->meter, &before);
    meter_tell(&fixture->meter, &before);
    meter_tell(&fixture->meter, &gone);
    meter_tell(&fixture->meter, &unconnected);
    gone.destroyed_ns = 1;
    meter_tell(&fixture->meter, &gone);
    assert_int_equal(fixture->tallies.values[TALLY_CONNECTIONS_TOLD], 2);
    for (uint32_t c = 0; c < 5; c++)
        pass_request(fixture, 100 + c, 5, 0x1000);
    for (uint32_t c = 0; c < 5; c++)
        pass_answer(fixture, 200 + c, 5, 0x1f);
    assert_told(fixture, 100, 200, 1);
    assert_told(fixture, 101, 0, 0);
    assert_told(fixture, 103, 0, 0);
    meter_tell(&fixture->meter, &between);
    pass_answer(fixture, 201, 5, 0x1f);
    assert_told(fixture, 101, 201, 2); /* the one before it too */
    struct record_queue_pair other = word(202, 102);
    uint8_t swapped[ADDRESS_BYTES];
    memcpy(swapped, other.address, ADDRESS_BYTES);
    memcpy(other.address, other.remote_address, ADDRESS_BYTES);
    memcpy(other.remote_address, swapped, ADDRESS_BYTES);
    other.qpn = 102;
    other.remote_qpn = 202;
    meter_tell(&fixture->meter, &other);
    pass_answer(fixture, 202, 5, 0x1f);
    assert_told(fixture, 102, 202, 2);
    assert_told(fixture, 104, 0, 0);
}

/* A thousand words in four fixed places each: nearly all are remembered. */
static void test_many_words(void **state)
{
    struct fixture *fixture = *state;
    uint32_t known = 0;

    for (uint32_t c = 0; c < 1000; c++) {
        struct record_queue_pair pair = word(20000 + c * 7, 10000 + c * 7);
        meter_tell(&fixture->meter, &pair);
    }
    for (uint32_t c = 0; c < CONNECTIONS_MAX; c++)
        pass_request(fixture, 10000 + c * 7, 5, 0x1000);
    for (uint32_t c = 0; c < CONNECTIONS_MAX; c++)
        pass_answer(fixture, 20000 + c * 7, 5, 0x1f);
    for (uint32_t c = 0; c < CONNECTIONS_MAX; c++)
        known += answering_qpn(fixture, 10000 + c * 7) == 20000 + c * 7;
    assert_in_range(known, CONNECTIONS_MAX * 95 / 100, CONNECTIONS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_connections_that_count_in_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers_concern_the_pair, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_pair_is_dissolved, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_qpn_used_again_with_another_peer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_qpns_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_nak_without_a_pair, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_connection_that_is_seen_being_made, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_the_host_says, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_words, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_reply_to_another, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_pairing", tests, NULL, NULL);
}
