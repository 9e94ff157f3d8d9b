/* SPDX-License-Identifier: BSD-2-Clause */
/* A foreign counter through wraps and resets, and the numbers of sysfs as it writes them. */
#include "nic/port/counter_track.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t run(const uint64_t *raw, size_t count, unsigned bits, unsigned *resets)
{
    struct counter_track track = {0};
    bool is_reset;

    *resets = 0;
    for (size_t i = 0; i < count; i++) {
        counter_track_advance(&track, raw[i], bits, &is_reset);
        *resets += is_reset;
    }
    return track.total;
}

static void what_was_there_before_is_not_counted(void **state)
{
    static const uint64_t raw[] = {1000, 1000, 1007};
    unsigned resets;

    (void)state;
    assert_int_equal(run(raw, 3, 64, &resets), 7);
    assert_int_equal(resets, 0);
}

/* 0xfffffff0 to 0x10 on 32 bits is 0x20 further. */
static void thirty_two_bits_go_round(void **state)
{
    static const uint64_t raw[] = {0xfffffff0, 0x10, 0x30};
    unsigned resets;

    (void)state;
    assert_int_equal(run(raw, 3, 32, &resets), 0x40);
    assert_int_equal(resets, 0);
}

/* Set to zero, then 5 more: 5 are known, and that something may be missing. */
static void a_fall_is_a_reset(void **state)
{
    static const uint64_t small[] = {1000, 1010, 5}, wide[] = {0xfffffff0, 0x10};
    unsigned resets;

    (void)state;
    assert_int_equal(run(small, 3, 32, &resets), 15);
    assert_int_equal(resets, 1);
    assert_int_equal(run(wide, 2, 64, &resets), 0x10);
    assert_int_equal(resets, 1);
}

static void sysfs_writes_numbers_and_excuses(void **state)
{
    static const struct {
        const char *text;
        bool is_number;
        uint64_t value;
    } cases[] = {{"4096\n", true, 4096},
                 {"4: ACTIVE\n", true, 4},
                 {"  12", true, 12},
                 {"0x10\n", true, 16},
                 {"18446744073709551615\n", true, UINT64_MAX},
                 {"N/A (no PMA)\n", false, 0},
                 {"", false, 0},
                 {"\n", false, 0},
                 {"-1\n", false, 0},
                 {"12abc\n", false, 0},
                 {"18446744073709551616\n", false, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 77;
        assert_int_equal(counter_read_text(cases[i].text, &value), cases[i].is_number);
        assert_int_equal(value, cases[i].is_number ? cases[i].value : 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_there_before_is_not_counted),
        cmocka_unit_test(thirty_two_bits_go_round),
        cmocka_unit_test(a_fall_is_a_reset),
        cmocka_unit_test(sysfs_writes_numbers_and_excuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
