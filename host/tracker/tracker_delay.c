/* SPDX-License-Identifier: BSD-2-Clause */
/* What kept the threads of a job from running: told as it was seen, with the communicator that the thread serves. */
#include "host/tracker/tracker_private.h"

#include "host/tracker/lineage.h"

_Static_assert((int)EVENT_DELAY_CALLS == (int)HOST_DELAY_CALLS && (int)EVENT_DELAY_SERVES == (int)HOST_DELAY_SERVES &&
                   (int)EVENT_DELAY_ALONE == (int)HOST_DELAY_ALONE,
               "flags of delays");

/* Less than this within a tenth of a second is what every thread has. */
#define RUN_QUEUE_SMALL_NS 50000

/* A thread of the library that only slept says nothing: it waited for work. */
static bool is_telling(const struct event_delay *event)
{
    return (event->flags & EVENT_DELAY_ALONE) != 0 || (event->role & EVENT_DELAY_CALLS) != 0 ||
           event->run_queue_ns >= RUN_QUEUE_SMALL_NS || event->wait_ns != 0 || event->major_faults != 0 ||
           event->sent_bytes != 0 || event->retransmissions != 0;
}

void tracker_on_delay(struct tracker *tracker, const void *bytes)
{
    const struct event_delay *event = bytes;
    const struct job_process *process = job_find(tracker->jobs, event->header.tgid);
    tracker_count(tracker, COUNT_DELAYS);
    counter_add(tracker->counters, COUNT_SWITCHES, (event->flags & EVENT_DELAY_ALONE) != 0 ? 0 : event->switches);
    if (process == NULL || !is_telling(event))
        return;
    const struct record_host_delay delay = {
        .header.source = process->record.process,
        .from_ns = event->from_ns,
        .to_ns = event->header.at_ns,
        .sleep_ns = event->sleep_ns,
        .run_queue_ns = event->run_queue_ns,
        .io_wait_ns = event->wait_ns,
        .tcp_bytes = event->sent_bytes,
        .run_queue_longest_ns = event->run_queue_longest_ns,
        .switches = event->switches,
        .minor_faults = event->minor_faults,
        .major_faults = event->major_faults,
        .tcp_retransmissions = event->retransmissions,
        .tid = event->header.tid,
        .communicator = lineage_communicator(tracker->lineage, process->record.process, event->header.tid),
        .role = event->role,
        .flags = event->flags,
    };
    tracker_publish(tracker, RECORD_HOST_DELAY, &delay, sizeof delay);
}
