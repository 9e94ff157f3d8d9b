/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/clock.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/link.h"

static uint64_t kernel_ns(clockid_t id)
{
    struct timespec time;

    clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void reads_the_kernels_monotonic_clock(void **state)
{
    uint64_t before_ns = kernel_ns(CLOCK_MONOTONIC), now_ns = clock_now_ns();

    (void)state;
    assert_in_range(now_ns, before_ns, kernel_ns(CLOCK_MONOTONIC));
}

static void reads_three_clocks_within_the_bound(void **state)
{
    const int64_t offset_ns = 7000000000;
    struct record_clock_pair pair;
    uint64_t monotonic_ns = kernel_ns(CLOCK_MONOTONIC), realtime_ns = kernel_ns(CLOCK_REALTIME);
    uint64_t tai_ns = kernel_ns(CLOCK_TAI);

    (void)state;
    clock_read_pair(&pair, offset_ns);
    uint64_t after_ns = kernel_ns(CLOCK_MONOTONIC);
    uint64_t spent_ns = after_ns - monotonic_ns;
    assert_in_range(pair.monotonic_ns, monotonic_ns + offset_ns, after_ns + offset_ns);
    assert_in_range(pair.realtime_ns, realtime_ns, realtime_ns + spent_ns + 1000000);
    assert_in_range(pair.tai_ns, tai_ns, tai_ns + spent_ns + 1000000);
    assert_in_range(pair.bound_ns, 1, spent_ns);
}

static void answers_questions_only(void **state)
{
    const struct clock_question question = {CLOCK_MAGIC, 3, 1000};
    struct clock_answer answer = {.question.number = 1, .reference_boot = 9, .received_ns = 5};
    uint8_t bytes[sizeof question + 1];
    uint64_t before_ns = clock_now_ns();

    (void)state;
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &question, sizeof question);
    assert_int_equal(clock_answer(bytes, sizeof question - 1, &answer), -EBADMSG);
    assert_int_equal(clock_answer(bytes, sizeof question + 1, &answer), -EBADMSG);
    assert_int_equal(clock_answer(bytes, 0, &answer), -EBADMSG);
    assert_int_equal(answer.question.number, 1);
    assert_int_equal(clock_answer(bytes, sizeof question, &answer), 0);
    assert_int_equal(answer.question.number, 3);
    assert_int_equal(answer.question.sent_ns, 1000);
    assert_int_equal(answer.reference_boot, 9);
    assert_int_equal(answer.received_ns, 5);
    assert_in_range(answer.replied_ns, before_ns, clock_now_ns());
    bytes[0] ^= 1;
    assert_int_equal(clock_answer(bytes, sizeof question, &answer), -EBADMSG);
}

/* Its clock is said to be another kernel's, so that it has to be asked. */
static struct clock_server *open_server(const char *url, const char *key_file)
{
    static const struct clock_identity elsewhere = {.kernel_boot = {1}};
    const struct clock_options options = {
        .url = url, .key_file = key_file, .emitter_id = 1, .boot_id = 77, .identity = &elsewhere};
    struct clock_server *server;

    assert_int_equal(clock_server_open(&server, &options), 0);
    return server;
}

static struct clock_client *open_client(const char *url, const char *key_file, int64_t offset_ns)
{
    const struct clock_options options = {
        .url = url, .key_file = key_file, .emitter_id = 2, .boot_id = 2, .offset_ns = offset_ns};
    struct clock_client *client;

    assert_int_equal(clock_client_open(&client, &options), 0);
    return client;
}

/* Takes what comes within a time; each sample must bound the true offset, which is known: one machine, one clock. */
static unsigned check_samples(struct clock_client *client, unsigned time_ms, int64_t offset_ns)
{
    struct record_clock_sample sample = {.header.source = 6};
    uint64_t end_ns = clock_now_ns() + time_ms * 1000000ull;
    unsigned count = 0;

    while (clock_now_ns() < end_ns) {
        scratch_pause_ms(5);
        for (; clock_client_take(client, &sample); count++) {
            assert_int_equal(sample.header.source, 6);
            assert_int_equal(sample.reference_boot, 77);
            assert_true(sample.sent_ns <= sample.returned_ns && sample.received_ns <= sample.replied_ns);
            assert_true((int64_t)(sample.sent_ns - sample.received_ns) <= offset_ns);
            assert_true((int64_t)(sample.returned_ns - sample.replied_ns) >= offset_ns);
            assert_in_range(sample.returned_ns - sample.sent_ns, 0, 100000000);
        }
    }
    return count;
}

static void samples_bound_the_true_offset(void **state)
{
    static const int64_t offsets_ns[] = {0, 7000000000, -7000000000};
    const char *url = scratch_path(state, "ipc://", "clock.sock"), *key = scratch_key(state, "key", '1');
    struct clock_server *server = open_server(url, key);

    for (size_t i = 0; i < 3; i++) {
        struct clock_client *client = open_client(url, key, offsets_ns[i]);
        assert_in_range(check_samples(client, 500, offsets_ns[i]), 3, 51);
        clock_client_close(&client);
        assert_null(client);
    }
    clock_server_close(&server);
    assert_null(server);
}

/* How wide the first sample is that a server with such a clock answers, whose times are 7 s behind the client's. */
static uint64_t width_of_sample(const char *url, const struct clock_identity *identity)
{
    const struct clock_options options = {.url = url, .boot_id = 77, .identity = identity};
    struct clock_client *client = open_client(url, NULL, 7000000000);
    struct record_clock_sample sample = {.reference_boot = 0};
    struct clock_server *server;

    assert_int_equal(clock_server_open(&server, &options), 0);
    for (int i = 0; i < 300 && !clock_client_take(client, &sample); i++)
        scratch_pause_ms(10);
    clock_client_close(&client);
    clock_server_close(&server);
    assert_int_equal(sample.reference_boot, 77);
    assert_true((int64_t)(sample.sent_ns - sample.received_ns) <= 7000000000);
    assert_true((int64_t)(sample.returned_ns - sample.replied_ns) >= 7000000000);
    return sample.returned_ns - sample.sent_ns - (sample.replied_ns - sample.received_ns);
}

static void one_clock_needs_no_measuring(void **state)
{
    const char *url = scratch_path(state, "ipc://", "one.sock");
    struct clock_identity identity;

    clock_identity_read(&identity);
    assert_int_equal(width_of_sample(url, NULL), 0);
    assert_int_equal(width_of_sample(url, &identity), 0);
    identity.time_namespace++;
    assert_in_range(width_of_sample(url, &identity), 1, 100000000);
    clock_identity_read(&identity);
    identity.kernel_boot[15] ^= 1;
    assert_in_range(width_of_sample(url, &identity), 1, 100000000);
}

static void clocks_are_told_apart(void **state)
{
    struct clock_identity unknown = {.time_namespace = 1}, here, again;

    (void)state;
    clock_identity_read(&here);
    clock_identity_read(&again);
    assert_true(clock_identity_same(&here, &again));
    assert_false(clock_identity_same(&unknown, &unknown));
    again.time_namespace++;
    assert_false(clock_identity_same(&here, &again));
}

/* A child in a time namespace of its own: its exit status tells whether it thinks that its clock is ours. */
static void another_time_namespace_is_another_clock(void **state)
{
    struct clock_identity here, there;
    int status;

    (void)state;
    clock_identity_read(&here);
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWTIME) != 0)
            _exit(2);
        pid_t inside = fork();
        if (inside == 0) {
            clock_identity_read(&there);
            _exit(clock_identity_same(&here, &there));
        }
        _exit(waitpid(inside, &status, 0) == inside && WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 2)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void asks_less_often_when_it_has_enough(void **state)
{
    const char *url = scratch_path(state, "ipc://", "often.sock");
    struct clock_server *server = open_server(url, NULL);
    struct clock_client *client = open_client(url, NULL, 0);
    unsigned first_second = check_samples(client, 1000, 0);
    unsigned next_two = check_samples(client, 2000, 0);

    assert_in_range(first_second, 10, 101);
    assert_in_range(next_two, 1, 22);
    clock_client_close(&client);
    clock_server_close(&server);
}

static void counts_questions_without_an_answer(void **state)
{
    struct clock_client *client = open_client(scratch_path(state, "ipc://", "no.sock"), NULL, 0);

    assert_int_equal(check_samples(client, 300, 0), 0);
    assert_in_range(clock_client_missed(client), 2, 31);
    uint64_t began_ns = clock_now_ns();
    clock_client_close(&client);
    assert_in_range(clock_now_ns() - began_ns, 0, 1000000000);
}

static bool wait_for_sample(struct clock_client *client)
{
    for (int i = 0; i < 300; i++)
        if (check_samples(client, 10, 0) > 0)
            return true;
    return false;
}

static void finds_a_server_that_comes_later_or_again(void **state)
{
    const char *url = scratch_path(state, "ipc://", "later.sock");
    struct clock_client *client = open_client(url, NULL, 0);

    assert_int_equal(check_samples(client, 200, 0), 0);
    struct clock_server *server = open_server(url, NULL);
    assert_true(wait_for_sample(client));
    clock_server_close(&server);
    check_samples(client, 100, 0);
    server = open_server(url, NULL);
    assert_true(wait_for_sample(client));
    clock_client_close(&client);
    clock_server_close(&server);
}

static void is_closed_to_strangers(void **state)
{
    const char *url = scratch_path(state, "ipc://", "closed.sock");
    struct clock_server *server = open_server(url, scratch_key(state, "key", '1'));
    struct clock_client *client = open_client(url, scratch_key(state, "other", '2'), 0);
    const struct clock_options options = {.url = "tcp://192.0.2.1:18444"};

    assert_int_equal(check_samples(client, 300, 0), 0);
    clock_client_close(&client);
    client = open_client(url, scratch_key(state, "key", '1'), 0);
    assert_true(wait_for_sample(client));
    clock_client_close(&client);
    clock_server_close(&server);
    assert_int_equal(clock_client_open(&client, &options), -EPERM);
    assert_int_equal(clock_server_open(&server, &options), -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_kernels_monotonic_clock),
        cmocka_unit_test(reads_three_clocks_within_the_bound),
        cmocka_unit_test(answers_questions_only),
        cmocka_unit_test(samples_bound_the_true_offset),
        cmocka_unit_test(one_clock_needs_no_measuring),
        cmocka_unit_test(clocks_are_told_apart),
        cmocka_unit_test(another_time_namespace_is_another_clock),
        cmocka_unit_test(asks_less_often_when_it_has_enough),
        cmocka_unit_test(counts_questions_without_an_answer),
        cmocka_unit_test(finds_a_server_that_comes_later_or_again),
        cmocka_unit_test(is_closed_to_strangers),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
