/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages on their way to several workers: each gets each of them whole, with and without a key. */
#include "nic/relay.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/link.h"

#define WORKERS  3
#define MESSAGES 4

/* Waits for a message while the relay works. */
static size_t receive(struct relay *relay, struct link *link, char *text, size_t capacity)
{
    size_t length = 0;

    for (int i = 0; i < 2500 && link_receive(link, text, capacity, &length) != 0; i++) {
        relay_tick(relay);
        scratch_pause_ms(2);
    }
    return length;
}

static void relay_all(void **state, const char *key_file)
{
    const char *url = scratch_path(state, "ipc://", "control");
    char own[RELAY_URL_BYTES], text[64];
    struct link *workers[WORKERS], *asker;
    struct relay *relay = NULL;

    assert_int_equal(relay_open(&relay, url, key_file, WORKERS), 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        relay_url(own, i);
        const struct link_options options = {.role = LINK_RECEIVE, .url = own, .key_file = key_file};
        assert_int_equal(link_open(&workers[i], &options), 0);
    }
    const struct link_options options = {
        .role = LINK_SEND, .url = url, .key_file = key_file, .emitter_id = 7, .boot_id = 8};
    assert_int_equal(link_open(&asker, &options), 0);
    for (int message = 0; message < MESSAGES; message++) {
        char sent[64];
        snprintf(sent, sizeof sent, "windows of step %d", message);
        for (int i = 0; i < 2500 && link_send(asker, sent, strlen(sent)) == -EAGAIN; i++)
            scratch_pause_ms(2);
        for (unsigned i = 0; i < WORKERS; i++) {
            assert_int_equal(receive(relay, workers[i], text, sizeof text), strlen(sent));
            assert_memory_equal(text, sent, strlen(sent));
        }
    }
    link_close(&asker, 0);
    relay_close(&relay);
    for (unsigned i = 0; i < WORKERS; i++)
        link_close(&workers[i], 0);
}

static void test_open_links(void **state)
{
    relay_all(state, NULL);
}

static void test_sealed_links(void **state)
{
    relay_all(state, scratch_key(state, "key", '5'));
}

static void test_refusals(void **state)
{
    struct relay *relay = NULL;

    (void)state;
    assert_int_equal(relay_open(&relay, "http://nowhere", NULL, 2), -EINVAL);
    assert_null(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_links),
        cmocka_unit_test(test_sealed_links),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests_name("relay", tests, scratch_setup, scratch_teardown);
}
