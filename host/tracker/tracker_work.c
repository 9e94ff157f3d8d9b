/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was posted to queue pairs and what completed, while it is followed. Invariant: a record names a queue pair that
 * was seen being made; what cannot be put to one for certain is counted and left out.
 */
#include "host/tracker/tracker_private.h"

#include "host/tracker/queue_pair.h"

_Static_assert((int)EVENT_WORK_POSTED == WORK_POSTED && (int)EVENT_WORK_COMPLETED == WORK_COMPLETED &&
                   (int)EVENT_WORK_CUT == WORK_CUT,
               "the numbers of events are those of records");

static const struct record_queue_pair *worker(struct tracker *tracker, const struct job_process *process,
                                              const struct event_work *event)
{
    if (event->what == EVENT_WORK_POSTED)
        return queue_pair_find(tracker->queue_pairs, process->record.process, event->pointer);
    return queue_pair_find_number(tracker->queue_pairs, process->record.process, event->qpn);
}

void tracker_on_work(struct tracker *tracker, const void *bytes)
{
    const struct event_work *event = bytes;
    const struct job_process *process = job_find(tracker->jobs, event->header.tgid);
    const struct record_queue_pair *queue_pair = process == NULL ? NULL : worker(tracker, process, event);
    if (queue_pair == NULL) {
        tracker_count(tracker, COUNT_WORK_UNKNOWN);
        return;
    }
    tracker_count(tracker, event->what == EVENT_WORK_POSTED ? COUNT_POSTS : COUNT_COMPLETIONS);
    const struct record_work record = {
        .header.source = queue_pair->queue_pair,
        .at_ns = event->header.at_ns,
        .request = event->work,
        .bytes = event->bytes,
        .requests = event->requests,
        .what = event->what,
        .opcode = event->opcode,
        .status = event->status,
        .flags = event->flags,
        .tid = event->header.tid,
    };
    tracker_publish(tracker, RECORD_WORK, &record, sizeof record);
}
