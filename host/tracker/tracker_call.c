/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data calls, and the groups in which they wait for the time when the library is given them. Invariant: each call is
 * published once, or counted as unfinished.
 */
#include "host/tracker/tracker_private.h"

#include "host/tracker/call.h"
#include "host/tracker/communicator.h"

/* A call that has not returned for so long is published as it is. */
#define UNRETURNED_NS 200000000u

static void publish_call(void *context, struct record_call *call)
{
    struct tracker *tracker = context;
    const struct communicator *communicator = communicator_by_number(tracker->communicators, call->header.source);
    if ((call->flags & CALL_CAPTURED) != 0 && communicator != NULL)
        tracker_capture_call(tracker, communicator->record.process, call);
    tracker_publish(tracker, RECORD_CALL, call, sizeof *call);
}

static struct call_group group_of(const struct job_process *process, const struct event_header *header, uint32_t number,
                                  bool same)
{
    return (struct call_group){process->record.process, header->tid, number, same};
}

static uint8_t flags_of(const struct communicator *communicator, const struct event_call *event)
{
    return (uint8_t)((event->group != 0 ? CALL_GROUPED : 0) | (communicator->calls_missed ? CALL_AFTER_LOSS : 0) |
                     ((event->flags & EVENT_CALL_CAPTURED) != 0 ? CALL_CAPTURED : 0));
}

void tracker_on_call(struct tracker *tracker, const void *bytes)
{
    const struct event_call *event = bytes;
    tracker_count(tracker, COUNT_CALLS);
    struct job_process *process = tracker_process(tracker, &event->header);
    struct communicator *communicator = process == NULL || event->communicator == 0
                                            ? NULL
                                            : tracker_communicator(tracker, process, event->communicator);
    struct record_call call = {
        .count = event->count,
        .entered_ns = event->header.at_ns,
        .enqueued_ns = event->header.at_ns,
        .stream = event->stream,
        .peer = event->peer,
        .tid = event->header.tid,
        .operation = event->operation,
        .datatype = event->datatype,
        .reduction = event->reduction,
    };
    if (communicator == NULL || communicator_number_call(communicator, &call, flags_of(communicator, event)) != 0) {
        tracker_count(tracker, COUNT_CALLS_INVALID);
        return;
    }
    const struct call_group group =
        group_of(process, &event->header, event->group, (event->flags & EVENT_CALL_SAME) != 0);
    const bool more = event->group != 0 || (event->flags & EVENT_CALL_RETURNS) != 0;
    if (!more || call_hold(tracker->groups, &group, &call, publish_call, tracker) != 0)
        publish_call(tracker, &call);
}

void tracker_on_call_return(struct tracker *tracker, const void *bytes)
{
    const struct event_call_return *event = bytes;
    const struct job_process *process = tracker_process(tracker, &event->header);
    if (process == NULL)
        return;
    const struct call_group group = group_of(process, &event->header, 0, true);
    call_return(tracker->groups, &group, event->header.at_ns, event->result, publish_call, tracker);
}

void tracker_on_group_end(struct tracker *tracker, const void *bytes)
{
    const struct event_group *event = bytes;
    const struct job_process *process = tracker_process(tracker, &event->header);
    tracker_count(tracker, COUNT_GROUPS);
    if (process == NULL)
        return;
    const struct call_group group = group_of(process, &event->header, event->group, false);
    call_release(tracker->groups, &group, event->header.at_ns, publish_call, tracker);
    tracker_communicators_begin(tracker, event);
}

void tracker_calls_return(struct tracker *tracker, const struct event_group *event)
{
    const struct job_process *process = tracker_process(tracker, &event->header);
    if (process == NULL)
        return;
    const struct call_group group = group_of(process, &event->header, event->group, false);
    call_return(tracker->groups, &group, event->header.at_ns, event->result, publish_call, tracker);
}

/* ---- the subject ---- */

static int create(struct tracker *tracker)
{
    return call_groups_create(&tracker->groups);
}

static void destroy(struct tracker *tracker)
{
    call_groups_destroy(&tracker->groups);
}

static void end_thread(struct tracker *tracker, uint32_t tid)
{
    counter_add(tracker->counters, COUNT_CALLS_UNFINISHED,
                call_forget_thread(tracker->groups, tid, publish_call, tracker));
}

static void end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    (void)at_ns;
    counter_add(tracker->counters, COUNT_CALLS_UNFINISHED,
                call_forget_process(tracker->groups, process->record.process, publish_call, tracker));
}

static void tick(struct tracker *tracker, uint64_t now_ns)
{
    call_expire(tracker->groups, now_ns - UNRETURNED_NS, publish_call, tracker);
}

static size_t size(const struct tracker *tracker)
{
    return call_groups_count(tracker->groups);
}

const struct tracker_subject tracker_subject_call = {
    .create = create,
    .destroy = destroy,
    .end_thread = end_thread,
    .end_process = end_process,
    .tick = tick,
    .size = size,
};
