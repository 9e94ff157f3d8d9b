/* SPDX-License-Identifier: BSD-2-Clause */
/* The server is asked over real sockets, byte by byte where that matters (RFC 9112, and HTML's server-sent events). */
#include "wire/http/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/clock.h"
#include "wire/http/http_address.h"
#include "wire/log.h"

#define BIG_BYTES  (8u << 20)
#define REPLY_MAX  8192
#define WAIT_MS    5000
#define SOON_MS    100
#define SILENCE_MS 1000 /* of the server under test */

static atomic_int released;

static void release(void *owner)
{
    free(owner);
    atomic_fetch_add(&released, 1);
}

static void answer_hello(void *context, const struct http_request *request, struct http_reply *reply)
{
    (void)request;
    http_reply_text(reply, 200, context);
}

/* "PATH name=VALUE number=NUMBER agent=AGENT" */
static void answer_echo(void *context, const struct http_request *request, struct http_reply *reply)
{
    char *text = malloc(1024);
    const char *name = http_request_query(request, "name");
    uint64_t number;
    bool good = http_request_number(request, "number", 7, &number);

    (void)context;
    assert_non_null(text);
    int length = snprintf(text, 1024, "%s name=%s number=%s%llu agent=%s", http_request_path(request),
                          name == NULL ? "none" : name, good ? "" : "bad ", (unsigned long long)number,
                          http_request_header(request, "User-Agent"));
    reply->bytes = text;
    reply->length_bytes = (size_t)length;
    reply->release = release;
    reply->owner = text;
}

static void answer_big(void *context, const struct http_request *request, struct http_reply *reply)
{
    char *bytes = malloc(BIG_BYTES);

    (void)context;
    (void)request;
    assert_non_null(bytes);
    memset(bytes, 'x', BIG_BYTES);
    *reply = (struct http_reply){
        .status = 200, .type = "text/x", .bytes = bytes, .length_bytes = BIG_BYTES, .release = release, .owner = bytes};
}

static atomic_int held;    /* handlers that wait */
static atomic_bool let_go; /* they go on */

/* A query that takes as long as the test wants. */
static void answer_held(void *context, const struct http_request *request, struct http_reply *reply)
{
    atomic_fetch_add(&held, 1);
    while (!atomic_load(&let_go))
        scratch_pause_ms(1);
    atomic_fetch_sub(&held, 1);
    answer_echo(context, request, reply);
}

static char hello[] = "hello\n";
static const char *const names[] = {"node1", "qpscope.example.org"};
static const struct http_route routes[] = {
    {.path = "/hello", .answer = answer_hello, .context = hello},
    {.path = "/big", .answer = answer_big},
    {.path = "/events", .events = true},
    {.path = "/echo/*", .answer = answer_echo},
    {.path = "/held/*", .answer = answer_held, .slow = true},
    {.path = "/slow-big", .answer = answer_big, .slow = true},
};

static int setup(void **state)
{
    const struct http_options options = {.address = "127.0.0.1:0",
                                         .routes = routes,
                                         .routes_count = sizeof routes / sizeof routes[0],
                                         .names = names,
                                         .names_count = 2,
                                         .connections_max = 6,
                                         .silence_s = 1};
    struct http_server *server = NULL;

    atomic_store(&released, 0);
    atomic_store(&let_go, false);
    assert_int_equal(http_server_open(&server, &options), 0);
    *state = server;
    return 0;
}

static int teardown(void **state)
{
    struct http_server *server = *state;

    atomic_store(&let_go, true);
    http_server_close(&server);
    assert_null(server);
    return 0;
}

static int call(void **state)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(http_server_port(*state)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(descriptor >= 0);
    assert_int_equal(connect(descriptor, (const struct sockaddr *)&address, sizeof address), 0);
    return descriptor;
}

static void say(int descriptor, const char *text)
{
    assert_int_equal(send(descriptor, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* What comes within the time until `until` is in it, or the server closes. */
static size_t hear(int descriptor, char *bytes, size_t capacity_bytes, const char *until, int wait_ms)
{
    uint64_t end_ns = clock_now_ns() + (uint64_t)wait_ms * 1000000;
    size_t length = 0;

    bytes[0] = '\0';
    while (length + 1 < capacity_bytes && clock_now_ns() < end_ns && (until == NULL || strstr(bytes, until) == NULL)) {
        struct pollfd poller = {.fd = descriptor, .events = POLLIN};
        if (poll(&poller, 1, 20) <= 0)
            continue;
        ssize_t got = recv(descriptor, bytes + length, capacity_bytes - length - 1, 0);
        if (got <= 0)
            break;
        length += (size_t)got;
        bytes[length] = '\0';
    }
    return length;
}

/* The whole reply to a request whose connection ends with it. */
static const char *ask(void **state, const char *method, const char *target)
{
    static char reply[REPLY_MAX];
    char request[512];
    int descriptor = call(state);

    snprintf(request, sizeof request,
             "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\nConnection: close\r\n\r\n", method, target);
    say(descriptor, request);
    hear(descriptor, reply, sizeof reply, NULL, WAIT_MS);
    close(descriptor);
    return reply;
}

static const char *body(const char *reply)
{
    const char *end = strstr(reply, "\r\n\r\n");

    assert_non_null(end);
    return end + 4;
}

static void assert_status(const char *reply, int status)
{
    char line[32];

    snprintf(line, sizeof line, "HTTP/1.1 %d ", status);
    if (strncmp(reply, line, strlen(line)) != 0)
        fail_msg("wanted %s, got: %.60s", line, reply);
}

static void answers_get_and_head(void **state)
{
    const char *reply = ask(state, "GET", "/hello");

    assert_status(reply, 200);
    assert_string_equal(body(reply), "hello\n");
    assert_non_null(strstr(reply, "Content-Length: 6\r\n"));
    assert_non_null(strstr(reply, "Content-Type: text/plain; charset=utf-8\r\n"));
    assert_non_null(strstr(reply, "Cache-Control: no-store\r\n"));
    assert_non_null(strstr(reply, "X-Content-Type-Options: nosniff\r\n"));
    reply = ask(state, "HEAD", "/hello");
    assert_status(reply, 200);
    assert_string_equal(body(reply), "");
    assert_non_null(strstr(reply, "Content-Length: 6\r\n"));
}

static void reads_path_query_and_headers(void **state)
{
    assert_string_equal(body(ask(state, "GET", "/echo/a%20b?name=c%26d&number=12")),
                        "/echo/a b name=c&d number=12 agent=test");
    assert_string_equal(body(ask(state, "GET", "/echo/")), "/echo/ name=none number=7 agent=test");
    assert_string_equal(body(ask(state, "GET", "/echo/?name")), "/echo/ name= number=7 agent=test");
    assert_non_null(strstr(ask(state, "GET", "/echo/?number=-1"), "number=bad"));
    assert_non_null(strstr(ask(state, "GET", "/echo/?number=99999999999999999999"), "number=bad"));
    assert_int_equal(atomic_load(&released), 5);
}

static void refuses_what_it_does_not_do(void **state)
{
    assert_status(ask(state, "GET", "/"), 404);
    assert_status(ask(state, "GET", "/hello/"), 404);
    assert_status(ask(state, "GET", "/echo"), 404);
    const char *reply = ask(state, "DELETE", "/hello");
    assert_status(reply, 405);
    assert_non_null(strstr(reply, "Allow: GET, HEAD\r\n"));
    assert_status(ask(state, "POST", "/hello"), 405);
    assert_status(ask(state, "get", "/hello"), 405);
}

static void survives_wrong_requests(void **state)
{
    static const char *const wrong[] = {
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET /hello HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", /* TLS */
        "GET /hello HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        "POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nsome",
        "GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nsome",
        "GET /hello%zz?%%%=&&= HTTP/1.1\r\nno colon\r\n\r\n",
    };
    char reply[REPLY_MAX];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int descriptor = call(state);
        say(descriptor, wrong[i]);
        shutdown(descriptor, SHUT_WR);
        hear(descriptor, reply, sizeof reply, NULL, WAIT_MS);
        close(descriptor);
        assert_null(strstr(reply, " 200 "));
    }
    assert_status(ask(state, "GET", "/hello"), 200);
}

static void bounds_a_request(void **state)
{
    static char request[64 * 1024];
    char reply[REPLY_MAX];
    int descriptor = call(state);

    memset(request, 'a', sizeof request - 1);
    memcpy(request, "GET /", 5);
    send(descriptor, request, sizeof request - 1, MSG_NOSIGNAL);
    hear(descriptor, reply, sizeof reply, NULL, WAIT_MS);
    close(descriptor);
    if (reply[0] != '\0')
        assert_status(reply, 414);
    assert_status(ask(state, "GET", "/hello"), 200);
}

static void answers_several_requests_of_a_connection(void **state)
{
    int descriptor = call(state);
    char reply[REPLY_MAX];

    for (int i = 0; i < 3; i++) {
        say(descriptor, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
        hear(descriptor, reply, sizeof reply, "hello\n", WAIT_MS);
        assert_status(reply, 200);
    }
    close(descriptor);
}

static void drops_a_slow_client_and_answers_others_meanwhile(void **state)
{
    int slow = call(state);
    char reply[REPLY_MAX];
    uint64_t begun_ns = clock_now_ns();

    say(slow, "GET /hello HT");
    assert_status(ask(state, "GET", "/hello"), 200);
    assert_true(clock_now_ns() < begun_ns + (uint64_t)SILENCE_MS * 1000000);
    hear(slow, reply, sizeof reply, NULL, WAIT_MS);
    assert_true(clock_now_ns() >= begun_ns + (uint64_t)SILENCE_MS * 1000000 / 2);
    assert_true(clock_now_ns() < begun_ns + (uint64_t)WAIT_MS * 1000000);
    assert_null(strstr(reply, " 200 "));
    close(slow);
}

static void wait_for_released(int count)
{
    for (int i = 0; i < WAIT_MS / 5 && atomic_load(&released) < count; i++)
        scratch_pause_ms(5);
    assert_int_equal(atomic_load(&released), count);
}

static void forgets_a_client_that_leaves(void **state)
{
    const struct linger at_once = {.l_onoff = 1};
    char some[4096];
    int descriptor = call(state);

    say(descriptor, "GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(hear(descriptor, some, sizeof some, "xxx", WAIT_MS) > 0);
    assert_int_equal(atomic_load(&released), 0);
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(descriptor);
    wait_for_released(1);
    assert_status(ask(state, "GET", "/hello"), 200);
}

static void drops_a_client_that_does_not_read(void **state)
{
    int descriptor = call(state);

    say(descriptor, "GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for_released(1);
    close(descriptor);
}

/* Nobody is kept out by clients that say nothing: the oldest makes room, and those behind it stay. */
static void makes_room_for_a_new_client(void **state)
{
    int idle[6];
    char reply[REPLY_MAX];
    uint64_t begun_ns = clock_now_ns();

    for (int i = 0; i < 6; i++)
        idle[i] = call(state);
    scratch_pause_ms(SOON_MS);
    say(idle[0], "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    hear(idle[0], reply, sizeof reply, "hello\n", WAIT_MS);
    assert_status(ask(state, "GET", "/hello"), 200);
    assert_true(clock_now_ns() < begun_ns + (uint64_t)SILENCE_MS * 1000000 / 2);
    assert_int_equal(hear(idle[1], reply, sizeof reply, NULL, SOON_MS), 0);
    assert_int_equal(recv(idle[1], reply, 1, MSG_DONTWAIT), 0); /* cut */
    say(idle[0], "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    hear(idle[0], reply, sizeof reply, "hello\n", WAIT_MS);
    assert_status(reply, 200);
    for (int i = 0; i < 6; i++)
        close(idle[i]);
}

static void wait_for_held(int count)
{
    for (int i = 0; i < WAIT_MS && atomic_load(&held) < count; i++)
        scratch_pause_ms(1);
    assert_int_equal(atomic_load(&held), count);
}

static int ask_for(void **state, const char *target)
{
    char request[256];
    int descriptor = call(state);

    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target);
    say(descriptor, request);
    return descriptor;
}

/* As /metrics is asked while all that queries a store is stuck: two run, one waits, a fourth is refused. */
static void quick_answers_wait_for_no_slow_one(void **state)
{
    char reply[REPLY_MAX];
    int slow[3];

    for (int i = 0; i < 3; i++) {
        slow[i] = ask_for(state, "/held/a?name=b");
        scratch_pause_ms(5);
    }
    wait_for_held(2);
    uint64_t begun_ns = clock_now_ns();
    for (int i = 0; i < 20; i++)
        assert_string_equal(body(ask(state, "GET", "/hello")), "hello\n");
    assert_true(clock_now_ns() < begun_ns + (uint64_t)WAIT_MS * 1000000 / 2);
    const char *refused = ask(state, "GET", "/held/too-many");
    assert_status(refused, 503);
    assert_non_null(strstr(refused, "Retry-After: 1\r\n"));
    assert_int_equal(atomic_load(&held), 2);
    atomic_store(&let_go, true);
    for (int i = 0; i < 3; i++) {
        hear(slow[i], reply, sizeof reply, NULL, WAIT_MS);
        assert_status(reply, 200);
        assert_string_equal(body(reply), "/held/a name=b number=7 agent=");
        close(slow[i]);
    }
}

/* As many as may be connected ask for a large reply and read none of it. */
static void quick_answers_wait_for_no_client_that_stalls(void **state)
{
    char some[512];
    int stalled[6];

    for (int i = 0; i < 6; i++) {
        stalled[i] = ask_for(state, i % 2 == 0 ? "/big" : "/slow-big");
        assert_true(hear(stalled[i], some, sizeof some, "xxx", WAIT_MS) > 0);
    }
    uint64_t begun_ns = clock_now_ns();
    for (int i = 0; i < 20; i++)
        assert_string_equal(body(ask(state, "GET", "/hello")), "hello\n");
    assert_true(clock_now_ns() < begun_ns + (uint64_t)SILENCE_MS * 1000000 / 2);
    for (int i = 0; i < 6; i++)
        close(stalled[i]);
}

/* Who asks for something slow and leaves takes nothing with him. */
static void forgets_who_leaves_before_the_answer(void **state)
{
    int gone = ask_for(state, "/held/gone");

    wait_for_held(1);
    close(gone);
    atomic_store(&let_go, true);
    wait_for_released(1);
    assert_status(ask(state, "GET", "/held/next"), 200);
}

static void closes_while_slow_ones_wait(void **state)
{
    void *other = NULL;
    char reply[REPLY_MAX];
    int slow[3];

    (void)state;
    setup(&other);
    struct http_server *server = other;
    for (int i = 0; i < 3; i++) {
        slow[i] = ask_for(&other, "/held/a");
        scratch_pause_ms(5);
    }
    wait_for_held(2);
    atomic_store(&let_go, true);
    http_server_close(&server);
    assert_int_equal(atomic_load(&held), 0);
    for (int i = 0; i < 3; i++) {
        hear(slow[i], reply, sizeof reply, NULL, WAIT_MS);
        close(slow[i]);
    }
}

static int status_of_host(void **state, const char *host)
{
    char text[REPLY_MAX];
    int descriptor = call(state), status = 0;

    snprintf(text, sizeof text, "GET /hello HTTP/1.1\r\n%s%s\r\nConnection: close\r\n\r\n",
             host == NULL ? "X: y" : "Host: ", host == NULL ? "" : host);
    say(descriptor, text);
    hear(descriptor, text, sizeof text, NULL, WAIT_MS);
    close(descriptor);
    assert_int_equal(sscanf(text, "HTTP/1.1 %d ", &status), 1);
    return status;
}

/* A page of evil.example whose name leads to 127.0.0.1 says Host: evil.example. */
static void answers_to_its_own_names_alone(void **state)
{
    static const char *const own[] = {"localhost",  "LocalHost:9419", "127.0.0.1",           "127.0.0.1:8080",
                                      "node1:9419", "NODE1",          "qpscope.example.org", "[::ffff:127.0.0.1]:80"};
    static const char *const foreign[] = {"evil.example",
                                          "evil.example:9419",
                                          "localhost.evil.example",
                                          "127.0.0.1.evil",
                                          "127.0.0.2",
                                          "[::1]:9419",
                                          "",
                                          "node1.example.org",
                                          "node1@evil",
                                          "evil:9419@localhost",
                                          "localhost:port",
                                          "[127.0.0.1"};

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (status_of_host(state, own[i]) != 200)
            fail_msg("Host: %s is refused", own[i]);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        int status = status_of_host(state, foreign[i]);
        if (status != 421 && status != 400)
            fail_msg("Host: %s is answered with %d", foreign[i], status);
    }
    int status = status_of_host(state, NULL);
    assert_true(status == 400 || status == 421);
    const char *reply = ask(state, "GET", "/hello");
    assert_status(reply, 200);
}

static int follow(void **state)
{
    int descriptor = call(state);

    say(descriptor, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return descriptor;
}

static void tells_events(void **state)
{
    char text[REPLY_MAX];
    int first = follow(state);

    hear(first, text, sizeof text, ":\n\n", WAIT_MS);
    assert_status(text, 200);
    assert_non_null(strstr(text, "Content-Type: text/event-stream\r\n"));
    http_server_tell(*state, "step 1");
    hear(first, text, sizeof text, "\n\n", WAIT_MS);
    assert_non_null(strstr(text, "id: 1\ndata: step 1\n\n"));
    http_server_tell(*state, "step 2\ndata: forged");
    hear(first, text, sizeof text, "\n\n", WAIT_MS);
    assert_non_null(strstr(text, "id: 2\ndata: step 2\n\n"));
    int second = follow(state);
    hear(second, text, sizeof text, "step 2\n\n", WAIT_MS);
    assert_non_null(strstr(text, "id: 2\ndata: step 2\n\n"));
    assert_int_equal(hear(first, text, sizeof text, NULL, SOON_MS), 0);
    http_server_tell(NULL, "nobody");
    close(first);
    close(second);
}

static void stays_quiet_while_there_is_nothing_to_tell(void **state)
{
    char text[REPLY_MAX];
    int listener = follow(state);
    struct timespec begun, ended;

    hear(listener, text, sizeof text, ":\n\n", WAIT_MS);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
    scratch_pause_ms(2 * SILENCE_MS); /* longer than a silent client may wait */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    assert_true((ended.tv_sec - begun.tv_sec) * 1000 + (ended.tv_nsec - begun.tv_nsec) / 1000000 < SILENCE_MS / 5);
    http_server_tell(*state, "still there");
    hear(listener, text, sizeof text, "\n\n", WAIT_MS);
    assert_non_null(strstr(text, "data: still there\n"));
    close(listener);
}

/* Half of the connections may follow; room comes back when one that left is noticed. */
static void bounds_followers(void **state)
{
    char text[REPLY_MAX];
    int followers[3];
    bool room = false;

    for (int i = 0; i < 3; i++) {
        followers[i] = follow(state);
        hear(followers[i], text, sizeof text, ":\n\n", WAIT_MS);
    }
    assert_status(ask(state, "GET", "/events"), 503);
    assert_status(ask(state, "GET", "/hello"), 200);
    close(followers[0]);
    for (int i = 0; i < 100 && !room; i++) {
        http_server_tell(*state, "anybody?");
        scratch_pause_ms(20);
        int again = follow(state);
        hear(again, text, sizeof text, "\n\n", WAIT_MS);
        room = strstr(text, " 200 ") != NULL;
        close(again);
    }
    assert_true(room);
    close(followers[1]);
    close(followers[2]);
}

static void ends_streams_when_it_closes(void **state)
{
    struct http_server *server;
    void *other = NULL;
    char text[REPLY_MAX];

    (void)state;
    setup(&other);
    server = other;
    int listener = follow(&other);
    hear(listener, text, sizeof text, ":\n\n", WAIT_MS);
    http_server_close(&server);
    uint64_t begun_ns = clock_now_ns();
    hear(listener, text, sizeof text, NULL, WAIT_MS);
    assert_true(clock_now_ns() < begun_ns + (uint64_t)WAIT_MS * 1000000 / 2);
    close(listener);
}

static void says_why_it_cannot_open(void **state)
{
    char address[32];
    struct http_options options = {.address = address, .routes = routes, .routes_count = 1};
    struct http_server *server = NULL;

    snprintf(address, sizeof address, "%u", http_server_port(*state));
    assert_int_equal(http_server_open(&server, &options), -EADDRINUSE);
    options.address = "elsewhere";
    assert_int_equal(http_server_open(&server, &options), -EINVAL);
    assert_null(server);
    http_server_close(&server);
}

struct address_case {
    const char *text;
    const char *host; /* NULL = refused */
    unsigned port;
    bool open_to_others;
};

static void listens_to_others_only_when_told_by_name(void **state)
{
    static const struct address_case cases[] = {
        {"9419", "127.0.0.1", 9419, false},
        {"localhost:1", "127.0.0.1", 1, false},
        {"127.9.9.9:80", "127.9.9.9", 80, false},
        {"[::1]:9419", "::1", 9419, false},
        {"0.0.0.0:9419", "0.0.0.0", 9419, true},
        {"[::]:9419", "::", 9419, true},
        {"192.0.2.1:65535", "192.0.2.1", 65535, true},
        {":9419", NULL, 0, false},
        {"*:9419", NULL, 0, false},
        {"example.org:9419", NULL, 0, false},
        {"127.0.0.1:65536", NULL, 0, false},
        {"127.0.0.1:", NULL, 0, false},
        {"127.0.0.1:+5", NULL, 0, false},
        {"127.0.0.1", NULL, 0, false},
        {"", NULL, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct http_address address;
        int error = http_address_read(&address, cases[i].text);
        assert_int_equal(error, cases[i].host == NULL ? -EINVAL : 0);
        if (error != 0)
            continue;
        assert_string_equal(address.host, cases[i].host);
        assert_int_equal(address.port, cases[i].port);
        assert_int_equal(address.open_to_others, cases[i].open_to_others);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_get_and_head),
        TEST(reads_path_query_and_headers),
        TEST(refuses_what_it_does_not_do),
        TEST(survives_wrong_requests),
        TEST(bounds_a_request),
        TEST(answers_several_requests_of_a_connection),
        TEST(drops_a_slow_client_and_answers_others_meanwhile),
        TEST(forgets_a_client_that_leaves),
        TEST(drops_a_client_that_does_not_read),
        TEST(makes_room_for_a_new_client),
        TEST(quick_answers_wait_for_no_slow_one),
        TEST(quick_answers_wait_for_no_client_that_stalls),
        TEST(forgets_who_leaves_before_the_answer),
        TEST(closes_while_slow_ones_wait),
        TEST(answers_to_its_own_names_alone),
        TEST(tells_events),
        TEST(stays_quiet_while_there_is_nothing_to_tell),
        TEST(bounds_followers),
        TEST(ends_streams_when_it_closes),
        TEST(says_why_it_cannot_open),
        cmocka_unit_test(listens_to_others_only_when_told_by_name),
    };

    log_init("test_http", LOG_NONE);
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
