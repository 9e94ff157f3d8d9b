/* SPDX-License-Identifier: BSD-2-Clause */
/* Captured calls: which graph holds them, and what of them is left when handles are used again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/tracker/graph.h"

static int setup(void **state)
{
    return graph_table_create((struct graph_table **)state, 8);
}

static int teardown(void **state)
{
    graph_table_destroy((struct graph_table **)state);
    return 0;
}

static int capture(struct graph_table *table, uint32_t process, uint64_t stream, uint64_t entered_ns)
{
    const struct record_call call = {.stream = stream, .entered_ns = entered_ns};
    return graph_capture_call(table, process, &call);
}

static void own_stream_first(void **state)
{
    const struct record_call *calls = NULL;
    assert_int_equal(capture(*state, 1, 5, 1), -ENOENT);
    graph_capture_begin(*state, 1, 5);
    graph_capture_begin(*state, 1, 6);
    graph_capture_begin(*state, 2, 7);
    assert_int_equal(capture(*state, 1, 5, 10), 0);
    assert_int_equal(capture(*state, 1, 6, 11), 0);
    assert_int_equal(capture(*state, 1, 9, 12), 0); /* joined: the one begun last */
    assert_int_equal(capture(*state, 1, 9, 12), 0); /* told again */
    assert_int_equal(graph_capture_end(*state, 1, 6, 0x60), 2);
    assert_int_equal(graph_capture_end(*state, 1, 5, 0x50), 1);
    assert_int_equal(graph_capture_end(*state, 1, 5, 0x51), -ENOENT);
    assert_int_equal(graph_capture_end(*state, 2, 7, 0), 0); /* failed: no graph */
    assert_int_equal(graph_instantiate(*state, 1, 0x60, 0x600), 2);
    assert_int_equal(graph_instantiate(*state, 2, 0x60, 0x600), -ENOENT);
    assert_int_equal(graph_calls(*state, 1, 0x600, &calls), 2);
    assert_int_equal(calls[0].entered_ns, 11);
    assert_int_equal(calls[1].entered_ns, 12);
    assert_int_equal(graph_calls(*state, 1, 0x60, &calls), -ENOENT);
    graph_forget_process(*state, 1);
    assert_int_equal(graph_count(*state), 0);
}

/* A handle that is used again means the newer one; an instance of what is not known is not known. */
static void used_again(void **state)
{
    const struct record_call *calls = NULL;
    graph_capture_begin(*state, 1, 5);
    capture(*state, 1, 5, 10);
    graph_capture_end(*state, 1, 5, 0x50);
    graph_instantiate(*state, 1, 0x50, 0x600);
    graph_capture_begin(*state, 1, 5);
    graph_capture_end(*state, 1, 5, 0x50);
    assert_int_equal(graph_calls(*state, 1, 0x600, &calls), 1);
    assert_int_equal(graph_instantiate(*state, 1, 0x50, 0x601), 0);
    assert_int_equal(graph_instantiate(*state, 1, 0x99, 0x600), -ENOENT);
    assert_int_equal(graph_calls(*state, 1, 0x600, &calls), -ENOENT);
}

static void full(void **state)
{
    for (uint64_t stream = 0; stream < 8; stream++)
        assert_int_equal(graph_capture_begin(*state, 1, stream), 0);
    assert_int_equal(graph_capture_begin(*state, 1, 100), -ENOSPC);
    assert_int_equal(graph_capture_begin(*state, 1, 3), 0); /* in place of itself */
    assert_int_equal(graph_count(*state), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(own_stream_first, setup, teardown),
        cmocka_unit_test_setup_teardown(used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(full, setup, teardown),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
