/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/flow/sequence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_distance(void **state)
{
    (void)state;
    assert_int_equal(sequence_distance(5, 3), 2);
    assert_int_equal(sequence_distance(3, 5), -2);
    assert_int_equal(sequence_distance(0x000003, 0xfffffc), 7);
    assert_int_equal(sequence_distance(0xfffffc, 0x000003), -7);
    assert_int_equal(sequence_distance(0x7fffff, 0), 0x7fffff);
    assert_int_equal(sequence_distance(0x800000, 0), -0x800000);
}

static void test_wrap_is_no_reordering(void **state)
{
    struct sequence sequence = {0};

    (void)state;
    for (uint32_t psn = 0xfffff0; psn != 0x1000010; psn++)
        assert_int_equal(sequence_add(&sequence, psn & SEQUENCE_PSN_MASK), SEQUENCE_NEXT);
    assert_int_equal(sequence_add(&sequence, 0xffffff), SEQUENCE_REPEATED);
    assert_int_equal(sequence_add(&sequence, 0xffffef), SEQUENCE_LATE);
}

static void test_go_back_n(void **state)
{
    static const uint32_t sent[] = {100, 101, 102, 104, 105, 103, 104, 105, 106};
    static const enum sequence_place places[] = {SEQUENCE_NEXT,     SEQUENCE_NEXT,     SEQUENCE_NEXT,
                                                 SEQUENCE_NEXT,     SEQUENCE_NEXT,     SEQUENCE_LATE,
                                                 SEQUENCE_REPEATED, SEQUENCE_REPEATED, SEQUENCE_NEXT};
    struct sequence sequence = {0};

    (void)state;
    for (unsigned i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        if (i == 5)
            assert_true(sequence_misses(&sequence, 103));
        assert_int_equal(sequence_add(&sequence, sent[i]), places[i]);
    }
    assert_false(sequence_misses(&sequence, 103));
    assert_false(sequence_misses(&sequence, 107));
}

static void test_far_back_is_not_known(void **state)
{
    struct sequence sequence = {0};

    (void)state;
    sequence_add(&sequence, 10000);
    assert_int_equal(sequence_add(&sequence, 10000 - SEQUENCE_PSNS + 1), SEQUENCE_LATE);
    assert_int_equal(sequence_add(&sequence, 10000 - SEQUENCE_PSNS), SEQUENCE_FAR);
    assert_int_equal(sequence.highest, 10000);
}

/* A jump clears what it skips: the bits of PSNs one ring length earlier must not show through. */
static void test_jumps_clear(void **state)
{
    struct sequence sequence = {0};

    (void)state;
    for (uint32_t psn = 0; psn < SEQUENCE_PSNS; psn++)
        sequence_add(&sequence, psn);
    assert_int_equal(sequence_add(&sequence, SEQUENCE_PSNS + 99), SEQUENCE_NEXT);
    for (uint32_t psn = SEQUENCE_PSNS; psn < SEQUENCE_PSNS + 99; psn++)
        assert_true(sequence_misses(&sequence, psn));
    for (uint32_t psn = 100; psn < SEQUENCE_PSNS; psn++)
        assert_false(sequence_misses(&sequence, psn));
    assert_int_equal(sequence_add(&sequence, SEQUENCE_PSNS * 5), SEQUENCE_NEXT);
    for (uint32_t psn = SEQUENCE_PSNS * 4 + 1; psn < SEQUENCE_PSNS * 5; psn++)
        assert_int_equal(sequence_add(&sequence, psn), SEQUENCE_LATE);
}

/* Random steps over the wrap against a plain array of all 2^24 PSNs. */
static void test_against_a_plain_set(void **state)
{
    uint8_t *seen = calloc(1u << 24, 1);
    struct sequence sequence = {0};
    uint32_t highest = 0xffff00;
    unsigned seed = 7;

    (void)state;
    assert_non_null(seen);
    sequence_add(&sequence, highest);
    seen[highest] = 1;
    for (unsigned i = 0; i < 200000; i++) {
        int step = rand_r(&seed) % 200 == 0 ? rand_r(&seed) % 300 : rand_r(&seed) % 40 - 30;
        uint32_t psn = (highest + (uint32_t)step) & SEQUENCE_PSN_MASK;
        enum sequence_place wanted = step > 0 ? SEQUENCE_NEXT : seen[psn] != 0 ? SEQUENCE_REPEATED : SEQUENCE_LATE;
        assert_int_equal(sequence_add(&sequence, psn), wanted);
        seen[psn] = 1;
        highest = step > 0 ? psn : highest;
        seen[(highest + (1u << 23)) & SEQUENCE_PSN_MASK] = 0;
    }
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),    cmocka_unit_test(test_wrap_is_no_reordering),
        cmocka_unit_test(test_go_back_n),   cmocka_unit_test(test_far_back_is_not_known),
        cmocka_unit_test(test_jumps_clear), cmocka_unit_test(test_against_a_plain_set),
    };
    return cmocka_run_group_tests_name("nic_sequence", tests, NULL, NULL);
}
