/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/window/history.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MEMORY (256u * 1024u)
#define PUT    40000u

struct fixture {
    struct tallies tallies;
    struct history *history;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    *state = fixture;
    return fixture == NULL ? -1 : history_create(&fixture->history, MEMORY, &fixture->tallies);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    history_destroy(&fixture->history);
    free(fixture);
    return 0;
}

/* Message n of many: what NCCL sends, 512 KiB and an immediate, and now and then something odd. */
static struct record_message make(uint32_t n)
{
    struct record_message message = {.header.source = 1 + n % 2000,
                                     .first_ns = 1000000000u + (uint64_t)n * 5000,
                                     .duration_ns = 40000 + n % 7,
                                     .payload_bytes = 524288,
                                     .frames = 128,
                                     .place = n * 524288u,
                                     .role = ROLE_DATA,
                                     .opcode = 0x08,
                                     .flags = MESSAGE_PLACED};

    if (n % 5 == 0) {
        message.immediate = 0xffffffffu - n;
        message.flags |= MESSAGE_IMMEDIATE;
    }
    if (n % 11 == 0) {
        message.first_ns -= 900000; /* ended long before the one before it */
        message.duration_ns = UINT32_MAX;
        message.flags |= MESSAGE_INCOMPLETE | MESSAGE_RETRANSMITTED;
        message.role = ROLE_OTHER;
        message.place = 0;
        message.flags &= (uint16_t)~MESSAGE_PLACED;
    }
    return message;
}

static size_t read_back(const struct history *history, uint64_t from_ns, uint64_t to_ns, struct record_message *records,
                        size_t capacity)
{
    struct history_walk walk;
    size_t count = 0;
    bool done = false;

    history_walk_begin(history, &walk, from_ns, to_ns);
    while (!done && count < capacity)
        count += history_walk_next(history, &walk, records + count, capacity - count, 100, &done);
    assert_true(done);
    return count;
}

static void test_what_is_kept_comes_back_whole(void **state)
{
    struct fixture *fixture = *state;
    struct record_message *records = calloc(PUT + 1, sizeof *records);

    for (uint32_t n = 0; n < PUT; n++) {
        struct record_message message = make(n);
        history_put(fixture->history, &message);
    }
    size_t count = read_back(fixture->history, 0, UINT64_MAX, records, PUT + 1);
    size_t given_up = fixture->tallies.values[TALLY_HISTORY_OVERWRITTEN];
    assert_true(given_up > 0);
    assert_int_equal(count + given_up, PUT);
    assert_true(count * 22 > MEMORY); /* 16 bytes or so each, a part of the ring being empty */
    for (size_t i = 0; i < count; i++) {
        struct record_message wanted = make((uint32_t)(given_up + i));
        assert_memory_equal(&records[i], &wanted, sizeof wanted);
    }
    assert_true(history_held_from_ns(fixture->history) > 1000000000u);
    free(records);
}

/* All that lie in the interval with some part, and no others. */
static void test_an_interval(void **state)
{
    struct fixture *fixture = *state;
    struct record_message records[64];

    for (uint32_t n = 1; n < 1000; n++) {
        struct record_message message = {.header.source = 3, .first_ns = n * 1000, .duration_ns = 1500, .frames = n};
        history_put(fixture->history, &message);
    }
    assert_int_equal(history_held_from_ns(fixture->history), 0);
    assert_int_equal(read_back(fixture->history, 10000, 12000, records, 64),
                     3); /* 9 to 10.5, 10 to 11.5, 11 to 12.5 us */
    assert_int_equal(records[0].frames, 9);
    assert_int_equal(records[1].frames, 10);
    assert_int_equal(records[2].frames, 11);
}

static void test_refuses_too_little(void **state)
{
    struct fixture *fixture = *state;
    struct history *history = NULL;

    assert_int_equal(history_create(&history, 1000, &fixture->tallies), -EINVAL);
    assert_null(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_kept_comes_back_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_interval, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_too_little, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_history", tests, NULL, NULL);
}
