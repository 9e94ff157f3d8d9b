/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/flow/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void note(struct answers *answers, struct tallies *tallies, uint8_t acknowledgement, uint8_t syndrome)
{
    const struct frame frame = {.acknowledgement = acknowledgement, .syndrome = syndrome};

    answer_note(answers, &frame, tallies);
}

/* The table of IBA volume 1, "Encoding for RNR NAK timer field", in microseconds. */
static void test_how_long_an_rnr_nak_says_to_wait(void **state)
{
    static const uint32_t waits_us[32] = {655360, 10,    20,    30,     40,     60,     80,     120,
                                          160,    240,   320,   480,    640,    960,    1280,   1920,
                                          2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                                          40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};
    struct answers answers = {0};
    struct tallies tallies = {0};
    uint64_t sum_ns = 0;

    (void)state;
    for (unsigned code = 0; code < 32; code++) {
        note(&answers, &tallies, FRAME_RNR_NAK, (uint8_t)(0x20 | code));
        sum_ns += waits_us[code] * 1000ull;
        assert_int_equal(answers.rnr_last_ns, waits_us[code] * 1000);
        assert_int_equal(answers.rnr_wait_ns, sum_ns);
    }
    assert_int_equal(answers.rnr_naks, 32);
    assert_int_equal(answer_count(&answers), 32);
}

static void test_naks_by_code(void **state)
{
    struct answers answers = {0};
    struct tallies tallies = {0};

    (void)state;
    for (uint8_t code = 0; code < 32; code++)
        note(&answers, &tallies, FRAME_NAK, 0x60 | code);
    note(&answers, &tallies, FRAME_NAK, 0x62);
    note(&answers, &tallies, FRAME_ACK, 0x1f);
    note(&answers, &tallies, 0, 0);
    assert_int_equal(answers.naks, 33);
    assert_int_equal(answers.acks, 1);
    assert_int_equal(answers.cnps, 1);
    assert_int_equal(answers.naks_by_code[NAK_SEQUENCE_ERROR], 1);
    assert_int_equal(answers.naks_by_code[NAK_INVALID_REQUEST], 1);
    assert_int_equal(answers.naks_by_code[NAK_REMOTE_ACCESS_ERROR], 2);
    assert_int_equal(answers.naks_by_code[NAK_REMOTE_OPERATIONAL_ERROR], 1);
    assert_int_equal(answers.naks_by_code[NAK_INVALID_RD_REQUEST], 1);
    assert_int_equal(answers.naks_by_code[NAK_RESERVED], 27);
    assert_int_equal(tallies.values[TALLY_NAKS_REMOTE_ACCESS_ERROR], 2);
    assert_int_equal(tallies.values[TALLY_NAKS_RESERVED], 27);
    assert_int_equal(tallies.values[TALLY_ANSWERS], 35);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_long_an_rnr_nak_says_to_wait),
        cmocka_unit_test(test_naks_by_code),
    };
    return cmocka_run_group_tests_name("nic_answer", tests, NULL, NULL);
}
