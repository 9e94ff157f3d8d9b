/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes set and taken away by a thread of its own, on a stand-in for the kernel that lets one of them through when it
 * is told to: the order, what is cancelled, what is taken back, and that nobody waits for it.
 */
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

#include "host/probe/attacher.h"

#define DONE_MAX 64
#define FREE     1000000

/* What was done, in its order: 'S' and 'L', and the program or link. Links are the program's number plus 100. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int allowed; /* so many more may be done */
    bool inside; /* the thread waits to be let through */
    int refused; /* this program cannot be set */
    char what[DONE_MAX];
    int which[DONE_MAX];
    size_t count;
    size_t together; /* the most that were let go by one call */
} kernel = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static struct attacher_result results[DONE_MAX];
static size_t results_count;
static int file;

static void do_one(char what, int which)
{
    pthread_mutex_lock(&kernel.lock);
    kernel.inside = true;
    pthread_cond_broadcast(&kernel.wake);
    while (kernel.allowed == 0)
        pthread_cond_wait(&kernel.wake, &kernel.lock);
    kernel.inside = false;
    kernel.allowed--;
    kernel.what[kernel.count] = what;
    kernel.which[kernel.count++] = which;
    pthread_cond_broadcast(&kernel.wake);
    pthread_mutex_unlock(&kernel.lock);
}

static int set(void *context, const struct attachment *attachment)
{
    (void)context;
    do_one('S', attachment->program);
    return attachment->program == kernel.refused ? -EIO : attachment->program + 100;
}

static void let_go(void *context, const int *links, size_t count)
{
    (void)context;
    kernel.together = count > kernel.together ? count : kernel.together;
    for (size_t i = 0; i < count; i++)
        do_one('L', links[i] - 100);
}

/* Lets so many through, and waits until they are done. */
static void allow(int count)
{
    pthread_mutex_lock(&kernel.lock);
    const size_t until = kernel.count + (size_t)count;
    kernel.allowed += count;
    pthread_cond_broadcast(&kernel.wake);
    while (kernel.count < until)
        pthread_cond_wait(&kernel.wake, &kernel.lock);
    pthread_mutex_unlock(&kernel.lock);
}

static void allow_all(void)
{
    pthread_mutex_lock(&kernel.lock);
    kernel.allowed = FREE;
    pthread_cond_broadcast(&kernel.wake);
    pthread_mutex_unlock(&kernel.lock);
}

/* Until the thread has the next in its hands. */
static void wait_inside(void)
{
    pthread_mutex_lock(&kernel.lock);
    while (!kernel.inside)
        pthread_cond_wait(&kernel.wake, &kernel.lock);
    pthread_mutex_unlock(&kernel.lock);
}

static void check_done(const char *expected)
{
    char text[3 * DONE_MAX + 1] = "";
    size_t length = 0;
    pthread_mutex_lock(&kernel.lock);
    for (size_t i = 0; i < kernel.count; i++) {
        text[length++] = kernel.what[i];
        text[length++] = (char)('0' + kernel.which[i]);
        text[length++] = ' ';
    }
    pthread_mutex_unlock(&kernel.lock);
    text[length == 0 ? 0 : length - 1] = '\0';
    assert_string_equal(text, expected);
}

static void hear(void *context, const struct attacher_result *result)
{
    (void)context;
    results[results_count++] = *result;
}

/* Until so many results are there. */
static void hear_until(struct attacher *attacher, size_t count)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int tries = 0; results_count < count && tries < 5000; tries++) {
        attacher_read(attacher, hear, NULL);
        nanosleep(&pause, NULL);
    }
    assert_int_equal(results_count, count);
}

static int make(void **state, bool multiple)
{
    const struct attacher_options options = {set, let_go, NULL, multiple};
    kernel.allowed = 0;
    kernel.refused = -1;
    kernel.count = kernel.together = results_count = 0;
    file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return file < 0 ? -1 : attacher_create((struct attacher **)state, &options);
}

static int setup(void **state)
{
    return make(state, false);
}

static int setup_multiple(void **state)
{
    return make(state, true);
}

static int teardown(void **state)
{
    allow_all();
    attacher_destroy((struct attacher **)state);
    return close(file);
}

static void add(struct attacher *attacher, unsigned group, unsigned urgency, int program)
{
    const uint64_t offset = 64;
    const struct attacher_order order = {
        .group = group,
        .urgency = urgency,
        .number = (uint64_t)program + 1000,
        .attachment = {.program = program, .file = file, .offsets = &offset, .offsets_count = 1},
    };
    assert_int_equal(attacher_add(attacher, &order), 0);
}

static void the_urgent_come_first(void **state)
{
    add(*state, 0, 0, 9);
    wait_inside();
    add(*state, 1, 5, 1);
    add(*state, 0, 2, 2);
    add(*state, 1, 5, 3);
    add(*state, 0, 2, 4);
    add(*state, 0, 1, 5);
    assert_int_equal(attacher_waiting(*state, 0), 4);
    assert_int_equal(attacher_waiting(*state, 1), 2);
    allow(6);
    check_done("S9 S5 S2 S4 S1 S3");
    hear_until(*state, 6);
    assert_int_equal(attacher_waiting(*state, 0), 0);
    assert_int_equal(results[1].number, 1005);
    for (size_t i = 0; i < 6; i++)
        assert_true(results[i].error == 0 && results[i].places == 1 && results[i].at_ns != 0);
}

/* None of the calls waits for the kernel, which does nothing here until it is allowed to. */
static void what_is_set_goes_before_what_leaves(void **state)
{
    for (int program = 1; program <= 3; program++)
        add(*state, 0, 0, program);
    allow(3);
    hear_until(*state, 3);
    attacher_clear(*state, 0);
    wait_inside();
    assert_int_equal(attacher_leaving(*state), 3);
    add(*state, 1, 0, 4);
    add(*state, 1, 0, 5);
    allow(1);
    wait_inside();
    assert_int_equal(attacher_leaving(*state), 2);
    allow(4);
    check_done("S1 S2 S3 L1 S4 S5 L2 L3");
    assert_int_equal(kernel.together, 1);
}

static void what_waits_is_dropped(void **state)
{
    add(*state, 0, 0, 1);
    wait_inside();
    add(*state, 0, 1, 2);
    add(*state, 1, 2, 3);
    attacher_clear(*state, 0);
    assert_int_equal(attacher_waiting(*state, 0), 0);
    assert_int_equal(attacher_waiting(*state, 1), 1);
    allow(3);
    hear_until(*state, 3);
    check_done("S1 S3 L1");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(results[i].error, results[i].number == 1003 ? 0 : -ECANCELED);
}

static void what_cannot_be_set_is_told(void **state)
{
    kernel.refused = 2;
    add(*state, 0, 0, 1);
    add(*state, 0, 0, 2);
    allow(2);
    hear_until(*state, 2);
    assert_int_equal(results[0].error, 0);
    assert_int_equal(results[1].error, -EIO);
    attacher_clear(*state, 0);
    allow(1);
    check_done("S1 S2 L1");
}

/* Two links at one place would have everything told twice. */
static void what_is_wanted_again_stays(void **state)
{
    add(*state, 0, 0, 9);
    for (int program = 1; program <= 3; program++)
        add(*state, 1, 1, program);
    allow(4);
    hear_until(*state, 4);
    attacher_clear(*state, 0); /* keeps the thread busy */
    wait_inside();
    attacher_clear(*state, 1);
    add(*state, 1, 1, 3);
    add(*state, 1, 1, 4);
    hear_until(*state, 5); /* before the kernel did anything */
    assert_int_equal(results[4].number, 1003);
    assert_int_equal(results[4].error, 0);
    allow(4);
    check_done("S9 S1 S2 S3 L9 S4 L1 L2");
    attacher_clear(*state, 1);
    allow(2);
    check_done("S9 S1 S2 S3 L9 S4 L1 L2 L3 L4");
}

static void what_was_cancelled_in_its_hands_is_wanted_again(void **state)
{
    add(*state, 0, 0, 1);
    wait_inside();
    attacher_clear(*state, 0);
    add(*state, 0, 0, 1);
    assert_int_equal(attacher_waiting(*state, 0), 1);
    allow(1);
    hear_until(*state, 1);
    assert_int_equal(results[0].error, 0);
    check_done("S1");
    assert_int_equal(attacher_leaving(*state), 0);
}

static void many_leave_together(void **state)
{
    for (int program = 1; program <= 9; program++)
        add(*state, program == 1 ? 0 : 1, 0, program);
    allow(9);
    hear_until(*state, 9);
    attacher_clear(*state, 0);
    wait_inside();
    attacher_clear(*state, 1);
    allow(9);
    assert_true(kernel.together >= 8);
}

static void the_end_takes_all_away(void **state)
{
    struct attacher *attacher = *state;
    for (int program = 1; program <= 3; program++)
        add(attacher, 0, 0, program);
    allow(2);
    allow_all();
    attacher_destroy(&attacher);
    *state = NULL;
    size_t set_count = 0;
    size_t left_count = 0;
    for (size_t i = 0; i < kernel.count; i++) {
        set_count += kernel.what[i] == 'S';
        left_count += kernel.what[i] == 'L';
    }
    assert_true(set_count >= 2);
    assert_int_equal(set_count, left_count);
}

/* The file may be closed as soon as it is ordered. */
static void the_file_is_held(void **state)
{
    const uint64_t offset = 0;
    struct attacher_order order = {.attachment = {.program = 1, .offsets = &offset, .offsets_count = 1}};
    order.attachment.file = -2;
    assert_int_equal(attacher_add(*state, &order), 0); /* none: a place of the kernel's */
    order.attachment.file = 1 << 20;
    assert_int_equal(attacher_add(*state, &order), -EBADF);
    order.attachment.file = dup(file);
    assert_int_equal(attacher_add(*state, &order), 0);
    close(order.attachment.file);
    allow(2);
    hear_until(*state, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_urgent_come_first, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_set_goes_before_what_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(what_waits_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_set_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wanted_again_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_cancelled_in_its_hands_is_wanted_again, setup, teardown),
        cmocka_unit_test_setup_teardown(many_leave_together, setup_multiple, teardown),
        cmocka_unit_test_setup_teardown(the_end_takes_all_away, setup, teardown),
        cmocka_unit_test_setup_teardown(the_file_is_held, setup, teardown),
    };
    return cmocka_run_group_tests_name("attacher", tests, NULL, NULL);
}
