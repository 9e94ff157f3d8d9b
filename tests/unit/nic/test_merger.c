/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/flow/merger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define FLOWS         10u
#define MESSAGE_BYTES 40u
#define RATE          40000u /* 1000 records a second, 100 at once */
#define MS            1000000u
#define SENT_MAX      20000u

struct fixture {
    struct tallies tallies;
    struct merger *merger;
    struct record_message sent[SENT_MAX];
    size_t count;
};

static size_t take(void *context, const struct record_message *message)
{
    struct fixture *fixture = context;

    assert_true(fixture->count < SENT_MAX);
    fixture->sent[fixture->count++] = *message;
    return MESSAGE_BYTES;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    *state = fixture;
    return fixture == NULL ? -1 : merger_create(&fixture->merger, FLOWS, RATE, &fixture->tallies);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    merger_destroy(&fixture->merger);
    free(fixture);
    return 0;
}

static struct record_message make(uint32_t flow, uint64_t first_ns, uint8_t role)
{
    return (struct record_message){.header.source = flow,
                                   .first_ns = first_ns,
                                   .duration_ns = 500,
                                   .payload_bytes = 1000,
                                   .frames = 2,
                                   .role = role,
                                   .flags = MESSAGE_PLACED,
                                   .place = (uint32_t)first_ns};
}

static void add(struct fixture *fixture, uint32_t flow, uint64_t first_ns, uint8_t role)
{
    struct record_message message = make(flow, first_ns, role);

    merger_add(fixture->merger, &message, first_ns + 500, take, fixture);
    merger_go_on(fixture->merger, first_ns + 500, false, take, fixture);
}

static void test_below_the_rate_nothing_is_changed(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t i = 0; i < 2000; i++) {
        add(fixture, 1 + i % FLOWS, 1000 * MS + (uint64_t)i * MS, ROLE_DATA);
        struct record_message wanted = make(1 + i % FLOWS, 1000 * MS + (uint64_t)i * MS, ROLE_DATA);
        assert_int_equal(fixture->count, i + 1);
        assert_memory_equal(&fixture->sent[i], &wanted, sizeof wanted);
    }
    assert_int_equal(fixture->tallies.values[TALLY_MESSAGES_MERGED], 0);
}

/* Ten times the rate for a second: no more records than the rate and the first burst allow, and not a byte is missing.
 */
static void test_above_the_rate(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t messages = 10000;
    uint64_t bytes = 0, frames = 0, merged = 0, since_ns;

    for (uint32_t i = 0; i < messages; i++)
        add(fixture, 1 + i % FLOWS, 1000 * MS + (uint64_t)i * MS / 10, ROLE_DATA);
    assert_true(fixture->count <= 1000 + 100 + 2);
    assert_true(fixture->count >= 900);
    assert_true(merger_waits_since(fixture->merger, &since_ns));
    merger_go_on(fixture->merger, 0, true, take, fixture);
    assert_false(merger_waits_since(fixture->merger, &since_ns));
    for (size_t i = 0; i < fixture->count; i++) {
        bytes += fixture->sent[i].payload_bytes;
        frames += fixture->sent[i].frames;
        merged += (fixture->sent[i].flags & MESSAGE_MERGED) != 0;
    }
    assert_int_equal(bytes, (uint64_t)messages * 1000);
    assert_int_equal(frames, (uint64_t)messages * 2);
    assert_true(merged > 500);
    assert_int_equal(fixture->tallies.values[TALLY_MESSAGES_MERGED] + fixture->count, messages);
}

/* Half the rate for three seconds, of which a reader that was held up learns all at once. */
static void test_a_reader_that_was_held_up(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t i = 0; i < 1500; i++) {
        struct record_message message = make(1 + i % FLOWS, 1000 * MS + (uint64_t)i * 2 * MS, ROLE_DATA);
        merger_add(fixture->merger, &message, 1000 * MS, take, fixture);
        merger_go_on(fixture->merger, 1000 * MS, false, take, fixture);
        assert_int_equal(fixture->count, i + 1);
    }
    assert_int_equal(fixture->tallies.values[TALLY_MESSAGES_MERGED], 0);
}

/* A burst is of one role, and goes from the first one's beginning to the last one's end. */
static void test_a_burst(void **state)
{
    struct fixture *fixture = *state;
    size_t before;

    for (uint32_t i = 0; fixture->count == i && i < 1000; i++)
        add(fixture, 1, 1000 * MS + i, ROLE_DATA);
    before = fixture->count;
    for (uint32_t i = 0; i < 5; i++)
        add(fixture, 2, 1000 * MS + 3000 + i * 1000, ROLE_DATA);
    add(fixture, 2, 1000 * MS + 9000, ROLE_SIZE);
    merger_go_on(fixture->merger, 0, true, take, fixture);
    assert_int_equal(fixture->count, before + 3);
    const struct record_message *burst = &fixture->sent[before + 1];
    assert_int_equal(burst->header.source, 2);
    assert_true(burst->first_ns == 1000 * MS + 3000);
    assert_int_equal(burst->duration_ns, 4500);
    assert_int_equal(burst->frames, 10);
    assert_int_equal(burst->immediate, 5);
    assert_int_equal(burst->flags, MESSAGE_MERGED | MESSAGE_PLACED);
    assert_int_equal(burst->place, 1000 * MS + 7000);
    assert_int_equal(fixture->sent[before + 2].role, ROLE_SIZE);
    assert_int_equal(fixture->sent[before + 2].flags, MESSAGE_PLACED);
}

/* Without a rate what waits goes at once, and nothing waits any more; with one again it does. */
static void test_another_rate(void **state)
{
    struct fixture *fixture = *state;
    uint64_t since_ns;

    for (uint32_t i = 0; i < 1000; i++)
        add(fixture, 1 + i % FLOWS, 1000 * MS + i, ROLE_DATA);
    assert_true(merger_waits_since(fixture->merger, &since_ns));
    size_t before = fixture->count;
    merger_set_rate(fixture->merger, 0);
    merger_go_on(fixture->merger, 1000 * MS + 2000, false, take, fixture);
    assert_false(merger_waits_since(fixture->merger, &since_ns));
    assert_int_equal(fixture->count, before + FLOWS);
    for (uint32_t i = 0; i < 1000; i++)
        add(fixture, 1 + i % FLOWS, 1001 * MS + i, ROLE_DATA);
    assert_int_equal(fixture->count, before + FLOWS + 1000);
    merger_set_rate(fixture->merger, RATE);
    for (uint32_t i = 0; i < 1000; i++)
        add(fixture, 1 + i % FLOWS, 1002 * MS + i, ROLE_DATA);
    assert_true(merger_waits_since(fixture->merger, &since_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_below_the_rate_nothing_is_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_above_the_rate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_reader_that_was_held_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_burst, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_rate, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_merger", tests, NULL, NULL);
}
