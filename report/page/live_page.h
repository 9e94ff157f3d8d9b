/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of a store that is being written, and the JSON that it is made of, over HTTP (doc/http.md states each path).
 * Handlers read the store through a connection of their own, read-only, on the server's threads for what takes long,
 * several at a time; whoever writes the store only says that there is something new.
 */
#pragma once

#include "wire/http/http_server.h"

struct live_page;

/* `store` is the database's path, copied. Never NULL. A build without the page serves the JSON, and says so. */
struct live_page *live_page_create(const char *store);

/* After the server was closed. A no-op on NULL. */
void live_page_destroy(struct live_page **page);

/* The store's writer, after each write. Any thread; does not wait; a no-op on NULL. */
void live_page_note(struct live_page *page);

/* The store's writer, when what people look at has changed. Any thread; does not wait; a no-op where either is NULL. */
void live_page_tell(struct live_page *page, struct http_server *server);

void live_page_answer(void *page, const struct http_request *request, struct http_reply *reply);
void live_page_answer_json(void *page, const struct http_request *request, struct http_reply *reply);

/* Rows of a table of routes. `page`: struct live_page *; it lives as long as the server. */
#define LIVE_PAGE_ROUTES(page)                                                                                         \
    {.path = "/", .answer = live_page_answer, .context = (page), .slow = true},                                        \
        {.path = "/api/v1/events", .events = true},                                                                    \
    {                                                                                                                  \
        .path = "/api/v1/*", .answer = live_page_answer_json, .context = (page), .slow = true                          \
    }
