/* SPDX-License-Identifier: BSD-2-Clause */
/* Lineage: the ways in which NCCL starts its threads, as the facts about it describe them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/tracker/lineage.h"

enum { PROCESS = 1, OTHER_PROCESS = 2 };

static int setup(void **state)
{
    return lineage_create((struct lineage **)state, 64);
}

static int teardown(void **state)
{
    lineage_destroy((struct lineage **)state);
    return 0;
}

static void expect(struct lineage *lineage, uint32_t tid, uint32_t communicator)
{
    assert_int_equal(lineage_expect(lineage, PROCESS, tid, communicator), 0);
}

static void fork_thread(struct lineage *lineage, uint32_t creator, uint32_t child)
{
    assert_int_equal(lineage_fork(lineage, PROCESS, creator, child), 0);
}

/* ncclCommInitRank outside of a group: 100 makes the service thread 101 itself, which makes 102 later. */
static void inline_call(void **state)
{
    struct lineage *lineage = *state;
    expect(lineage, 100, 7);
    lineage_open(lineage, 100, false);
    fork_thread(lineage, 100, 101);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 101), 7);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 100), 7);
    lineage_close(lineage, 100);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 100), 0);
    fork_thread(lineage, 101, 102);
    fork_thread(lineage, 100, 103);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 102), 7);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 103), 0);
}

/* Three in a group: jobs 201, 202, 203 in the order of the calls; their service threads come in any order. */
static void group_of_jobs(void **state)
{
    struct lineage *lineage = *state;
    for (uint32_t i = 0; i < 3; i++)
        expect(lineage, 200, 11 + i);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 200), 0);
    lineage_open(lineage, 200, false);
    for (uint32_t i = 0; i < 3; i++)
        fork_thread(lineage, 200, 201 + i);
    fork_thread(lineage, 203, 213);
    fork_thread(lineage, 201, 211);
    fork_thread(lineage, 202, 212);
    fork_thread(lineage, 200, 204); /* a fourth job of the same group: no communicator's */
    for (uint32_t i = 201; i <= 203; i++)
        lineage_exit(lineage, i);
    lineage_close(lineage, 200);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(lineage_communicator(lineage, PROCESS, 211 + i), 11 + i);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 204), 0);
    assert_int_equal(lineage_count(lineage), 3);
}

/* ncclCommInitAll makes an id first, whose root is a thread; then it is as a group. */
static void all_at_once(void **state)
{
    struct lineage *lineage = *state;
    for (uint32_t i = 0; i < 2; i++)
        expect(lineage, 250, 15 + i);
    lineage_open(lineage, 250, false);
    lineage_skip(lineage, 250);
    fork_thread(lineage, 250, 251);
    fork_thread(lineage, 250, 252);
    fork_thread(lineage, 250, 253);
    lineage_close(lineage, 250);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 251), 0);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 252), 15);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 253), 16);
}

/* One in a group: until 2.28.2 a job's thread makes the service thread, since then the caller does. */
static void group_of_one(void **state)
{
    struct lineage *lineage = *state;
    expect(lineage, 300, 21);
    lineage_open(lineage, 300, false);
    fork_thread(lineage, 300, 301);
    fork_thread(lineage, 301, 302);
    fork_thread(lineage, 300, 303);
    lineage_close(lineage, 300);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 302), 21);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 303), 21);
}

/* Non-blocking: the group end returns at once; its thread 401 makes the jobs afterwards. */
static void nonblocking_group(void **state)
{
    struct lineage *lineage = *state;
    expect(lineage, 400, 31);
    expect(lineage, 400, 32);
    lineage_open(lineage, 400, true);
    fork_thread(lineage, 400, 401);
    lineage_close(lineage, 400);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 401), 0);
    fork_thread(lineage, 401, 402);
    fork_thread(lineage, 401, 403);
    lineage_exit(lineage, 401);
    fork_thread(lineage, 403, 405);
    fork_thread(lineage, 402, 404);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 404), 31);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 405), 32);
}

/* A call in the group that was refused makes no job. */
static void refused_call(void **state)
{
    struct lineage *lineage = *state;
    const uint32_t *expected = NULL;
    expect(lineage, 500, 41);
    expect(lineage, 500, 42);
    lineage_unexpect(lineage, 500);
    expect(lineage, 500, 43);
    assert_int_equal(lineage_expected(lineage, 500, &expected), 2);
    assert_int_equal(expected[0], 41);
    assert_int_equal(expected[1], 43);
    lineage_open(lineage, 500, false);
    fork_thread(lineage, 500, 501);
    fork_thread(lineage, 500, 502);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 502), 43);
}

static void ids_are_used_again(void **state)
{
    struct lineage *lineage = *state;
    expect(lineage, 600, 51);
    lineage_open(lineage, 600, false);
    fork_thread(lineage, 600, 601);
    lineage_close(lineage, 600);
    fork_thread(lineage, 600, 601); /* its end was not seen, and its creator serves nobody now */
    assert_int_equal(lineage_communicator(lineage, PROCESS, 601), 0);
    assert_int_equal(lineage_count(lineage), 0);
}

static void process_ends(void **state)
{
    struct lineage *lineage = *state;
    expect(lineage, 700, 61);
    lineage_open(lineage, 700, false);
    fork_thread(lineage, 700, 701);
    assert_int_equal(lineage_expect(lineage, OTHER_PROCESS, 800, 62), 0);
    lineage_forget_process(lineage, PROCESS);
    assert_int_equal(lineage_count(lineage), 1);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 701), 0);
}

/* After a loss nobody is counted in by order; who was known stays known. */
static void broken(void **state)
{
    struct lineage *lineage = *state;
    expect(lineage, 900, 81);
    lineage_open(lineage, 900, false);
    fork_thread(lineage, 900, 901);
    expect(lineage, 910, 82);
    expect(lineage, 910, 83);
    lineage_break(lineage);
    fork_thread(lineage, 900, 902);
    fork_thread(lineage, 901, 903);
    lineage_open(lineage, 910, false);
    fork_thread(lineage, 910, 911);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 901), 81);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 903), 81);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 902), 0);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 911), 0);
    assert_int_equal(lineage_communicator(lineage, OTHER_PROCESS, 901), 0);
}

static void full_table(void **state)
{
    struct lineage *lineage = *state;
    expect(lineage, 1, 71);
    lineage_open(lineage, 1, false);
    for (uint32_t tid = 2; tid <= 64; tid++)
        fork_thread(lineage, 1, tid);
    assert_int_equal(lineage_fork(lineage, PROCESS, 1, 65), -ENOSPC);
    assert_int_equal(lineage_communicator(lineage, PROCESS, 65), 0);
    lineage_exit(lineage, 2);
    fork_thread(lineage, 1, 65);
}

static void full_window(void **state)
{
    struct lineage *lineage = *state;
    for (uint32_t i = 0; i < LINEAGE_WINDOW_MAX; i++)
        expect(lineage, 1, 100 + i);
    assert_int_equal(lineage_expect(lineage, PROCESS, 1, 999), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(inline_call, setup, teardown),
        cmocka_unit_test_setup_teardown(group_of_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(all_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(group_of_one, setup, teardown),
        cmocka_unit_test_setup_teardown(nonblocking_group, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_call, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_are_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(process_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(broken, setup, teardown),
        cmocka_unit_test_setup_teardown(full_table, setup, teardown),
        cmocka_unit_test_setup_teardown(full_window, setup, teardown),
    };
    return cmocka_run_group_tests_name("lineage", tests, NULL, NULL);
}
