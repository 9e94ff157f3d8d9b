/* SPDX-License-Identifier: BSD-2-Clause */
/* Which probes are ordered, in which order, and what is heard of them, on a stand-in for the kernel behind a gate. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/probe/placement.h"

#define ROWS_MAX   512
#define SET_MAX    64
#define FOLLOWING  1000 /* programs that are no row */
#define OWN        2000
#define UNSETTABLE 3000

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool open;
    int unsettable; /* program */
    int set[SET_MAX];
    size_t set_count;
    size_t gone_count;
} kernel = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static int programs[ROWS_MAX]; /* the row itself */
static struct placement_attached told[4];
static size_t told_count;
static int file;

static void pass_gate(void)
{
    pthread_mutex_lock(&kernel.lock);
    while (!kernel.open)
        pthread_cond_wait(&kernel.wake, &kernel.lock);
}

static int set(void *context, const struct attachment *attachment)
{
    (void)context;
    pass_gate();
    const bool refused = attachment->program == kernel.unsettable;
    if (!refused)
        kernel.set[kernel.set_count++] = attachment->program;
    pthread_mutex_unlock(&kernel.lock);
    return refused ? -EPERM : 7;
}

static void let_go(void *context, const int *links, size_t count)
{
    (void)context;
    (void)links;
    pass_gate();
    kernel.gone_count += count;
    pthread_mutex_unlock(&kernel.lock);
}

static void turn_gate(bool open)
{
    pthread_mutex_lock(&kernel.lock);
    kernel.open = open;
    pthread_cond_broadcast(&kernel.wake);
    pthread_mutex_unlock(&kernel.lock);
}

static void attached(void *context, const struct placement_attached *what)
{
    (void)context;
    told[told_count++] = *what;
}

static int setup(void **state)
{
    const struct placement_options options = {{set, let_go, NULL, false}, programs, attached, NULL};
    for (int i = 0; i < ROWS_MAX; i++)
        programs[i] = i;
    kernel.open = false;
    kernel.unsettable = -1;
    kernel.set_count = kernel.gone_count = told_count = 0;
    file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_in_range(probe_specs_count, 1, ROWS_MAX);
    return placement_create((struct placement **)state, &options);
}

static int teardown(void **state)
{
    turn_gate(true);
    placement_destroy((struct placement **)state);
    assert_int_equal(kernel.gone_count, kernel.set_count);
    return close(file);
}

static size_t row_of(const char *symbol, bool at_return, enum probe_duty duty)
{
    for (size_t i = 0; i < probe_specs_count; i++)
        if (strcmp(probe_specs[i].symbol, symbol) == 0 && probe_specs[i].at_return == at_return &&
            probe_specs[i].duty == duty)
            return i;
    fail_msg("no probe at %s", symbol);
    return 0;
}

/* One of each that a job has, in the order of the table. */
static struct library_places some_places(void)
{
    const size_t rows[] = {
        row_of("ncclCommInitRank", false, DUTY_ALWAYS), row_of("ibv_create_qp", false, DUTY_ALWAYS),
        row_of("ncclAllReduce", false, DUTY_ALWAYS),    row_of("ncclAllReduce", true, DUTY_RETURN),
        row_of("cudaGraphLaunch", false, DUTY_MARKER),  row_of("cudaLaunchKernel", false, DUTY_DETAIL),
    };
    struct library_places places = {.count = sizeof rows / sizeof rows[0]};
    for (size_t i = 0; i < places.count; i++) {
        assert_true(i == 0 || rows[i] > rows[i - 1]);
        places.places[i] = (struct library_place){rows[i], 64 * i};
    }
    return places;
}

static void settle(struct placement *placement)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct placement_counts counts = {.waiting = 1};
    turn_gate(true);
    for (int tries = 0; counts.waiting + counts.leaving != 0 && tries < 5000; tries++) {
        nanosleep(&pause, NULL);
        placement_count(placement, &counts);
    }
    assert_int_equal(counts.waiting + counts.leaving, 0);
    turn_gate(false);
    placement_tick(placement);
}

static void check_set(const struct library_places *places, const size_t *expected, size_t count)
{
    assert_int_equal(kernel.set_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(kernel.set[i], places->places[expected[i]].spec);
}

static void what_names_a_job_comes_first(void **state)
{
    const struct library_places places = some_places();
    const struct attachment followed = {
        .program = FOLLOWING, .file = file, .offsets = &(uint64_t){8}, .offsets_count = 1};
    struct placement_counts counts;
    assert_int_equal(placement_attach(*state, 1, file, &places), 0);
    assert_int_equal(placement_follow(*state, &followed), 0);
    placement_count(*state, &counts);
    assert_int_equal(counts.waiting, 6); /* not what is only told when asked for */
    placement_tick(*state);
    assert_int_equal(told_count, 0);
    settle(*state);
    assert_int_equal(kernel.set[3], FOLLOWING);
    memmove(&kernel.set[3], &kernel.set[4], 2 * sizeof kernel.set[0]);
    kernel.set_count--;
    check_set(&places, (const size_t[]){0, 1, 2, 4, 3}, 5);
    kernel.set_count++;
    assert_int_equal(told_count, 1);
    assert_int_equal(told[0].library, 1);
    assert_int_equal(told[0].probes, 6);
    assert_int_equal(told[0].failed, 0);
    assert_true(told[0].at_ns != 0);
    placement_tick(*state);
    assert_int_equal(told_count, 1);
}

static void what_cannot_be_set_is_counted(void **state)
{
    const struct library_places places = some_places();
    struct placement_counts counts;
    kernel.unsettable = (int)places.places[2].spec;
    assert_int_equal(placement_attach(*state, 9, file, &places), 0);
    settle(*state);
    placement_count(*state, &counts);
    assert_int_equal(counts.failed, 1);
    assert_int_equal(told[0].library, 9);
    assert_int_equal(told[0].probes, 5);
    assert_int_equal(told[0].failed, 1);
}

static void a_duty_comes_and_goes(void **state)
{
    const struct library_places places = some_places();
    assert_int_equal(placement_attach(*state, 1, file, &places), 0);
    assert_false(placement_is_complete(*state, DUTY_RETURN));
    placement_set_duty(*state, DUTY_RETURN, false);
    settle(*state);
    check_set(&places, (const size_t[]){0, 1, 2, 4}, 4);
    assert_int_equal(told_count, 1); /* what was cancelled is heard of */
    placement_set_duty(*state, DUTY_DETAIL, true);
    placement_set_duty(*state, DUTY_RETURN, true);
    settle(*state);
    check_set(&places, (const size_t[]){0, 1, 2, 4, 5, 3}, 6);
    assert_true(placement_is_complete(*state, DUTY_RETURN));
    placement_set_duty(*state, DUTY_RETURN, false);
    assert_false(placement_is_complete(*state, DUTY_RETURN));
    settle(*state);
    assert_int_equal(kernel.gone_count, 1);
    placement_set_duty(*state, DUTY_ALWAYS, false);
    settle(*state);
    assert_int_equal(kernel.gone_count, 1);
}

static void places_of_the_kernel_go_with_their_duty(void **state)
{
    assert_int_equal(placement_add_own(*state, OWN), 0);
    assert_int_equal(placement_add_own(*state, OWN + 1), 0);
    placement_set_duty(*state, DUTY_DELAY, true);
    assert_int_equal(placement_waiting(*state, DUTY_DELAY), 2);
    settle(*state);
    assert_true(placement_is_complete(*state, DUTY_DELAY));
    assert_int_equal(kernel.set[0], OWN);
    placement_set_duty(*state, DUTY_DELAY, false);
    settle(*state);
    assert_int_equal(kernel.gone_count, 2);
}

/* What becomes of an older following says nothing of this one. */
static void followings_are_apart(void **state)
{
    struct attachment followed = {.program = UNSETTABLE, .file = file, .offsets = &(uint64_t){8}, .offsets_count = 1};
    kernel.unsettable = UNSETTABLE;
    assert_int_equal(placement_follow(*state, &followed), 0);
    placement_end_following(*state);
    followed.program = FOLLOWING;
    assert_int_equal(placement_follow(*state, &followed), 0);
    settle(*state);
    assert_int_equal(placement_followed(*state), 0);
    placement_end_following(*state);
    followed.program = UNSETTABLE;
    assert_int_equal(placement_follow(*state, &followed), 0);
    assert_int_equal(placement_followed(*state), 1);
    settle(*state);
    assert_int_equal(placement_followed(*state), -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_names_a_job_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_set_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_duty_comes_and_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(places_of_the_kernel_go_with_their_duty, setup, teardown),
        cmocka_unit_test_setup_teardown(followings_are_apart, setup, teardown),
    };
    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
