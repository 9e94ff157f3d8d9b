/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/backlog.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The i-th message: its length and bytes follow from i. */
static size_t make_message(unsigned i, uint8_t *bytes)
{
    size_t length = i * 37 % 200;

    memset(bytes, (int)(i & 0xff), length);
    return length;
}

static void assert_front_is(struct backlog *backlog, unsigned i)
{
    uint8_t expected[256];
    const void *bytes;
    size_t length, expected_length = make_message(i, expected);

    assert_true(backlog_front(backlog, &bytes, &length));
    assert_int_equal(length, expected_length);
    assert_memory_equal(bytes, expected, length);
}

static void is_empty_at_first(void **state)
{
    struct backlog *backlog;
    const void *bytes;
    size_t length;

    (void)state;
    assert_int_equal(backlog_create(&backlog, 64), 0);
    assert_int_equal(backlog_count(backlog), 0);
    assert_false(backlog_front(backlog, &bytes, &length));
    backlog_destroy(&backlog);
    assert_null(backlog);
}

/* Each message takes its length, 8 bytes for the length, rounded up to 8: 8 messages of 24 bytes fill 256 bytes. */
static void takes_just_what_fits(void **state)
{
    struct backlog *backlog;
    uint8_t bytes[256] = {0};

    (void)state;
    assert_int_equal(backlog_create(&backlog, 256), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(backlog_put(backlog, bytes, 24), 0);
    assert_false(backlog_has_room(backlog, 0));
    assert_int_equal(backlog_put(backlog, bytes, 1), -ENOBUFS);
    backlog_pop(backlog);
    assert_true(backlog_has_room(backlog, 24));
    assert_false(backlog_has_room(backlog, 25));
    backlog_destroy(&backlog);
}

static void refuses_what_can_never_fit(void **state)
{
    struct backlog *backlog;
    uint8_t bytes[256] = {0};

    (void)state;
    assert_int_equal(backlog_create(&backlog, 256), 0);
    assert_int_equal(backlog_put(backlog, bytes, 249), -ENOBUFS);
    assert_false(backlog_has_room(backlog, SIZE_MAX));
    assert_int_equal(backlog_put(backlog, bytes, 248), 0);
    backlog_destroy(&backlog);
}

static void keeps_order_and_bytes_round_after_round(void **state)
{
    struct backlog *backlog;
    uint8_t bytes[256];
    unsigned put = 0, taken = 0, random = 1;

    (void)state;
    assert_int_equal(backlog_create(&backlog, 1024), 0);
    while (taken < 100000) {
        random = random * 1103515245u + 12345u;
        size_t length = make_message(put, bytes);
        if ((random >> 16) % 5 < 3) {
            bool has_room = backlog_has_room(backlog, length);
            assert_int_equal(backlog_put(backlog, bytes, length), has_room ? 0 : -ENOBUFS);
            put += has_room;
        } else if (put > taken) {
            assert_front_is(backlog, taken++);
            backlog_pop(backlog);
        }
        assert_int_equal(backlog_count(backlog), put - taken);
    }
    backlog_destroy(&backlog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_empty_at_first),
        cmocka_unit_test(takes_just_what_fits),
        cmocka_unit_test(refuses_what_can_never_fit),
        cmocka_unit_test(keeps_order_and_bytes_round_after_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
