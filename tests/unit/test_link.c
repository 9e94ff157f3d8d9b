/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/clock.h"

static struct link *open_as(enum link_role role, const char *url, const char *key_file)
{
    static uint64_t next_id = 1;
    const struct link_options options = {role, url, key_file, next_id++, 1};
    struct link *link;

    assert_int_equal(link_open(&link, &options), 0);
    return link;
}

static int open_error(enum link_role role, const char *url, const char *key_file)
{
    const struct link_options options = {role, url, key_file, 1, 1};
    struct link *link = NULL;
    int error = link_open(&link, &options);

    link_close(&link, 0);
    return error;
}

/* Tries until the link takes it: a peer may still be connecting. */
static void send_number(struct link *link, uint64_t number)
{
    for (int i = 0; i < 400 && link_send(link, &number, sizeof number) != 0; i++)
        scratch_pause_ms(5);
}

/* The next number, or UINT64_MAX when none comes in time. */
static uint64_t receive_number(struct link *link, int timeout_ms)
{
    struct pollfd poller = {.fd = link_descriptor(link), .events = POLLIN};
    uint64_t end_ns = clock_now_ns() + (uint64_t)timeout_ms * 1000000, number;
    size_t length;

    while (clock_now_ns() < end_ns) {
        poll(&poller, 1, timeout_ms);
        if (link_receive(link, &number, sizeof number, &length) == 0) {
            assert_int_equal(length, sizeof number);
            return number;
        }
    }
    return UINT64_MAX;
}

static struct link_counts counts_of(const struct link *link)
{
    struct link_counts counts;

    link_counts(link, &counts);
    return counts;
}

static void carries_messages_in_order_on(const char *url, const char *key_file)
{
    struct link *receiver = open_as(LINK_RECEIVE, url, key_file), *sender = open_as(LINK_SEND, url, key_file);

    for (uint64_t i = 0; i < 200; i++) {
        send_number(sender, i);
        assert_int_equal(receive_number(receiver, 2000), i);
    }
    assert_int_equal(counts_of(sender).sent, 200);
    assert_int_equal(counts_of(receiver).received, 200);
    assert_int_equal(counts_of(receiver).rejected, 0);
    assert_int_equal(counts_of(sender).connections, 1);
    assert_int_equal(counts_of(receiver).connections, 1);
    assert_int_equal(link_descriptor(sender), -1);
    link_close(&sender, 0);
    link_close(&receiver, 0);
    assert_null(sender);
}

static void carries_messages_over_every_transport(void **state)
{
    carries_messages_in_order_on(scratch_path(state, "ipc://", "plain.sock"), NULL);
    carries_messages_in_order_on(scratch_path(state, "ipc://", "sealed.sock"), scratch_key(state, "key", '1'));
    carries_messages_in_order_on("tcp://127.0.0.1:18441", NULL);
    carries_messages_in_order_on("tcp://127.0.0.1:18442", scratch_key(state, "key", '1'));
    if (access("/proc/net/if_inet6", R_OK) == 0)
        carries_messages_in_order_on("tcp://[::1]:18445", NULL);
}

static void carries_the_largest_message_and_no_larger(void **state)
{
    const char *url = scratch_path(state, "ipc://", "large.sock"), *key = scratch_key(state, "key", '1');
    struct link *receiver = open_as(LINK_RECEIVE, url, key), *sender = open_as(LINK_SEND, url, key);
    static uint8_t sent[LINK_MESSAGE_BYTES_MAX + 1], got[LINK_MESSAGE_BYTES_MAX];
    size_t length = 0;

    memset(sent, 0xa5, sizeof sent);
    assert_int_equal(link_send(sender, sent, sizeof sent), -EMSGSIZE);
    for (int i = 0; i < 400 && link_send(sender, sent, sizeof got) != 0; i++)
        scratch_pause_ms(5);
    for (int i = 0; i < 400 && link_receive(receiver, got, sizeof got, &length) != 0; i++)
        scratch_pause_ms(5);
    assert_int_equal(length, sizeof got);
    assert_memory_equal(got, sent, sizeof got);
    link_close(&sender, 0);
    link_close(&receiver, 0);
}

static void drops_and_counts_what_does_not_fit_the_reader(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        const char *url = scratch_path(state, "ipc://", sealed ? "fit1.sock" : "fit0.sock");
        const char *key = sealed ? scratch_key(state, "key", '1') : NULL;
        struct link *receiver = open_as(LINK_RECEIVE, url, key), *sender = open_as(LINK_SEND, url, key);
        uint8_t small[4];
        size_t length = 77;
        int error = -EAGAIN;
        send_number(sender, 1);
        for (int i = 0; i < 400 && error == -EAGAIN; i++) {
            scratch_pause_ms(5);
            error = link_receive(receiver, small, sizeof small, &length);
        }
        assert_int_equal(error, -EMSGSIZE);
        assert_int_equal(length, 77);
        send_number(sender, 2);
        assert_int_equal(receive_number(receiver, 2000), 2);
        assert_int_equal(counts_of(receiver).rejected, 1);
        link_close(&sender, 0);
        link_close(&receiver, 0);
    }
}

static void does_not_wait_without_a_receiver(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        const char *key = sealed ? scratch_key(state, "key", '1') : NULL;
        struct link *sender = open_as(LINK_SEND, scratch_path(state, "ipc://", "nobody.sock"), key);
        uint64_t number = 1, began_ns = clock_now_ns();
        for (int i = 0; i < 1000; i++)
            assert_int_equal(link_send(sender, &number, sizeof number), -EAGAIN);
        assert_in_range(clock_now_ns() - began_ns, 0, 1000000000);
        assert_int_equal(counts_of(sender).refused, 1000);
        assert_int_equal(counts_of(sender).sent, 0);
        link_close(&sender, 0);
    }
}

/* A receiver that does not read: the sender is refused at some point, and no message that was taken is lost. */
static void refuses_what_a_slow_receiver_does_not_take(void **state)
{
    const char *url = scratch_path(state, "ipc://", "slow.sock");
    struct link *receiver = open_as(LINK_RECEIVE, url, NULL), *sender = open_as(LINK_SEND, url, NULL);
    static uint64_t message[16 * 1024];
    uint64_t taken = 0, read = 0;
    size_t length;

    send_number(sender, 0);
    assert_int_equal(receive_number(receiver, 2000), 0);
    for (message[0] = 0; message[0] < 200; message[0]++) {
        if (link_send(sender, message, sizeof message) != 0)
            break;
        taken++;
        scratch_pause_ms(1);
    }
    assert_in_range(taken, 1, 199);
    assert_int_equal(counts_of(sender).refused >= 1, 1);
    for (int i = 0; i < 400 && read < taken; i++) {
        while (link_receive(receiver, message, sizeof message, &length) == 0)
            assert_int_equal(message[0], read++);
        scratch_pause_ms(5);
    }
    assert_int_equal(read, taken);
    link_close(&sender, 0);
    link_close(&receiver, 0);
}

static void finds_its_receiver_again(void **state)
{
    const char *url = scratch_path(state, "ipc://", "again.sock");
    struct link *sender = open_as(LINK_SEND, url, NULL);

    for (uint64_t round = 0; round < 3; round++) {
        struct link *receiver = open_as(LINK_RECEIVE, url, NULL);
        uint64_t number = UINT64_MAX;
        for (int i = 0; i < 50 && number == UINT64_MAX; i++) {
            send_number(sender, round);
            number = receive_number(receiver, 100);
        }
        assert_int_equal(number, round);
        assert_int_equal(counts_of(sender).connections, round + 1);
        link_close(&receiver, 0);
        scratch_pause_ms(50);
    }
    link_close(&sender, 0);
}

/* A peer that hangs up at once is called again after 20 ms at the soonest: 50 times a second. */
static void does_not_storm_a_peer_that_hangs_up(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(18447)};
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct pollfd poller = {.fd = listener, .events = POLLIN};
    unsigned calls = 0;

    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    struct link *sender = open_as(LINK_SEND, "tcp://127.0.0.1:18447", NULL);
    for (uint64_t end_ns = clock_now_ns() + 1000000000; clock_now_ns() < end_ns;) {
        if (poll(&poller, 1, 10) != 1)
            continue;
        close(accept(listener, NULL, NULL));
        calls++;
    }
    assert_in_range(calls, 2, 52);
    link_close(&sender, 0);
    close(listener);
}

static void rejects_a_sender_with_another_key(void **state)
{
    const char *url = scratch_path(state, "ipc://", "key.sock");
    struct link *receiver = open_as(LINK_RECEIVE, url, scratch_key(state, "good", '1'));
    struct link *stranger = open_as(LINK_SEND, url, scratch_key(state, "bad", '2'));
    struct link *open_sender = open_as(LINK_SEND, url, NULL);
    struct link *friend = open_as(LINK_SEND, url, scratch_key(state, "good", '1'));

    send_number(stranger, 1);
    send_number(open_sender, 2);
    scratch_pause_ms(50);
    send_number(friend, 3);
    assert_int_equal(receive_number(receiver, 2000), 3);
    assert_int_equal(receive_number(receiver, 50), UINT64_MAX);
    assert_int_equal(counts_of(receiver).rejected, 2);
    assert_int_equal(counts_of(receiver).received, 1);
    link_close(&stranger, 0);
    link_close(&open_sender, 0);
    link_close(&friend, 0);
    link_close(&receiver, 0);
}

/* Hears a sealed message as a stranger on the path does, and sends it again, whole and changed. */
static void rejects_a_message_heard_before(void **state)
{
    const char *tap_url = scratch_path(state, "ipc://", "tap.sock"), *url = scratch_path(state, "ipc://", "true.sock");
    const char *key = scratch_key(state, "good", '1');
    struct link *sender = open_as(LINK_SEND, tap_url, key), *tap = open_as(LINK_RECEIVE, tap_url, NULL);
    struct link *receiver = open_as(LINK_RECEIVE, url, key), *stranger = open_as(LINK_SEND, url, NULL);
    uint8_t sealed[256];
    size_t length = 0;

    send_number(sender, 5);
    for (int i = 0; i < 400 && link_receive(tap, sealed, sizeof sealed, &length) != 0; i++)
        scratch_pause_ms(5);
    assert_int_equal(length, sizeof(uint64_t) + 40);
    for (int i = 0; i < 400 && link_send(stranger, sealed, length) != 0; i++)
        scratch_pause_ms(5);
    assert_int_equal(receive_number(receiver, 2000), 5);
    assert_int_equal(link_send(stranger, sealed, length), 0);
    assert_int_equal(receive_number(receiver, 100), UINT64_MAX);
    assert_int_equal(counts_of(receiver).rejected, 1);
    sealed[length - 1] ^= 1;
    assert_int_equal(link_send(stranger, sealed, length), 0);
    assert_int_equal(receive_number(receiver, 100), UINT64_MAX);
    assert_int_equal(counts_of(receiver).rejected, 2);
    link_close(&sender, 0);
    link_close(&tap, 0);
    link_close(&stranger, 0);
    link_close(&receiver, 0);
}

static void does_not_leave_the_machine_without_a_key(void **state)
{
    const char *key = scratch_key(state, "good", '1');

    for (int role = LINK_SEND; role <= LINK_ANSWER; role++) {
        assert_int_equal(open_error((enum link_role)role, "tcp://192.0.2.1:18443", NULL), -EPERM);
        assert_int_equal(open_error((enum link_role)role, "tcp://*:18443", NULL), -EPERM);
        assert_int_equal(open_error((enum link_role)role, "tcp://0.0.0.0:18443", NULL), -EPERM);
        assert_int_equal(open_error((enum link_role)role, "tcp://[2001:db8::1]:18443", NULL), -EPERM);
        assert_int_equal(open_error((enum link_role)role, "tcp://localhost.example.com:18443", NULL), -EPERM);
        assert_int_equal(open_error((enum link_role)role, "tcp://eth0;127.0.0.1:18443", NULL), -EPERM);
    }
    assert_int_equal(open_error(LINK_SEND, "tcp://127.0.0.1:18443", NULL), 0);
    assert_int_equal(open_error(LINK_SEND, "tcp://192.0.2.1:18443", key), 0);
    assert_int_equal(open_error(LINK_RECEIVE, "tcp://*:18443", key), 0);
    assert_int_equal(open_error(LINK_RECEIVE, "tcp://*:18443", scratch_path(state, "", "no key")), -ENOENT);
}

static void refuses_bad_urls(void **state)
{
    assert_int_equal(open_error(LINK_SEND, "http://127.0.0.1:80", NULL), -EINVAL);
    assert_int_equal(open_error(LINK_SEND, "/run/qpscope.sock", NULL), -EINVAL);
    assert_int_equal(open_error(LINK_SEND, "", NULL), -EINVAL);
    assert_int_equal(open_error(LINK_SEND, "tcp://127.0.0.1", NULL), -EINVAL);
    assert_int_equal(open_error(LINK_SEND, "tcp://:5", NULL), -EINVAL);
    assert_int_equal(open_error(LINK_RECEIVE, scratch_path(state, "ipc://", "none/such.sock"), NULL), -ENOENT);
}

static void says_when_the_place_is_taken(void **state)
{
    const char *url = scratch_path(state, "ipc://", "taken.sock");
    struct link *receiver = open_as(LINK_RECEIVE, url, NULL);

    assert_int_equal(open_error(LINK_RECEIVE, url, NULL), -EADDRINUSE);
    link_close(&receiver, 0);
    assert_int_equal(open_error(LINK_RECEIVE, url, NULL), 0);
}

/* The file of a program that was killed is no obstacle. */
static void takes_over_a_dead_socket(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int dead = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", scratch_path(state, "", "dead.sock"));
    assert_int_equal(bind(dead, (struct sockaddr *)&address, sizeof address), 0);
    close(dead);
    carries_messages_in_order_on(scratch_path(state, "ipc://", "dead.sock"), NULL);
}

/* Connects without nanomsg and says these bytes; the descriptor is left open. */
static int say_raw(int family, const void *address, socklen_t address_bytes, const void *bytes, size_t length_bytes)
{
    int raw = socket(family, SOCK_STREAM, 0);

    assert_int_equal(connect(raw, address, address_bytes), 0);
    assert_int_equal(send(raw, bytes, length_bytes, MSG_NOSIGNAL), length_bytes);
    return raw;
}

static int say_raw_local(const char *path, const void *bytes, size_t length_bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return say_raw(AF_UNIX, &address, sizeof address, bytes, length_bytes);
}

static int say_raw_tcp(uint16_t port, const void *bytes, size_t length_bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return say_raw(AF_INET, &address, sizeof address, bytes, length_bytes);
}

struct raw_words {
    const char *bytes;
    size_t length;
};
#define RAW_WORDS 8

/* After strangers have spoken, and after they hung up, the link still works. */
static void check_link_beside(const char *url, const char *key_file, struct link *receiver, const int raw[RAW_WORDS])
{
    scratch_pause_ms(50);
    struct link *sender = open_as(LINK_SEND, url, key_file);
    send_number(sender, 9);
    assert_int_equal(receive_number(receiver, 2000), 9);
    for (size_t i = 0; i < RAW_WORDS; i++)
        close(raw[i]);
    scratch_pause_ms(50);
    send_number(sender, 10);
    assert_int_equal(receive_number(receiver, 2000), 10);
    link_close(&sender, 0);
}

/* The protocol header of a PUSH; over ipc, a byte 1 ("message") and a 64-bit length follow, over tcp the length. */
#define PUSH_HEADER "\0SP\0\0\x50\0\0"

static void survives_strangers_on_a_local_socket(void **state)
{
    static const struct raw_words words[RAW_WORDS] = {
        {"GET / HTTP/1.0\r\n\r\n", 18},
        {"\0", 1},
        {PUSH_HEADER, 8},
        {"\0SP\0\0\x30\0\0", 8},                                       /* not a PUSH, but a REQ */
        {PUSH_HEADER "\x01\x7f\xff\xff\xff\xff\xff\xff\xff", 17},      /* 2^63 - 1 bytes will come */
        {PUSH_HEADER "\x01\xff\xff\xff\xff\xff\xff\xff\xff", 17},      /* 2^64 - 1 bytes will come */
        {PUSH_HEADER "\x01\0\0\0\0\0\x10\0\0 half a message", 8 + 24}, /* 1 MiB, above the limit */
        {PUSH_HEADER "\x01\0\0\0\0\0\0\x10\0 half a message", 8 + 24}, /* 4 KiB that never come */
    };
    const char *url = scratch_path(state, "ipc://", "open.sock");
    struct link *receiver = open_as(LINK_RECEIVE, url, NULL);
    int raw[RAW_WORDS];

    for (size_t i = 0; i < RAW_WORDS; i++)
        raw[i] = say_raw_local(scratch_path(state, "", "open.sock"), words[i].bytes, words[i].length);
    check_link_beside(url, NULL, receiver, raw);
    link_close(&receiver, 0);
}

static void survives_strangers_on_a_tcp_port(void **state)
{
    static const struct raw_words words[RAW_WORDS] = {
        {"GET / HTTP/1.0\r\n\r\n", 18},
        {"\0", 1},
        {PUSH_HEADER, 8},
        {"\0SP\0\0\x30\0\0", 8},
        {PUSH_HEADER "\x7f\xff\xff\xff\xff\xff\xff\xff", 16},
        {PUSH_HEADER "\0\0\0\0\0\0\0\0", 16}, /* an empty message: does not open */
        {PUSH_HEADER "\0\0\0\0\0\x10\0\0 half a message", 8 + 23},
        {PUSH_HEADER "\0\0\0\0\0\0\0\x08 8 bytes", 8 + 16}, /* a short message: does not open */
    };
    const char *url = "tcp://127.0.0.1:18446", *key = scratch_key(state, "key", '1');
    struct link *receiver = open_as(LINK_RECEIVE, url, key);
    int raw[RAW_WORDS];

    for (size_t i = 0; i < RAW_WORDS; i++)
        raw[i] = say_raw_tcp(18446, words[i].bytes, words[i].length);
    check_link_beside(url, key, receiver, raw);
    assert_int_equal(counts_of(receiver).rejected, 2);
    link_close(&receiver, 0);
}

static void asks_and_answers(void **state)
{
    const char *url = scratch_path(state, "ipc://", "ask.sock"), *key = scratch_key(state, "key", '1');
    struct link *answerer = open_as(LINK_ANSWER, url, key), *asker = open_as(LINK_ASK, url, key);

    for (uint64_t i = 0; i < 20; i++) {
        send_number(asker, i);
        assert_int_equal(receive_number(answerer, 2000), i);
        send_number(answerer, i + 100);
        assert_int_equal(receive_number(asker, 2000), i + 100);
    }
    link_close(&asker, 0);
    link_close(&answerer, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_messages_over_every_transport),
        cmocka_unit_test(carries_the_largest_message_and_no_larger),
        cmocka_unit_test(drops_and_counts_what_does_not_fit_the_reader),
        cmocka_unit_test(does_not_wait_without_a_receiver),
        cmocka_unit_test(refuses_what_a_slow_receiver_does_not_take),
        cmocka_unit_test(finds_its_receiver_again),
        cmocka_unit_test(does_not_storm_a_peer_that_hangs_up),
        cmocka_unit_test(rejects_a_sender_with_another_key),
        cmocka_unit_test(rejects_a_message_heard_before),
        cmocka_unit_test(does_not_leave_the_machine_without_a_key),
        cmocka_unit_test(refuses_bad_urls),
        cmocka_unit_test(says_when_the_place_is_taken),
        cmocka_unit_test(takes_over_a_dead_socket),
        cmocka_unit_test(survives_strangers_on_a_local_socket),
        cmocka_unit_test(survives_strangers_on_a_tcp_port),
        cmocka_unit_test(asks_and_answers),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
