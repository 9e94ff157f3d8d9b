/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From set-up messages to sockets. The requests are NCCL's struct setupReq, field by field: 2.13 tpRank, tpLocalRank,
 * tpRemoteRank, shared, netDev, useGdr, channelId, connIndex; from 2.18 with needFlush before the channel; from 2.30
 * with sameDevice at the end.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "host/tracker/proxy.h"

#define PID 100
#define TID 101

static int setup(void **state)
{
    return proxy_table_create((struct proxy_table **)state, 64);
}

static int teardown(void **state)
{
    proxy_table_destroy((struct proxy_table **)state);
    return 0;
}

static struct event_proxy_message message(uint32_t type, uint64_t connection, const void *request, size_t request_bytes)
{
    struct event_proxy_message event = {.header = {.tgid = PID, .tid = TID},
                                        .connection = connection,
                                        .type = type,
                                        .request_bytes = (uint32_t)request_bytes};
    memcpy(event.request, request, request_bytes < sizeof event.request ? request_bytes : sizeof event.request);
    return event;
}

static void ask(struct proxy_table *table, uint64_t connection, int origin, int far, int channel)
{
    const int request[] = {origin, 0, far, 1, 0, 0, 1, channel, 1};
    const struct event_proxy_message event = message(PROXY_SETUP, connection, request, sizeof request);
    assert_int_equal(proxy_message(table, &event, true), 0);
}

static struct sockaddr_in place(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(0x0a000001)};
}

/* Connect: a handle of 128 bytes that begins with where the receiver listens. */
static void tell_place(struct proxy_table *table, uint64_t connection, uint16_t port)
{
    uint8_t handle[128] = {0};
    const struct sockaddr_in address = place(port);
    memcpy(handle, &address, sizeof address);
    const struct event_proxy_message event = message(PROXY_CONNECT, connection, handle, sizeof handle);
    assert_int_equal(proxy_message(table, &event, true), 0);
}

static void open_socket(struct proxy_table *table, uint32_t what, int socket, int listener, uint16_t port)
{
    struct event_proxy_socket event = {
        .header = {.tgid = PID, .tid = TID}, .what = what, .socket = socket, .listener = listener};
    const struct sockaddr_in address = place(port);
    memcpy(event.address, &address, sizeof address);
    assert_int_equal(proxy_socket(table, &event), 0);
}

static void assert_served(const struct proxy_table *table, int socket, int origin, int far, int channel, int side)
{
    struct proxy_connection connection;
    assert_int_equal(proxy_find(table, TID, socket, &connection), 0);
    assert_int_equal(connection.request.origin_rank, origin);
    assert_int_equal(connection.request.far_rank, far);
    assert_int_equal(connection.request.channel, channel);
    assert_int_equal(connection.side, side);
}

static void assert_unknown(const struct proxy_table *table, int socket)
{
    struct proxy_connection connection;
    assert_int_equal(proxy_find(table, TID, socket, &connection), -ENOENT);
}

static void requests_of_all_versions(void **state)
{
    (void)state;
    const int old[] = {1, 0, 3, 0, 2, 1, 5, 0};
    const int middle[] = {1, 0, 3, 1, 2, 1, 9, 6, 1};
    const int recent[] = {1, 0, 3, 1, 2, 1, 9, 7, 1, 1};
    struct proxy_request request;
    assert_int_equal(proxy_request_decode(old, sizeof old, 32, false, &request), 0);
    assert_int_equal(request.channel, 5);
    assert_false(request.shared);
    assert_int_equal(proxy_request_decode(middle, sizeof middle, 36, true, &request), 0);
    assert_int_equal(request.channel, 6);
    assert_true(request.shared);
    assert_int_equal(proxy_request_decode(recent, sizeof recent, 40, true, &request), 0);
    assert_int_equal(request.channel, 7);
    assert_int_equal(request.origin_rank, 1);
    assert_int_equal(request.far_rank, 3);
    assert_int_equal(proxy_request_decode(recent, sizeof recent, 44, true, &request), -EPROTONOSUPPORT);
    assert_int_equal(proxy_request_decode(middle, 35, 36, true, &request), -EBADMSG);
    assert_int_equal(proxy_request_decode(middle, sizeof middle, 36, false, &request), 0); /* 2.15, 2.16 */
    assert_int_equal(request.channel, 6);
    assert_int_equal(proxy_request_decode(old, sizeof old, 32, true, &request), -EPROTONOSUPPORT);
    const int impossible[] = {1, 0, 3, 2, 2, 1, 9, 6, 1};
    assert_int_equal(proxy_request_decode(impossible, sizeof impossible, 36, true, &request), -EBADMSG);
}

/* RCCL's have a pointer at the end, as long as the fields that NCCL 2.30 has there: what else the library knows tells.
 */
static void requests_of_rccl(void **state)
{
    (void)state;
    const int old[] = {1, 0, 3, 0, 2, 1, 5, 0, 0, 0};
    const int recent[] = {1, 0, 3, 1, 2, 1, 0, 6, 1, 0, 0x7f001234, 0x7fff};
    struct proxy_request request;
    assert_int_equal(proxy_request_decode(old, sizeof old, 40, false, &request), 0);
    assert_int_equal(request.channel, 5);
    assert_int_equal(proxy_request_decode(recent, sizeof recent, 48, true, &request), 0);
    assert_int_equal(request.channel, 6);
    assert_int_equal(request.far_rank, 3);
}

/* Two receivers and two senders, set up first and connected later, in another order. */
static void sockets_lead_to_their_requests(void **state)
{
    ask(*state, 0xa0, 2, 0, 0);
    open_socket(*state, PROXY_SOCKET_LISTEN, 10, 0, 0);
    ask(*state, 0xa1, 2, 0, 1);
    open_socket(*state, PROXY_SOCKET_LISTEN, 11, 0, 0);
    ask(*state, 0xb0, 2, 1, 0);
    ask(*state, 0xb1, 2, 1, 1);
    tell_place(*state, 0xb1, 5001);
    tell_place(*state, 0xb0, 5000);
    open_socket(*state, PROXY_SOCKET_ACCEPT, 21, 11, 0);
    open_socket(*state, PROXY_SOCKET_CONNECT, 30, 0, 5000);
    open_socket(*state, PROXY_SOCKET_ACCEPT, 20, 10, 0);
    open_socket(*state, PROXY_SOCKET_CONNECT, 31, 0, 5001);
    assert_served(*state, 20, 2, 0, 0, QUEUE_PAIR_SIDE_RECEIVER);
    assert_served(*state, 21, 2, 0, 1, QUEUE_PAIR_SIDE_RECEIVER);
    assert_served(*state, 30, 2, 1, 0, QUEUE_PAIR_SIDE_SENDER);
    assert_served(*state, 31, 2, 1, 1, QUEUE_PAIR_SIDE_SENDER);
}

/* What is not part of a connection is given none, also when its descriptor was one's before. */
static void strange_sockets_serve_nothing(void **state)
{
    ask(*state, 0xb0, 2, 1, 0);
    tell_place(*state, 0xb0, 5000);
    open_socket(*state, PROXY_SOCKET_CONNECT, 30, 0, 5000);
    assert_served(*state, 30, 2, 1, 0, QUEUE_PAIR_SIDE_SENDER);
    open_socket(*state, PROXY_SOCKET_CONNECT, 30, 0, 6000);
    assert_unknown(*state, 30);
    open_socket(*state, PROXY_SOCKET_LISTEN, 12, 0, 0); /* the latest message was no set-up */
    open_socket(*state, PROXY_SOCKET_ACCEPT, 22, 12, 0);
    assert_unknown(*state, 12);
    assert_unknown(*state, 22);
    assert_unknown(*state, 0);
}

/* Another transport's set-up comes between: what listens after it is not for the one before. */
static void other_transports(void **state)
{
    const char other[24] = {0};
    ask(*state, 0xa0, 2, 0, 0);
    const struct event_proxy_message event = message(PROXY_SETUP, 0xa1, other, sizeof other);
    assert_int_equal(proxy_message(*state, &event, true), 0);
    open_socket(*state, PROXY_SOCKET_LISTEN, 10, 0, 0);
    open_socket(*state, PROXY_SOCKET_ACCEPT, 20, 10, 0);
    assert_unknown(*state, 20);
}

/* What the kernel did not let us see leaves a connection unknown, and gives it no other one's channel. */
static void missed_events(void **state)
{
    ask(*state, 0xa0, 2, 0, 0);
    open_socket(*state, PROXY_SOCKET_LISTEN, 10, 0, 0);
    open_socket(*state, PROXY_SOCKET_LISTEN, 11, 0, 0); /* its set-up was missed */
    open_socket(*state, PROXY_SOCKET_ACCEPT, 20, 10, 0);
    open_socket(*state, PROXY_SOCKET_ACCEPT, 21, 11, 0);
    assert_served(*state, 20, 2, 0, 0, QUEUE_PAIR_SIDE_RECEIVER);
    assert_unknown(*state, 21);
    assert_unknown(*state, 10); /* closed by now, and another socket whose accept was missed */
    ask(*state, 0xa2, 2, 0, 2); /* its listen was missed, and the set-up for this one, but not that it was received */
    struct event_proxy_socket listens = {
        .header = {.tgid = PID, .tid = TID}, .what = PROXY_SOCKET_LISTEN, .socket = 12, .receives = 6};
    assert_int_equal(proxy_socket(*state, &listens), 0);
    open_socket(*state, PROXY_SOCKET_ACCEPT, 22, 12, 0);
    assert_unknown(*state, 22);
    ask(*state, 0xb0, 2, 1, 0);
    tell_place(*state, 0xb0, 5000);
    open_socket(*state, PROXY_SOCKET_CONNECT, 30, 0, 5000);
    open_socket(*state, PROXY_SOCKET_CONNECT, 31, 0, 5000); /* the place is another's now; that was missed */
    assert_served(*state, 30, 2, 1, 0, QUEUE_PAIR_SIDE_SENDER);
    assert_unknown(*state, 31);
}

static void ends(void **state)
{
    ask(*state, 0xa0, 2, 0, 0);
    open_socket(*state, PROXY_SOCKET_LISTEN, 10, 0, 0);
    open_socket(*state, PROXY_SOCKET_ACCEPT, 20, 10, 0);
    proxy_forget_thread(*state, TID + 1);
    proxy_forget_process(*state, PID + 1);
    assert_served(*state, 20, 2, 0, 0, QUEUE_PAIR_SIDE_RECEIVER);
    proxy_forget_thread(*state, TID);
    assert_int_equal(proxy_count(*state), 0);
    ask(*state, 0xa0, 2, 0, 0);
    proxy_forget_process(*state, PID);
    assert_int_equal(proxy_count(*state), 0);
}

static void a_full_table_says_so(void **state)
{
    const int request[] = {1, 0, 3, 1, 2, 1, 9, 6, 1};
    int error = 0;
    for (uint64_t i = 0; i < 64 && error == 0; i++) {
        const struct event_proxy_message event = message(PROXY_SETUP, 0x1000 + i, request, sizeof request);
        error = proxy_message(*state, &event, true);
    }
    assert_int_equal(error, -ENOSPC);
    assert_int_equal(proxy_count(*state), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_all_versions),
        cmocka_unit_test(requests_of_rccl),
        cmocka_unit_test_setup_teardown(sockets_lead_to_their_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(strange_sockets_serve_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(other_transports, setup, teardown),
        cmocka_unit_test_setup_teardown(missed_events, setup, teardown),
        cmocka_unit_test_setup_teardown(ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_table_says_so, setup, teardown),
    };
    return cmocka_run_group_tests_name("proxy", tests, NULL, NULL);
}
