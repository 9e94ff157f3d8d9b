/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests: bounded by time and by hits, begun and ended once each, told once each. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/follow/follow.h"

#define OTHER 2u /* a second kind */

static uint64_t now_ns;
static int64_t hits_left;
static int begin_result;
static int settling_result;
static unsigned starts;
static struct record_follow begun;
static unsigned begins;
static unsigned ends;
static struct record_followed told[4];
static unsigned told_count;

static int begin(void *context, enum follow_what what, const struct record_follow *request)
{
    (void)context;
    (void)what;
    begun = *request;
    begins++;
    now_ns += 5; /* setting probes takes its time */
    return begin_result;
}

static int settling(void *context, enum follow_what what)
{
    (void)context;
    (void)what;
    return settling_result;
}

static void start(void *context, enum follow_what what, const struct record_follow *request)
{
    (void)context;
    (void)what;
    assert_int_equal(request->hits_max, begun.hits_max);
    starts++;
}

static void end(void *context, enum follow_what what)
{
    (void)context;
    (void)what;
    ends++;
}

static int64_t left(void *context, enum follow_what what)
{
    (void)context;
    (void)what;
    return hits_left;
}

static uint64_t now(void *context)
{
    (void)context;
    return now_ns;
}

static void publish(void *context, const struct record_followed *record)
{
    (void)context;
    told[told_count++] = *record;
}

static int setup(void **state)
{
    const struct follow_options options = {begin, settling, start, end, left, now, publish, NULL};
    now_ns = 1000;
    hits_left = 100;
    begin_result = settling_result = 0;
    starts = begins = ends = told_count = 0;
    return follow_create((struct follow **)state, &options);
}

static int teardown(void **state)
{
    follow_destroy((struct follow **)state);
    return 0;
}

static struct record_follow request(uint32_t number, uint64_t duration_ns, uint64_t hits, uint32_t what)
{
    return (struct record_follow){
        .header.source = number, .duration_ns = duration_ns, .hits_max = hits, .what = what, .pid = 42};
}

static void check(const struct record_followed *record, uint32_t number, uint64_t from_ns, uint64_t to_ns,
                  uint64_t hits, enum followed_end why)
{
    assert_int_equal(record->header.source, number);
    assert_int_equal(record->from_ns, from_ns);
    assert_int_equal(record->to_ns, to_ns);
    assert_int_equal(record->hits, hits);
    assert_int_equal(record->end, why);
}

static void ends_in_time(void **state)
{
    const struct record_follow asked = request(7, 50, 100, FOLLOW_WORK);
    follow_request(*state, &asked);
    assert_int_equal(begun.pid, 42);
    now_ns = 1054;
    hits_left = 40;
    follow_tick(*state);
    assert_int_equal(ends, 0);
    now_ns = 1055; /* 50 after the probes were set */
    follow_tick(*state);
    follow_tick(*state);
    assert_int_equal(begins, 1);
    assert_int_equal(ends, 1);
    assert_int_equal(told_count, 1);
    check(&told[0], 7, 1005, 1055, 60, FOLLOWED_IN_TIME);
}

static void ends_when_hits_are_spent(void **state)
{
    const struct record_follow asked = request(8, 1000, 100, FOLLOW_WORK);
    follow_request(*state, &asked);
    now_ns = 1010;
    hits_left = -3; /* hits that came together */
    follow_tick(*state);
    assert_int_equal(ends, 1);
    check(&told[0], 8, 1005, 1010, 100, FOLLOWED_SPENT);
}

static void another_takes_its_place(void **state)
{
    const struct record_follow first = request(1, 1000, 100, FOLLOW_WORK);
    const struct record_follow second = request(2, 20, 100, FOLLOW_WORK);
    follow_request(*state, &first);
    now_ns = 1100;
    hits_left = 100;
    follow_request(*state, &second);
    check(&told[0], 1, 1005, 1100, 0, FOLLOWED_REPLACED);
    now_ns = 1125;
    follow_tick(*state);
    check(&told[1], 2, 1105, 1125, 0, FOLLOWED_IN_TIME);
    assert_int_equal(begins, 2);
    assert_int_equal(ends, 2);
}

static void what_cannot_begin_is_told(void **state)
{
    const struct record_follow asked = request(3, 1000, 100, FOLLOW_WORK);
    begin_result = -ENOENT;
    follow_request(*state, &asked);
    follow_tick(*state);
    assert_int_equal(ends, 0);
    assert_int_equal(told_count, 1);
    check(&told[0], 3, 1005, 1005, 0, FOLLOWED_REFUSED);
}

/* Its time runs from when all its probes are set; until then nothing is told. */
static void waits_for_its_probes(void **state)
{
    const struct record_follow asked = request(7, 50, 100, FOLLOW_WORK);
    settling_result = 1;
    hits_left = 0; /* none are allowed yet: not spent */
    follow_request(*state, &asked);
    now_ns = 9000;
    follow_tick(*state);
    assert_int_equal(starts, 0);
    assert_int_equal(ends, 0);
    settling_result = 0;
    hits_left = 100;
    follow_tick(*state);
    assert_int_equal(starts, 1);
    now_ns = 9049;
    follow_tick(*state);
    assert_int_equal(ends, 0);
    now_ns = 9050;
    follow_tick(*state);
    assert_int_equal(starts, 1);
    assert_int_equal(told_count, 1);
    check(&told[0], 7, 9000, 9050, 0, FOLLOWED_IN_TIME);
}

static void none_of_its_probes_can_be_set(void **state)
{
    const struct record_follow asked = request(7, 50, 100, FOLLOW_WORK);
    settling_result = 1;
    follow_request(*state, &asked);
    settling_result = -ENOENT;
    now_ns = 2000;
    follow_tick(*state);
    assert_int_equal(starts, 0);
    assert_int_equal(ends, 1);
    check(&told[0], 7, 2000, 2000, 0, FOLLOWED_REFUSED);
}

static void another_takes_its_place_while_it_waits(void **state)
{
    const struct record_follow first = request(1, 1000, 100, FOLLOW_WORK);
    const struct record_follow second = request(2, 20, 100, FOLLOW_WORK);
    settling_result = 1;
    follow_request(*state, &first);
    now_ns = 1100;
    settling_result = 0;
    follow_request(*state, &second);
    check(&told[0], 1, 1005, 1100, 0, FOLLOWED_REPLACED);
    assert_int_equal(starts, 1);
    assert_int_equal(ends, 1);
}

static void kinds_are_apart(void **state)
{
    const struct record_follow both = request(4, 50, 100, FOLLOW_WORK | OTHER);
    follow_request(*state, &both);
    assert_int_equal(begins, 2);
    now_ns = 2000;
    follow_tick(*state);
    assert_int_equal(told_count, 2);
    assert_int_equal(told[0].what, FOLLOW_WORK);
    assert_int_equal(told[1].what, OTHER);
    check(&told[1], 4, 1010, 2000, 0, FOLLOWED_IN_TIME);
}

static void bounds_are_kept(void **state)
{
    const struct record_follow without = request(5, 0, 0, FOLLOW_WORK);
    const struct record_follow beyond = request(6, UINT64_MAX, UINT64_MAX, FOLLOW_WORK);
    follow_request(*state, &without);
    assert_int_equal(begun.duration_ns, 60000000000u);
    assert_int_equal(begun.hits_max, 10000000);
    follow_request(*state, &beyond);
    assert_int_equal(begun.duration_ns, 60000000000u);
    assert_int_equal(begun.hits_max, 10000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ends_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_when_hits_are_spent, setup, teardown),
        cmocka_unit_test_setup_teardown(another_takes_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_begin_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_for_its_probes, setup, teardown),
        cmocka_unit_test_setup_teardown(none_of_its_probes_can_be_set, setup, teardown),
        cmocka_unit_test_setup_teardown(another_takes_its_place_while_it_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(kinds_are_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_are_kept, setup, teardown),
    };
    return cmocka_run_group_tests_name("follow", tests, NULL, NULL);
}
