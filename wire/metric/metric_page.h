/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program answers to those who watch it: /metrics in the format that they ask for, /-/healthy (it runs) and
 * /-/ready (it does its work). The numbers are collected when somebody asks, on the server's thread: `collect` reads
 * what other threads write in ways that do not hold them up.
 */
#pragma once

#include "wire/http/http_server.h"
#include "wire/metric/metric.h"
#include "wire/option.h"

struct metric_page {
    const char *program;
    void (*collect)(void *context, struct metric_writer *writer);
    void *context;
    const bool *ready; /* set by its owner once it does its work, which it may not at first; NULL: from the start */
};

void metric_page_answer(void *page, const struct http_request *request, struct http_reply *reply);
void metric_page_answer_healthy(void *page, const struct http_request *request, struct http_reply *reply);
void metric_page_answer_ready(void *page, const struct http_request *request, struct http_reply *reply);

/* Rows of a table of routes. `page`: struct metric_page *; it lives as long as the server. */
#define METRIC_PAGE_ROUTES(page)                                                                                       \
    {.path = "/metrics", .answer = metric_page_answer, .context = (page)},                                             \
        {.path = "/-/healthy", .answer = metric_page_answer_healthy, .context = (page)},                               \
    {                                                                                                                  \
        .path = "/-/ready", .answer = metric_page_answer_ready, .context = (page)                                      \
    }

/* Where a program serves. */
struct metric_page_place {
    const char *address; /* NULL: nowhere */
    struct option_list names;
};

/* The rows of --http and --http-name in a program's option_spec table; fill the place that is `member` of `settings`.
 */
#define METRIC_PAGE_OPTIONS(settings, member, served)                                                                  \
    {.name = "http-name",                                                                                              \
     .kind = OPTION_TEXT_LIST,                                                                                         \
     .offset = offsetof(settings, member.names),                                                                       \
     .argument = "NAME",                                                                                               \
     .help = "answer with --http also to who asks for it by this name; else only by its address, or as localhost"},    \
    {                                                                                                                  \
        .name = "http", .kind = OPTION_TEXT, .offset = offsetof(settings, member.address),                             \
        .argument = "[ADDRESS:]PORT",                                                                                  \
        .help = "serve " served " at PORT of this machine's own address; of another ADDRESS (0.0.0.0: all) only when " \
                "it is given"                                                                                          \
    }
