/* SPDX-License-Identifier: BSD-2-Clause */
/* The link to the job stage. Invariant: what waits was made before all that is made now, and goes first. */
#include "correlator/relay/uplink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "correlator/analysis.h"
#include "correlator/hash.h"
#include "correlator/relay/relay.h"
#include "wire/backlog.h"
#include "wire/link.h"
#include "wire/log.h"

#define WAITING_BYTES (64u << 20)
#define LINGER_MS     500

struct uplink {
    struct relay *relay;
    struct link *link;
    struct backlog *backlog;
    uint64_t connections; /* when all was sent again */
    uint64_t dropped;     /* batches */
};

bool uplink_drain(struct uplink *uplink)
{
    const void *bytes;
    size_t length_bytes;

    if (uplink == NULL)
        return false;
    while (backlog_front(uplink->backlog, &bytes, &length_bytes)) {
        if (link_send(uplink->link, bytes, length_bytes) == -EAGAIN)
            return true;
        backlog_pop(uplink->backlog);
    }
    return false;
}

static void send_or_keep(void *context, const void *batch, size_t length_bytes)
{
    struct uplink *uplink = context;

    if (backlog_count(uplink->backlog) == 0 && link_send(uplink->link, batch, length_bytes) == 0)
        return;
    if (backlog_put(uplink->backlog, batch, length_bytes) == 0)
        return;
    if (uplink->dropped++ == 0)
        log_warning("the job stage does not hear: what is new is dropped from now on, until it does");
}

/* The same machine and URL give the same number. */
static uint64_t emitter_id(const char *url)
{
    char host[64] = {0};

    gethostname(host, sizeof host - 1);
    return hash_mix(hash_mix(HASH_START, host, sizeof host), url, strlen(url));
}

int uplink_open(struct uplink **result, const struct uplink_options *options)
{
    struct uplink *uplink = array_zeroed(sizeof *uplink);
    uint64_t id = emitter_id(options->url);
    const struct link_options link = {LINK_SEND, options->url, options->key_file, id, options->boot_id};
    int error = link_open(&uplink->link, &link);

    if (error == 0)
        error = backlog_create(&uplink->backlog, WAITING_BYTES);
    if (error != 0) {
        uplink_close(&uplink);
        return error;
    }
    uplink->relay = relay_create(&(struct relay_options){id, options->boot_id, send_or_keep, uplink});
    *result = uplink;
    return 0;
}

void uplink_batch(struct uplink *uplink, const void *batch, size_t length_bytes)
{
    if (uplink != NULL)
        relay_batch(uplink->relay, batch, length_bytes);
}

static void send_again(struct uplink *uplink, const struct intake *intake)
{
    for (size_t i = 0; i < intake->streams.count; i++) {
        const struct intake_stream *stream = &intake->streams.items[i];
        for (size_t j = 0; j < stream->batches.count; j++)
            if (stream->batches.items[j].bytes != NULL)
                relay_batch(uplink->relay, stream->batches.items[j].bytes, stream->batches.items[j].length_bytes);
    }
    relay_begin_anew(uplink->relay);
}

bool uplink_is_new(const struct uplink *uplink)
{
    struct link_counts counts = {0};

    if (uplink == NULL)
        return false;
    link_counts(uplink->link, &counts);
    return counts.connections != uplink->connections;
}

void uplink_operations(struct uplink *uplink, const struct analysis *analysis, bool all)
{
    struct link_counts counts;

    if (uplink == NULL)
        return;
    uplink_drain(uplink);
    link_counts(uplink->link, &counts);
    if (uplink_is_new(uplink)) {
        send_again(uplink, &analysis->intake);
        uplink->connections = counts.connections;
        uplink->dropped = 0;
    }
    relay_operations(uplink->relay, analysis, all);
}

void uplink_close(struct uplink **uplink)
{
    if (*uplink == NULL)
        return;
    for (int i = 0; i < LINGER_MS && (*uplink)->backlog != NULL && uplink_drain(*uplink); i++)
        usleep(1000);
    link_close(&(*uplink)->link, LINGER_MS);
    backlog_destroy(&(*uplink)->backlog);
    relay_destroy(&(*uplink)->relay);
    free(*uplink);
    *uplink = NULL;
}
