/* SPDX-License-Identifier: BSD-2-Clause */
/* Readings from sequence numbers, against arithmetic done by hand. */
#include "nic/psn/psn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000u

static struct psn_sample look(uint64_t at_ms, uint32_t next_send, uint32_t next_receive)
{
    return (struct psn_sample){.from_ns = at_ms * MS,
                               .to_ns = at_ms * MS + 1000,
                               .next_send = next_send,
                               .next_receive = next_receive,
                               .has_receive = true,
                               .mtu_most_bytes = 1024};
}

static void the_first_look_only_begins(void **state)
{
    struct psn_track track = {0};
    struct psn_sample sample = look(10, 500, 900);
    struct record_reading reading;

    (void)state;
    assert_false(psn_advance(&track, &sample, &reading));
    sample = look(20, 500, 900);
    assert_false(psn_advance(&track, &sample, &reading));
}

static void what_moved_lies_between_the_looks(void **state)
{
    struct psn_track track = {0};
    struct psn_sample first = look(10, 500, 900), second = look(20, 507, 902);
    struct record_reading reading;

    (void)state;
    psn_advance(&track, &first, &reading);
    assert_true(psn_advance(&track, &second, &reading));
    assert_int_equal(reading.sent_packets, 7);
    assert_int_equal(reading.received_packets, 2);
    assert_int_equal(reading.from_ns, 10 * MS);
    assert_int_equal(reading.to_ns, 20 * MS + 1000);
    assert_int_equal(reading.from_bound_ns, 1000);
    assert_int_equal(reading.to_bound_ns, 1000);
    assert_int_equal(reading.fields, SOURCE_PROGRESS | SOURCE_PAYLOAD_BOUNDS);
    assert_int_equal(reading.sent_bytes_most, 7 * 1024);
    assert_int_equal(reading.sent_bytes_least, 0);
    assert_int_equal(reading.received_bytes_most, 2 * 1024);
    assert_int_equal(reading.flags, 0);
}

/* An idle look in between moves the beginning: nothing happened before it. */
static void an_interval_begins_at_the_last_look(void **state)
{
    struct psn_track track = {0};
    struct psn_sample looks[] = {look(10, 5, 5), look(20, 5, 5), look(30, 6, 5)};
    struct record_reading reading;

    (void)state;
    assert_false(psn_advance(&track, &looks[0], &reading));
    assert_false(psn_advance(&track, &looks[1], &reading));
    assert_true(psn_advance(&track, &looks[2], &reading));
    assert_int_equal(reading.from_ns, 20 * MS);
    assert_int_equal(reading.sent_packets, 1);
}

static void numbers_go_round(void **state)
{
    struct psn_track track = {0};
    struct psn_sample first = look(1, 0xfffffe, 0xffffff), second = look(2, 3, 0);
    struct record_reading reading;

    (void)state;
    psn_advance(&track, &first, &reading);
    assert_true(psn_advance(&track, &second, &reading));
    assert_int_equal(reading.sent_packets, 5);
    assert_int_equal(reading.received_packets, 1);
    assert_int_equal(reading.flags, 0);
}

/* Go-back-N: the numbers that are sent again are not counted again. */
static void a_sender_that_went_back(void **state)
{
    struct psn_track track = {0};
    struct psn_sample looks[] = {look(1, 100, 0), look(2, 120, 0), look(3, 105, 0), look(4, 130, 0)};
    struct record_reading reading;

    (void)state;
    psn_advance(&track, &looks[0], &reading);
    assert_true(psn_advance(&track, &looks[1], &reading));
    assert_int_equal(reading.sent_packets, 20);
    assert_true(psn_advance(&track, &looks[2], &reading));
    assert_int_equal(reading.sent_packets, 0);
    assert_int_equal(reading.flags, READING_REWOUND);
    assert_true(psn_advance(&track, &looks[3], &reading));
    assert_int_equal(reading.sent_packets, 10);
    assert_int_equal(reading.flags, 0);
}

/*
 * 2^23 packets of 1024 bytes at 400 Gb/s take 171.8 ms, of 4096 bytes 687.2 ms: longer intervals may hide half a
 * circle.
 */
static void too_long_an_interval_is_ambiguous(void **state)
{
    static const struct {
        uint32_t mtu;
        unsigned ms;
        bool ambiguous;
    } cases[] = {{1024, 171, false}, {1024, 173, true}, {4096, 686, false}, {4096, 689, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct psn_track track = {0};
        struct psn_sample first = look(0, 0, 0), second = look(cases[i].ms, 1, 0);
        struct record_reading reading;
        first.bits_a_second = second.bits_a_second = 400000000000u;
        first.mtu_most_bytes = second.mtu_most_bytes = cases[i].mtu;
        psn_advance(&track, &first, &reading);
        assert_true(psn_advance(&track, &second, &reading));
        assert_int_equal((reading.flags & READING_AMBIGUOUS) != 0, cases[i].ambiguous);
    }
}

/*
 * With the context: 3 messages of 10 packets and 1 byte more than 9 MTUs each are 30 packets, 9 x 3 full ones at least;
 * what is known is 30 packets in 3 messages, so at least 30 - 4 full ones.
 */
static void messages_bound_the_bytes(void **state)
{
    struct psn_track track = {0};
    struct psn_sample first = look(1, 1000, 0), second = look(2, 1030, 0);
    struct record_reading reading;

    (void)state;
    first.has_context = second.has_context = true;
    first.path_mtu_bytes = second.path_mtu_bytes = 4096;
    first.last_acked = 999;
    second.last_acked = 1019;
    first.sent_messages = 0xffffff;
    second.sent_messages = 2;
    psn_advance(&track, &first, &reading);
    assert_true(psn_advance(&track, &second, &reading));
    assert_int_equal(reading.sent_bytes_most, 30 * 4096);
    assert_int_equal(reading.sent_bytes_least, 26 * 4096);
    assert_true(3 * (9 * 4096 + 1) >= (int)reading.sent_bytes_least);
    assert_true(3 * (9 * 4096 + 1) <= (int)reading.sent_bytes_most);
    assert_int_equal(reading.acknowledged_packets, 20);
    assert_int_equal(reading.unacknowledged_packets, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_look_only_begins),
        cmocka_unit_test(what_moved_lies_between_the_looks),
        cmocka_unit_test(an_interval_begins_at_the_last_look),
        cmocka_unit_test(numbers_go_round),
        cmocka_unit_test(a_sender_that_went_back),
        cmocka_unit_test(too_long_an_interval_is_ambiguous),
        cmocka_unit_test(messages_bound_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
