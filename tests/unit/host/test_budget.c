/* SPDX-License-Identifier: BSD-2-Clause */
/* The budget of probes: what is given up when, and taken up again. Costs here: 2 us an entry, 1 us a return. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/agent/budget.h"

#define SECOND 1000000000ull

static bool on[DUTIES];
static struct budget_hits hits;
static uint64_t now_ns;

static void set(void *context, enum probe_duty duty, bool value)
{
    (void)context;
    on[duty] = value;
}

static int setup(void **state)
{
    const struct budget_options options = {.share = 0.0016, .cost_ns = {2000, 1000, 200}, .set = set};
    for (enum probe_duty duty = 0; duty < DUTIES; duty++)
        on[duty] = true;
    hits = (struct budget_hits){.processes = 2};
    now_ns = 1000 * SECOND;
    const int error = budget_create((struct budget **)state, &options);
    budget_tick(*state, now_ns, &hits);
    return error;
}

static int teardown(void **state)
{
    budget_destroy((struct budget **)state);
    return 0;
}

/* A second in which so many calls were made, whose entry and, where it is on, return were hit. */
static uint64_t second(struct budget *budget, uint64_t calls)
{
    now_ns += SECOND;
    hits.total[DUTY_ALWAYS][COST_ENTRY] += calls;
    hits.total[DUTY_RETURN][COST_RETURN] += on[DUTY_RETURN] ? calls : 0;
    return budget_tick(budget, now_ns, &hits);
}

/* 2 processes have 3.2 ms a second: 1066 calls of 3 us fit, 1068 do not; without returns 1600 fit. */
static void edge(void **state)
{
    assert_int_equal(second(*state, 1066), 0);
    assert_in_range((uint64_t)(budget_share(*state) * 1e9), 1598999, 1599001);
    assert_true(on[DUTY_RETURN]);
    assert_int_equal(second(*state, 1068), 1);
    assert_false(on[DUTY_RETURN]);
    assert_false(budget_allows(*state, DUTY_RETURN));
    assert_true(on[DUTY_DELAY]);
    assert_int_equal(second(*state, 1600), 1);
    assert_true(on[DUTY_DELAY]);
}

/* One a second, data calls never. */
static void everything(void **state)
{
    assert_int_equal(second(*state, 100000), 1);
    assert_int_equal(second(*state, 100000), 2);
    assert_false(on[DUTY_DELAY]);
    assert_true(on[DUTY_MARKER]);
    assert_int_equal(second(*state, 100000), 3);
    assert_false(on[DUTY_MARKER]);
    assert_int_equal(second(*state, 100000), 3);
    assert_true(on[DUTY_ALWAYS]);
}

/* Half of the budget for half a minute: the last one comes back; given up again it has to wait twice as long. */
static void back(void **state)
{
    second(*state, 1200);
    for (unsigned i = 0; i < 29; i++)
        second(*state, 799);
    assert_false(on[DUTY_RETURN]);
    second(*state, 801);
    assert_false(on[DUTY_RETURN]);
    second(*state, 799);
    assert_true(on[DUTY_RETURN]);
    assert_int_equal(second(*state, 1200), 2);
    for (unsigned i = 0; i < 59; i++)
        second(*state, 100);
    assert_false(on[DUTY_RETURN]);
    second(*state, 100);
    assert_true(on[DUTY_RETURN]);
}

/* 2 processes have 6.4 ms a second then: 2133 calls of 3 us fit. */
static void another_share(void **state)
{
    budget_set_share(*state, 0.0032);
    assert_int_equal(second(*state, 2130), 0);
    assert_int_equal(second(*state, 2140), 1);
    assert_false(on[DUTY_RETURN]);
}

static void nobody(void **state)
{
    hits.processes = 0;
    assert_int_equal(second(*state, 100000), 0);
    assert_true(on[DUTY_RETURN]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(edge, setup, teardown),
        cmocka_unit_test_setup_teardown(everything, setup, teardown),
        cmocka_unit_test_setup_teardown(back, setup, teardown),
        cmocka_unit_test_setup_teardown(another_share, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody, setup, teardown),
    };
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
