/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/flow/recovery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000u

/* Downstream of the sender, where answers are heard, frames 10 us apart. */
static struct recovery_frame make_frame(uint32_t psn, uint32_t highest, enum sequence_place place)
{
    return (struct recovery_frame){
        .psn = psn, .highest = highest, .place = place, .pause_ns = 10000, .usual_ns = 10000, .answers_heard = true};
}

static void test_late_without_a_reason(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame frame = make_frame(5, 9, SEQUENCE_LATE);

    (void)state;
    assert_false(recovery_judge(&recovery, &frame));
    recovery_ask(&recovery, 5, 9, false); /* perhaps another flow was meant */
    assert_false(recovery_judge(&recovery, &frame));
    assert_int_equal(recovery.late_unknown_frames, 2);
}

static void test_late_and_asked_for(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame before = make_frame(0xfffffe, 2, SEQUENCE_LATE);
    struct recovery_frame asked = make_frame(0xffffff, 2, SEQUENCE_LATE);
    struct recovery_frame last = make_frame(2, 2, SEQUENCE_LATE);
    struct recovery_frame after = make_frame(3, 4, SEQUENCE_LATE);

    (void)state;
    recovery_ask(&recovery, 0xffffff, 2, true);
    assert_false(recovery_judge(&recovery, &before));
    assert_true(recovery_judge(&recovery, &asked));
    assert_true(recovery_judge(&recovery, &last));
    assert_false(recovery_judge(&recovery, &after));
    assert_int_equal(recovery.late_unknown_frames, 2);
}

/* The sender waits, then begins again at the first that was not acknowledged: 5 was lost, 6 to 9 had come. */
static void test_a_time_out(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame first = make_frame(5, 9, SEQUENCE_LATE);
    struct recovery_frame second = make_frame(6, 9, SEQUENCE_REPEATED);
    struct recovery_frame last = make_frame(9, 9, SEQUENCE_REPEATED);

    (void)state;
    first.pause_ns = 67 * MS;
    assert_true(recovery_judge(&recovery, &first));
    assert_true(recovery_judge(&recovery, &second));
    assert_true(recovery_judge(&recovery, &last));
    assert_int_equal(recovery.timeouts, 1);
    assert_int_equal(recovery.timeout_ns, 67 * MS);
    assert_int_equal(recovery.late_unknown_frames, 0);
    assert_int_equal(recovery.duplicate_frames, 0);
}

static void test_what_is_no_pause(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame frame = make_frame(5, 9, SEQUENCE_LATE);

    (void)state;
    frame.pause_ns = MS - 1; /* no time-out is so short */
    assert_false(recovery_judge(&recovery, &frame));
    frame.pause_ns = 70 * MS; /* usual for this flow */
    frame.usual_ns = 9 * MS;
    assert_false(recovery_judge(&recovery, &frame));
    frame.usual_ns = 8 * MS;
    assert_true(recovery_judge(&recovery, &frame));
    assert_int_equal(recovery.timeouts, 1);
}

/* The newest frames were lost: inside a message the pause shows, between messages a sender may rest. */
static void test_a_pause_after_which_it_goes_on(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame frame = make_frame(10, 10, SEQUENCE_NEXT);

    (void)state;
    frame.pause_ns = 67 * MS;
    assert_false(recovery_judge(&recovery, &frame));
    assert_int_equal(recovery.pauses, 0);
    frame.goes_on = true;
    assert_false(recovery_judge(&recovery, &frame));
    assert_int_equal(recovery.pauses, 1);
    assert_int_equal(recovery.timeouts, 0);
}

static void test_a_duplicate(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame frame = make_frame(9, 9, SEQUENCE_REPEATED);

    (void)state;
    assert_false(recovery_judge(&recovery, &frame));
    assert_int_equal(recovery.duplicate_frames, 1);
    frame.answers_heard = false; /* a NAK would not have been seen */
    assert_true(recovery_judge(&recovery, &frame));
    assert_int_equal(recovery.duplicate_frames, 1);
}

static void test_no_duplicate_at_the_sender(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame frame = make_frame(9, 9, SEQUENCE_REPEATED);

    (void)state;
    frame.at_sender = true;
    assert_true(recovery_judge(&recovery, &frame));
    assert_int_equal(recovery.duplicate_frames, 0);
}

/* Going back to 5 for a reason that was not seen: its last frame is the highest, and yet no duplicate. */
static void test_going_back_unasked(void **state)
{
    struct recovery recovery = {0};

    (void)state;
    for (uint32_t psn = 5; psn <= 9; psn++) {
        struct recovery_frame frame = make_frame(psn, 9, SEQUENCE_REPEATED);
        assert_true(recovery_judge(&recovery, &frame));
    }
    assert_int_equal(recovery.duplicate_frames, 0);
}

/* What was only seen to come again does not explain a frame that comes for the first time. */
static void test_a_repeat_explains_no_late_frame(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame repeated = make_frame(5, 9, SEQUENCE_REPEATED);
    struct recovery_frame late = make_frame(7, 9, SEQUENCE_LATE);

    (void)state;
    assert_true(recovery_judge(&recovery, &repeated));
    assert_false(recovery_judge(&recovery, &late));
}

/* Asked for, then seen late, then once more: what came first was the original, overtaken. */
static void test_an_original_that_comes_after_its_nak(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame late = make_frame(5, 7, SEQUENCE_LATE);
    struct recovery_frame again = make_frame(5, 7, SEQUENCE_REPEATED);

    (void)state;
    late.payload_bytes = again.payload_bytes = 1024;
    recovery_ask(&recovery, 5, 7, true);
    assert_true(recovery_judge(&recovery, &late));
    assert_int_equal(recovery.reordered_frames, 0);
    assert_true(recovery_judge(&recovery, &again));
    assert_int_equal(recovery.reordered_frames, 1);
    assert_int_equal(recovery.reordered_bytes, 1024);
    assert_true(recovery_judge(&recovery, &again));
    assert_int_equal(recovery.reordered_frames, 1);
}

/* The NAK was for 5 when 7 was the highest; 8 and 9 were on their way: all are sent again. */
static void test_what_was_on_its_way(void **state)
{
    struct recovery recovery = {0};

    (void)state;
    recovery_ask(&recovery, 5, 7, true);
    for (uint32_t psn = 5; psn <= 9; psn++) {
        struct recovery_frame frame = make_frame(psn, 9, psn == 5 ? SEQUENCE_LATE : SEQUENCE_REPEATED);
        assert_true(recovery_judge(&recovery, &frame));
    }
    assert_int_equal(recovery.duplicate_frames, 0);
}

/* A message of one frame is sent again after a pause that is usual for its flow: no duplicate. */
static void test_again_after_a_usual_pause(void **state)
{
    struct recovery recovery = {0};
    struct recovery_frame frame = make_frame(9, 9, SEQUENCE_REPEATED);

    (void)state;
    frame.pause_ns = 67 * MS;
    frame.usual_ns = 50 * MS;
    assert_true(recovery_judge(&recovery, &frame));
    assert_int_equal(recovery.duplicate_frames, 0);
    assert_int_equal(recovery.timeouts, 1);
    assert_int_equal(recovery.timeout_ns, 67 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_without_a_reason),
        cmocka_unit_test(test_late_and_asked_for),
        cmocka_unit_test(test_a_time_out),
        cmocka_unit_test(test_what_is_no_pause),
        cmocka_unit_test(test_a_pause_after_which_it_goes_on),
        cmocka_unit_test(test_a_duplicate),
        cmocka_unit_test(test_no_duplicate_at_the_sender),
        cmocka_unit_test(test_going_back_unasked),
        cmocka_unit_test(test_a_repeat_explains_no_late_frame),
        cmocka_unit_test(test_an_original_that_comes_after_its_nak),
        cmocka_unit_test(test_again_after_a_usual_pause),
        cmocka_unit_test(test_what_was_on_its_way),
    };
    return cmocka_run_group_tests_name("nic_recovery", tests, NULL, NULL);
}
