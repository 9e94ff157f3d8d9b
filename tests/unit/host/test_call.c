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

/* Given to the library at the first time, back at the second. */
static void finish(struct call_groups *groups, struct call_group group, uint64_t enqueued_ns, uint64_t returned_ns)
{
    call_release(groups, &group, enqueued_ns, emit, NULL);
    call_return(groups, &group, returned_ns, 0, emit, NULL);
}

static void held_until_the_end(void **state)
{
    const struct call_group first = {.process = 1, .tid = 10, .number = 1};
    const struct call_group second = {.process = 1, .tid = 11, .number = 1};
    hold(*state, first, 100);
    hold(*state, second, 101);
    hold(*state, first, 102);
    call_release(*state, &first, 200, emit, NULL);
    assert_int_equal(emitted_count, 0);
    call_return(*state, &first, 230, 0, emit, NULL);
    assert_int_equal(emitted_count, 2);
    assert_int_equal(emitted[0].entered_ns, 100);
    assert_int_equal(emitted[1].entered_ns, 102);
    assert_int_equal(emitted[0].enqueued_ns, 200);
    assert_int_equal(emitted[1].enqueued_ns, 200);
    assert_int_equal(emitted[0].returned_after_ns, 130);
    assert_int_equal(emitted[1].returned_after_ns, 128);
    assert_int_equal(emitted[0].group, emitted[1].group);
    finish(*state, second, 201, 202);
    assert_int_equal(emitted_count, 3);
    assert_int_not_equal(emitted[2].group, emitted[0].group);
    assert_int_not_equal(emitted[2].group, 0);
    assert_int_equal(emitted[2].flags, CALL_GROUPED | 1 << CALL_RESULT_SHIFT);
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
    finish(*state, second, 400, 401);
    assert_int_equal(emitted[1].enqueued_ns, 400);
    assert_int_equal(emitted[1].flags, CALL_GROUPED | 1 << CALL_RESULT_SHIFT);
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
    const struct call_group groups[3] = {{1, 10, 1, false}, {1, 11, 1, false}, {2, 12, 1, false}};
    for (size_t i = 0; i < 3; i++) {
        hold(*state, groups[i], i);
        hold(*state, groups[i], i);
    }
    assert_int_equal(call_forget_thread(*state, 10, emit, NULL), 2);
    assert_int_equal(call_forget_thread(*state, 10, emit, NULL), 0);
    assert_int_equal(call_forget_process(*state, 1, emit, NULL), 2);
    assert_int_equal(call_groups_count(*state), 1);
    assert_int_equal(emitted_count, 0);
}

static const struct call_group lone = {.process = 1, .tid = 20};

/* Outside of groups: its own return, its result; a call whose return is lost comes out with the next one. */
static void lone_calls(void **state)
{
    const struct call_group again = {.process = 1, .tid = 20, .same = true};
    struct record_call call = {.entered_ns = 100, .enqueued_ns = 100};
    assert_int_equal(call_hold(*state, &lone, &call, emit, NULL), 0);
    assert_int_equal(emitted_count, 0);
    call_return(*state, &again, 150, 4, emit, NULL);
    assert_int_equal(emitted_count, 1);
    assert_int_equal(emitted[0].returned_after_ns, 50);
    assert_int_equal(emitted[0].flags, 5 << CALL_RESULT_SHIFT);
    assert_int_equal(emitted[0].group, 0);
    call_return(*state, &again, 160, 0, emit, NULL);
    assert_int_equal(emitted_count, 1);

    call.entered_ns = call.enqueued_ns = 200;
    call_hold(*state, &lone, &call, emit, NULL);
    call.entered_ns = call.enqueued_ns = 300;
    call_hold(*state, &lone, &call, emit, NULL);
    assert_int_equal(emitted_count, 2);
    assert_int_equal(emitted[1].entered_ns, 200);
    assert_int_equal(emitted[1].enqueued_ns, 200);
    assert_int_equal(emitted[1].returned_after_ns, 0);
    assert_int_equal(emitted[1].flags, 0);
    call_return(*state, &again, 300 + (5ull << 32), 4711, emit, NULL);
    assert_int_equal(emitted[2].returned_after_ns, UINT32_MAX);
    assert_int_equal(emitted[2].flags, 15 << CALL_RESULT_SHIFT);
    assert_int_equal(call_groups_count(*state), 0);
}

/* One call with several peers returns once. */
static void several_peers(void **state)
{
    const struct call_group same = {.process = 1, .tid = 20, .same = true};
    for (int32_t peer = 0; peer < 3; peer++) {
        struct record_call call = {.entered_ns = 100 + (uint64_t)peer, .enqueued_ns = 100, .peer = peer};
        call_hold(*state, peer == 0 ? &lone : &same, &call, emit, NULL);
    }
    assert_int_equal(emitted_count, 0);
    call_return(*state, &same, 200, 0, emit, NULL);
    assert_int_equal(emitted_count, 3);
    for (int32_t peer = 0; peer < 3; peer++)
        assert_int_equal(emitted[peer].returned_after_ns, 100 - peer);
}

/* What hangs in the library is told once, and again when it returns; what waits for its group's end is not. */
static void not_returned(void **state)
{
    const struct call_group group = {.process = 1, .tid = 10, .number = 1};
    const struct call_group same = {.process = 1, .tid = 20, .same = true};
    struct record_call call = {.entered_ns = 100, .enqueued_ns = 100};
    call_hold(*state, &lone, &call, emit, NULL);
    hold(*state, group, 50);
    call_expire(*state, 100, emit, NULL);
    assert_int_equal(emitted_count, 0);
    call_expire(*state, 101, emit, NULL);
    call_expire(*state, 500, emit, NULL);
    assert_int_equal(emitted_count, 1);
    assert_int_equal(emitted[0].entered_ns, 100);
    assert_int_equal(emitted[0].returned_after_ns, 0);
    call_return(*state, &same, 600, 0, emit, NULL);
    assert_int_equal(emitted_count, 2);
    assert_int_equal(emitted[1].returned_after_ns, 500);
    call_hold(*state, &lone, &call, emit, NULL);
    assert_int_equal(call_forget_process(*state, 1, emit, NULL), 1);
    assert_int_equal(emitted_count, 3);
    assert_int_equal(emitted[2].entered_ns, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(held_until_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(lost_end, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_end, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(lone_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(several_peers, setup, teardown),
        cmocka_unit_test_setup_teardown(not_returned, setup, teardown),
    };
    return cmocka_run_group_tests_name("call", tests, NULL, NULL);
}
