/* SPDX-License-Identifier: BSD-2-Clause */
/* Levels of made-up series: what is kept is known from how they are made. */
#include "correlator/job/plateau.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define LOW   1000
#define STEPS 200

static uint64_t chance; /* a series is its seed */

/* Even, from 0 to `most`. */
static int64_t up_to(int64_t most)
{
    chance = chance * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int64_t)((chance >> 33) % (uint64_t)(most + 1));
}

/* `low` steps at LOW and up to 20 more, all others at `high` and up to `scatter` more. */
static void make(int64_t *values, size_t low, int64_t high, int64_t scatter)
{
    for (size_t i = 0; i < STEPS; i++)
        values[i] = i < low ? LOW + up_to(20) : high + up_to(scatter);
}

static void expect_low(int64_t *values, size_t low)
{
    assert_int_equal(plateau_keep(values, STEPS), low);
    for (size_t i = 0; i < low; i++)
        assert_in_range(values[i], LOW, LOW + 20);
}

static void what_came_to_stay_is_left_out(void **state)
{
    int64_t values[STEPS];

    (void)state;
    for (size_t low = PLATEAU_STEPS; low < STEPS / 2; low += 7) {
        make(values, low, 2 * LOW, 20);
        expect_low(values, low);
        make(values, low, 100 * LOW, 200 * LOW); /* however much it scatters */
        expect_low(values, low);
    }
}

static void a_shorter_time_is_chance(void **state)
{
    int64_t values[STEPS];

    (void)state;
    make(values, PLATEAU_STEPS - 1, 2 * LOW, 20);
    assert_int_equal(plateau_keep(values, STEPS), STEPS);
    assert_int_equal(plateau_keep(values, PLATEAU_STEPS), PLATEAU_STEPS);
    assert_int_equal(plateau_keep(values, 0), 0);
}

/* A checkpoint in the quiet time, and one quiet step later. */
static void single_steps_do_not_matter(void **state)
{
    int64_t values[STEPS];

    (void)state;
    make(values, 20, 2 * LOW, 20);
    values[10] = 50 * LOW;
    values[100] = LOW;
    assert_int_equal(plateau_keep(values, STEPS), 20);
    assert_int_equal(values[10], 50 * LOW);
    assert_int_equal(values[19] / LOW, 1);
}

/* What scatters, rises slowly, or differs from step to step has no level apart. */
static void one_level_stays_whole(void **state)
{
    int64_t values[STEPS];

    (void)state;
    for (chance = 0; chance < 1000000007ULL * 2000; chance += 1000000007ULL) {
        uint64_t seed = chance;
        make(values, 0, LOW, LOW);
        assert_int_equal(plateau_keep(values, STEPS), STEPS);
        chance = seed;
    }
    for (size_t i = 0; i < STEPS; i++)
        values[i] = LOW + (int64_t)i * 10 + up_to(20);
    assert_int_equal(plateau_keep(values, STEPS), STEPS);
    for (size_t i = 0; i < STEPS; i++)
        values[i] = (up_to(3) == 0 ? LOW : 2 * LOW) + up_to(20);
    assert_int_equal(plateau_keep(values, STEPS), STEPS);
    for (size_t i = 0; i < STEPS; i++)
        values[i] = LOW;
    assert_int_equal(plateau_keep(values, STEPS), STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_to_stay_is_left_out),
        cmocka_unit_test(a_shorter_time_is_chance),
        cmocka_unit_test(single_steps_do_not_matter),
        cmocka_unit_test(one_level_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
