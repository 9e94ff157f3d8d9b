/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/burst.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RATE  1000
#define FLOWS 3000

struct fixture {
    struct tallies tallies;
    struct bursts *bursts;
    uint64_t records;
    uint64_t messages; /* that the records stand for */
    uint64_t payload_bytes;
    uint64_t frames;
    uint64_t last_end_ns[FLOWS]; /* of each flow's records of data */
    bool disordered;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    bursts_destroy(&fixture->bursts);
    free(fixture);
    return 0;
}

static void take(struct fixture *fixture, const struct record_message *record)
{
    bool is_merged = (record->flags & MESSAGE_MERGED) != 0;
    uint64_t *last_end_ns = &fixture->last_end_ns[record->header.source];

    fixture->records++;
    fixture->messages += is_merged ? record->immediate : 1;
    fixture->payload_bytes += record->payload_bytes;
    fixture->frames += record->frames;
    if (record->role != ROLE_DATA)
        return;
    fixture->disordered |= record->first_ns < *last_end_ns;
    *last_end_ns = record->first_ns + record->duration_ns;
}

static struct record_message make(uint32_t flow, uint8_t role, uint64_t first_ns)
{
    return (struct record_message){.header.source = flow,
                                   .first_ns = first_ns,
                                   .duration_ns = 10,
                                   .payload_bytes = 1000,
                                   .frames = 3,
                                   .immediate = 77,
                                   .place = 88,
                                   .role = role,
                                   .flags = MESSAGE_IMMEDIATE | MESSAGE_PLACED};
}

static void pass(struct fixture *fixture, const struct record_message *message)
{
    struct record_message records[BURST_RECORDS_MAX];
    unsigned count = bursts_pass(fixture->bursts, message, records);

    for (unsigned i = 0; i < count; i++)
        take(fixture, &records[i]);
}

static void settle(struct fixture *fixture)
{
    struct record_message record;

    while (bursts_take(fixture->bursts, &record))
        take(fixture, &record);
    assert_true(bursts_held_from_ns(fixture->bursts) == UINT64_MAX);
}

static void test_below_the_rate_nothing_changes(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(bursts_create(&fixture->bursts, RATE, &fixture->tallies), 0);
    for (uint64_t i = 0; i < 5000; i++) {
        struct record_message message = make(i % 7, ROLE_DATA, 1000000000 + i * 1000000), record[BURST_RECORDS_MAX];
        assert_int_equal(bursts_pass(fixture->bursts, &message, record), 1);
        assert_memory_equal(&record[0], &message, sizeof message);
    }
    assert_int_equal(fixture->tallies.values[TALLY_MESSAGES_MERGED], 0);
}

static void test_no_limit(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(bursts_create(&fixture->bursts, 0, &fixture->tallies), 0);
    for (uint64_t i = 0; i < 100000; i++) {
        struct record_message message = make(1, ROLE_DATA, 1000000000 + i * 100);
        pass(fixture, &message);
    }
    assert_int_equal(fixture->records, 100000);
}

/* 10 s at 20 times the rate, in many flows and both roles: the rate is kept, and no byte is lost or told twice. */
static void test_above_the_rate(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t messages = 10 * 20 * RATE;

    assert_int_equal(bursts_create(&fixture->bursts, RATE, &fixture->tallies), 0);
    for (uint64_t i = 0; i < messages; i++) {
        struct record_message message =
            make((uint32_t)(i / 2 % 50), i % 2 == 0 ? ROLE_DATA : ROLE_CREDIT, 1000000000 + i * 50000);
        pass(fixture, &message);
    }
    settle(fixture);
    assert_int_equal(fixture->messages, messages);
    assert_int_equal(fixture->payload_bytes, messages * 1000);
    assert_int_equal(fixture->frames, messages * 3);
    assert_false(fixture->disordered);
    assert_in_range(fixture->records, 10 * RATE / 2, 10 * RATE + RATE / 10 + 100 + 1);
    assert_in_range(fixture->tallies.values[TALLY_MESSAGES_MERGED], messages * 9 / 10, messages);
}

/* More flows than the table has places: bursts give way to each other, and still nothing is lost. */
static void test_more_flows_than_places(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t messages = 300000;

    assert_int_equal(bursts_create(&fixture->bursts, RATE, &fixture->tallies), 0);
    for (uint64_t i = 0; i < messages; i++) {
        struct record_message message = make((uint32_t)(i % FLOWS), ROLE_DATA, 1000000000 + i * 1000);
        pass(fixture, &message);
    }
    settle(fixture);
    assert_int_equal(fixture->messages, messages);
    assert_int_equal(fixture->payload_bytes, messages * 1000);
    assert_false(fixture->disordered);
}

static void test_what_a_burst_says(void **state)
{
    struct fixture *fixture = *state;
    struct record_message record;

    assert_int_equal(bursts_create(&fixture->bursts, 1, &fixture->tallies), 0);
    struct record_message message = make(5, ROLE_DATA, 1000000000);
    pass(fixture, &message); /* the second's only one */
    assert_int_equal(fixture->records, 1);
    for (uint64_t i = 1; i <= 4; i++) {
        message = make(5, ROLE_DATA, 1000000000 + i * 1000);
        message.flags |= i == 2 ? MESSAGE_RETRANSMITTED : 0;
        pass(fixture, &message);
    }
    assert_true(bursts_held_from_ns(fixture->bursts) == 1000001000);
    assert_true(bursts_take(fixture->bursts, &record));
    assert_true(record.first_ns == 1000001000);
    assert_int_equal(record.duration_ns, 3010);
    assert_int_equal(record.payload_bytes, 4000);
    assert_int_equal(record.frames, 12);
    assert_int_equal(record.immediate, 4);
    assert_int_equal(record.place, 0);
    assert_int_equal(record.role, ROLE_DATA);
    assert_int_equal(record.flags, MESSAGE_MERGED | MESSAGE_RETRANSMITTED);
    assert_false(bursts_take(fixture->bursts, &record));
}

/* Bytes are counted in 32 bits: a burst ends before they do not suffice. */
static void test_a_burst_of_much(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(bursts_create(&fixture->bursts, 1, &fixture->tallies), 0);
    for (uint64_t i = 0; i < 20; i++) {
        struct record_message message = make(5, ROLE_DATA, 1000000000 + i * 1000);
        message.payload_bytes = 1u << 30;
        pass(fixture, &message);
    }
    settle(fixture);
    assert_int_equal(fixture->payload_bytes, 20ull << 30);
    assert_int_equal(fixture->messages, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_below_the_rate_nothing_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_above_the_rate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_flows_than_places, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_a_burst_says, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_burst_of_much, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_burst", tests, NULL, NULL);
}
