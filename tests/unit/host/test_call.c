/* SPDX-License-Identifier: BSD-2-Clause */
/* Grouped calls: held until their group's end, in order, a number a group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/tracker/call.h"

static struct record_call emitted[16];
static size_t emitted_count;

static void emit(void *context, struct record_call *call)
{
    (void)context;
    emitted[emitted_count++] = *call;
}

static int setup(void **state)
{
    emitted_count = 0;
    return call_groups_create((struct call_groups **)state);
}

static int teardown(void **state)
{
    call_groups_destroy((struct call_groups **)state);
    return 0;
}

static void hold(struct call_groups *groups, struct call_group group, uint64_t entered_ns)
{
    struct record_call call = {.entered_ns = entered_ns, .enqueued_ns = entered_ns, .flags = CALL_GROUPED};
    assert_int_equal(call_hold(groups, &group, &call, emit, NULL), 0);
}

static void held_until_the_end(void **state)
{
    const struct call_group first = {.process = 1, .tid = 10, .number = 1};
    const struct call_group second = {.process = 1, .tid = 11, .number = 1};
    hold(*state, first, 100);
    hold(*state, second, 101);
    hold(*state, first, 102);
    assert_int_equal(emitted_count, 0);
    call_release(*state, &first, 200, emit, NULL);
    assert_int_equal(emitted_count, 2);
    assert_int_equal(emitted[0].entered_ns, 100);
    assert_int_equal(emitted[1].entered_ns, 102);
    assert_int_equal(emitted[0].enqueued_ns, 200);
    assert_int_equal(emitted[1].enqueued_ns, 200);
    assert_int_equal(emitted[0].group, emitted[1].group);
    call_release(*state, &second, 201, emit, NULL);
    assert_int_equal(emitted_count, 3);
    assert_int_not_equal(emitted[2].group, emitted[0].group);
    assert_int_not_equal(emitted[2].group, 0);
    assert_int_equal(emitted[2].flags, CALL_GROUPED);
    assert_int_equal(call_groups_count(*state), 0);
}

/* The end of group 1 was lost: its calls come out marked, with no time of enqueueing, before those of group 2. */
static void lost_end(void **state)
{
    const struct call_group first = {.process = 1, .tid = 10, .number = 1};
    const struct call_group second = {.process = 1, .tid = 10, .number = 2};
    hold(*state, first, 100);
    hold(*state, second, 300);
    assert_int_equal(emitted_count, 1);
    assert_int_equal(emitted[0].enqueued_ns, 0);
    assert_int_equal(emitted[0].flags, CALL_GROUPED | CALL_AFTER_LOSS);
    call_release(*state, &second, 400, emit, NULL);
    assert_int_equal(emitted[1].enqueued_ns, 400);
    assert_int_equal(emitted[1].flags, CALL_GROUPED);
}

static void unknown_end(void **state)
{
    const struct call_group group = {.process = 1, .tid = 10, .number = 1};
    const struct call_group later = {.process = 1, .tid = 10, .number = 5};
    call_release(*state, &group, 100, emit, NULL);
    assert_int_equal(emitted_count, 0);
    hold(*state, group, 100);
    call_release(*state, &later, 200, emit, NULL);
    assert_int_equal(emitted_count, 1);
    assert_int_equal(emitted[0].enqueued_ns, 0);
    assert_true((emitted[0].flags & CALL_AFTER_LOSS) != 0);
}

static void forgotten(void **state)
{
    const struct call_group groups[3] = {{1, 10, 1}, {1, 11, 1}, {2, 12, 1}};
    for (size_t i = 0; i < 3; i++) {
        hold(*state, groups[i], i);
        hold(*state, groups[i], i);
    }
    assert_int_equal(call_forget_thread(*state, 10), 2);
    assert_int_equal(call_forget_thread(*state, 10), 0);
    assert_int_equal(call_forget_process(*state, 1), 2);
    assert_int_equal(call_groups_count(*state), 1);
    assert_int_equal(emitted_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(held_until_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(lost_end, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_end, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten, setup, teardown),
    };
    return cmocka_run_group_tests_name("call", tests, NULL, NULL);
}
