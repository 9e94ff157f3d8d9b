/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the proxies' service threads were told of their connections. Invariant: a queue pair of a communicator is given
 * a channel and a rank only by the socket over which its connection was arranged.
 */
#include "host/tracker/tracker_private.h"

#include <errno.h>

#include "host/tracker/communicator.h"
#include "host/tracker/proxy.h"

#define ENTRIES_MAX 32768

static void note(struct tracker *tracker, int error)
{
    if (error == -ENOSPC)
        tracker_refuse(tracker, COUNT_CONNECTIONS_REFUSED);
    else if (error != 0)
        tracker_count(tracker, COUNT_SET_UPS_UNREADABLE);
}

void tracker_on_proxy_message(struct tracker *tracker, const void *bytes)
{
    const struct event_proxy_message *event = bytes;
    const struct job_process *process = job_find(tracker->jobs, event->header.tgid);
    if (process != NULL)
        note(tracker, proxy_message(tracker->proxies, event, process->splits));
}

void tracker_on_proxy_socket(struct tracker *tracker, const void *bytes)
{
    note(tracker, proxy_socket(tracker->proxies, bytes));
}

void tracker_connect(struct tracker *tracker, struct record_queue_pair *queue_pair, int32_t socket)
{
    const struct communicator *owner = communicator_by_number(tracker->communicators, queue_pair->communicator);
    struct proxy_connection connection;
    if (owner == NULL || proxy_find(tracker->proxies, queue_pair->creator_tid, socket, &connection) != 0)
        return;
    queue_pair->side = (uint8_t)connection.side;
    queue_pair->origin_rank = connection.request.origin_rank;
    queue_pair->far_rank = connection.request.far_rank;
    queue_pair->channel = connection.request.channel;
    if (connection.request.shared)
        queue_pair->flags |= QUEUE_PAIR_SHARED;
    if (owner->record.rank >= 0 && owner->record.rank != connection.request.origin_rank)
        queue_pair->flags |= QUEUE_PAIR_PXN;
}

static int create(struct tracker *tracker)
{
    return proxy_table_create(&tracker->proxies, ENTRIES_MAX);
}

static void destroy(struct tracker *tracker)
{
    proxy_table_destroy(&tracker->proxies);
}

static void lose(struct tracker *tracker)
{
    proxy_forget(tracker->proxies);
}

static void end_thread(struct tracker *tracker, uint32_t tid)
{
    proxy_forget_thread(tracker->proxies, tid);
}

static void end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    (void)at_ns;
    proxy_forget_process(tracker->proxies, process->record.pid);
}

static size_t size(const struct tracker *tracker)
{
    return proxy_count(tracker->proxies);
}

const struct tracker_subject tracker_subject_proxy = {
    .create = create,
    .destroy = destroy,
    .lose = lose,
    .end_thread = end_thread,
    .end_process = end_process,
    .size = size,
};
