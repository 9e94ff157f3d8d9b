/* SPDX-License-Identifier: BSD-2-Clause */
/* Who asks for /metrics gets the program itself and what its owner collects, in one text. */
#include "wire/metric/metric_page.h"

#include <stdlib.h>

#include "wire/metric/own.h"

void metric_page_answer(void *context, const struct http_request *request, struct http_reply *reply)
{
    const struct metric_page *page = context;
    bool is_openmetrics = metric_accepts_openmetrics(http_request_header(request, "Accept"));
    struct metric_writer writer;
    size_t length_bytes;

    metric_open(&writer, is_openmetrics);
    own_write(&writer, page->program);
    page->collect(page->context, &writer);
    char *bytes = metric_close(&writer, &length_bytes);
    if (bytes == NULL) {
        http_reply_text(reply, 503, "no memory for the answer\n");
        return;
    }
    reply->type = metric_content_type(is_openmetrics);
    reply->bytes = bytes;
    reply->length_bytes = length_bytes;
    reply->release = free;
    reply->owner = bytes;
}

void metric_page_answer_healthy(void *context, const struct http_request *request, struct http_reply *reply)
{
    (void)context;
    (void)request;
    http_reply_text(reply, 200, "yes\n");
}

void metric_page_answer_ready(void *context, const struct http_request *request, struct http_reply *reply)
{
    const struct metric_page *page = context;
    bool is_ready = page->ready == NULL || __atomic_load_n(page->ready, __ATOMIC_RELAXED);

    (void)request;
    http_reply_text(reply, is_ready ? 200 : 503, is_ready ? "yes\n" : "not yet\n");
}
