/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small HTTP/1.1 server for metrics and pages (libmicrohttpd inside; nowhere else). It reads nothing but GET and
 * HEAD, has no TLS and asks nobody who they are: beyond this machine a reverse proxy or a closed network does that
 * (http_address.h says what is listened at).
 *
 * One thread of its own, which has all signals blocked. On it the quick handlers run, one at a time: such a handler
 * reads what its owner guards with a lock, held shortly, and builds its reply in memory. A route that is `slow` (it
 * queries a store) is answered on one of two more threads, in the order in which requests came, so that quick ones wait
 * for none of it; at most connections_max / 2 such requests wait or are worked at, what is more gets 503. Of one route
 * several may run at a time. A reply, however large, is sent as its client reads it, and nobody waits for that. What
 * can be relied on: paths come decoded and without the query; at most `connections_max` connections stay, of which half
 * may follow events: a new one is always taken, and when there are too many, the one whose last request is the oldest
 * is cut (none that follows events, nor that is worked for), so that clients that stall keep nobody out; a request
 * (line and headers) has at most 16 KiB; a client that is silent for 10 s in the middle of a request or a reply is
 * dropped; each reply has "Cache-Control: no-store", "X-Content-Type-Options: nosniff" and a content security policy
 * that lets a page load what it holds inline and what this server has, nothing else. A request whose Host is not
 * localhost, the address that it came to or one of `names` gets 421, so that no page of elsewhere can read what is
 * served (http_host.h). Wrong requests get 400, 404, 405, 413, 414 or 431 as text.
 *
 * Live pages: a route with `events` is a stream of server-sent events (EventSource in a browser). http_server_tell()
 * sends an event, whose id rises, to all who listen; who joins gets the latest one at once, who is slow gets the latest
 * instead of each; a comment every 15 s keeps connections through proxies and finds clients that are gone. The event
 * says that there is something new and how it is called; what it is is asked for by a request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_EVENT_BYTES_MAX 512

struct http_server;
struct http_request;

struct http_reply {
    int status;        /* 200 before the handler runs */
    const char *type;  /* "text/plain; charset=utf-8" before; static, or lives until `release` */
    const void *bytes; /* none before; need not end in 0 */
    size_t length_bytes;
    void (*release)(
        void *owner); /* called with `owner` when the reply was sent or its client left; NULL = static bytes */
    void *owner;
};

struct http_route {
    const char *path; /* "/metrics", or all that begin so: a path that ends in an asterisk */
    void (*answer)(void *context, const struct http_request *request, struct http_reply *reply);
    void *context;
    bool events; /* server-sent events; answer is NULL */
    bool slow;   /* answered on another thread, while others are */
};

struct http_options {
    const char *address;             /* see http_address.h */
    const struct http_route *routes; /* the first that fits answers; copied, but not what they point to */
    size_t routes_count;
    const char *const *names; /* that it goes by beside its addresses; each lives as long as the server */
    size_t names_count;
    unsigned connections_max; /* 0 = 32 */
    unsigned silence_s;       /* 0 = 10 */
};

/* Listens from here on. -EINVAL (address), -EADDRINUSE, -EACCES or another -errno, logged. */
int http_server_open(struct http_server **server, const struct http_options *options);

/* Stops listening, ends event streams, waits for a handler that runs; what is still being sent is cut. A no-op on NULL.
 */
void http_server_close(struct http_server **server);

/* The port that is listened at. */
uint16_t http_server_port(const struct http_server *server);

/* One line of text, cut at HTTP_EVENT_BYTES_MAX, as an event to all who follow. Any thread; does not wait; NULL: no-op.
 */
void http_server_tell(struct http_server *server, const char *text);

/* ---- for handlers, on the thread that runs them, meanwhile ---- */

const char *http_request_path(const struct http_request *request);

/* The value of "name" in the query, decoded; "" where it is given without one; NULL where it is not given. */
const char *http_request_query(const struct http_request *request, const char *name);

/* The same as a number; `otherwise` where it is not given; false where it is not a decimal number. */
bool http_request_number(const struct http_request *request, const char *name, uint64_t otherwise, uint64_t *number);

/* A header's value, "" where it is not given. */
const char *http_request_header(const struct http_request *request, const char *name);

/* A reply of one line of text, for errors. */
void http_reply_text(struct http_reply *reply, int status, const char *text);
