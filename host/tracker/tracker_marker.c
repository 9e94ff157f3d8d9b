/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the GPU's runtime and driver, and the graphs among them: the launch of a graph makes its data calls once
 * more. Invariant: a data call that was captured is published as captured once, and as replayed once a launch.
 */
#include "host/tracker/tracker_private.h"

#include <errno.h>

#include "bpf/marker.h"
#include "host/tracker/call.h"
#include "host/tracker/communicator.h"
#include "host/tracker/graph.h"

#define GRAPHS_MAX 16384

_Static_assert((int)EVENT_MARKER_SUBMITTED == (int)MARKER_SUBMITTED && (int)EVENT_MARKER_DRIVER == (int)MARKER_DRIVER,
               "flags of markers");

void tracker_capture_call(struct tracker *tracker, uint32_t process, const struct record_call *call)
{
    if (graph_capture_call(tracker->graphs, process, call) != 0)
        tracker_count(tracker, COUNT_CAPTURES_UNKNOWN);
}

/* One launch: the groups in it get numbers of their own. */
struct replay {
    const struct record_marker *launch;
    uint32_t captured_group;
    uint32_t group;
};

static uint32_t group_of(struct tracker *tracker, struct replay *replay, uint32_t captured_group)
{
    if (captured_group == 0)
        return 0;
    if (captured_group != replay->captured_group)
        replay->group = call_groups_number(tracker->groups);
    replay->captured_group = captured_group;
    return replay->group;
}

static void replay_call(struct tracker *tracker, struct replay *replay, const struct record_call *captured)
{
    const struct record_marker *launch = replay->launch;
    struct communicator *communicator = communicator_by_number(tracker->communicators, captured->header.source);
    if (communicator == NULL) /* it is destroyed */
        return;
    struct record_call call = *captured;
    call.entered_ns = launch->entered_ns;
    call.enqueued_ns = launch->entered_ns;
    call.returned_after_ns = launch->duration_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)launch->duration_ns;
    call.tid = launch->tid;
    call.group = group_of(tracker, replay, captured->group);
    const uint8_t flags = (uint8_t)(CALL_REPLAYED | (captured->flags & CALL_GROUPED) |
                                    (communicator->calls_missed ? CALL_AFTER_LOSS : 0) |
                                    1 << CALL_RESULT_SHIFT); /* ncclSuccess: the launch was good */
    if (communicator_number_call(communicator, &call, flags) == 0)
        tracker_publish(tracker, RECORD_CALL, &call, sizeof call);
}

static int64_t launch(struct tracker *tracker, uint32_t process, const struct record_marker *marker)
{
    const struct record_call *calls = NULL;
    struct replay replay = {.launch = marker};
    const int64_t count = graph_calls(tracker->graphs, process, marker->handle, &calls);
    for (int64_t i = 0; i < count && marker->result == 0; i++)
        replay_call(tracker, &replay, &calls[i]);
    if (count > 0 && marker->result == 0)
        counter_add(tracker->counters, COUNT_CALLS_REPLAYED, (uint64_t)count);
    return count;
}

/* What the call does to the graphs: the number of data calls that it concerns, -ENOENT when that is not known. */
static int64_t follow(struct tracker *tracker, uint32_t process, const struct record_marker *marker)
{
    const bool good = marker->result == 0;
    switch (marker->marker) {
    case MARKER_CAPTURE_BEGIN:
        return good ? graph_capture_begin(tracker->graphs, process, marker->stream) : 0;
    case MARKER_CAPTURE_END:
        return graph_capture_end(tracker->graphs, process, marker->stream, good ? marker->made : 0);
    case MARKER_GRAPH_INSTANTIATE:
        return good ? graph_instantiate(tracker->graphs, process, marker->handle, marker->made) : 0;
    case MARKER_GRAPH_LAUNCH:
        return launch(tracker, process, marker);
    default:
        return 0;
    }
}

void tracker_on_marker(struct tracker *tracker, const void *bytes)
{
    const struct event_marker *event = bytes;
    const struct job_process *process = tracker_process(tracker, &event->header);
    const bool submitted = (event->flags & EVENT_MARKER_SUBMITTED) != 0;
    tracker_count(tracker, COUNT_MARKERS);
    if (process == NULL)
        return;
    struct record_marker marker = {
        .header.source = process->record.process,
        .entered_ns = event->entered_ns,
        .duration_ns = submitted ? 0 : event->header.at_ns - event->entered_ns,
        .stream = event->stream,
        .handle = event->handle,
        .made = event->made,
        .tid = event->header.tid,
        .result = event->result,
        .marker = event->marker,
        .flags = event->flags,
    };
    const int64_t calls = follow(tracker, process->record.process, &marker);
    if (calls < 0)
        marker.flags |= MARKER_GRAPH_UNKNOWN;
    if (calls == -ENOSPC || calls == -ENOMEM)
        tracker_refuse(tracker, COUNT_GRAPHS_REFUSED);
    marker.captured_calls = calls < 0 ? 0 : (uint32_t)calls;
    tracker_publish(tracker, RECORD_MARKER, &marker, sizeof marker);
}

static void mark_missed(void *context, struct communicator *communicator)
{
    (void)context;
    communicator->calls_missed = true;
}

void tracker_markers_end(struct tracker *tracker)
{
    if (graph_count(tracker->graphs) != 0)
        communicator_each(tracker->communicators, mark_missed, NULL);
}

/* ---- the subject ---- */

static int create(struct tracker *tracker)
{
    return graph_table_create(&tracker->graphs, GRAPHS_MAX);
}

static void destroy(struct tracker *tracker)
{
    graph_table_destroy(&tracker->graphs);
}

static void end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    (void)at_ns;
    graph_forget_process(tracker->graphs, process->record.process);
}

static size_t size(const struct tracker *tracker)
{
    return graph_count(tracker->graphs);
}

const struct tracker_subject tracker_subject_marker = {
    .create = create,
    .destroy = destroy,
    .end_process = end_process,
    .size = size,
};
