/* SPDX-License-Identifier: BSD-2-Clause */
/* What was lost, told where it happens: events that found no room, and things that found none in a table. */
#include "host/tracker/tracker_private.h"

static void publish_loss(struct tracker *tracker, enum loss_cause cause, uint64_t from_ns, uint64_t to_ns,
                         uint64_t lost)
{
    const struct record_loss loss = {.from_ns = from_ns, .to_ns = to_ns, .lost = lost, .cause = cause};
    tracker_publish(tracker, RECORD_LOSS, &loss, sizeof loss);
}

void tracker_refuse(struct tracker *tracker, enum host_counter counter)
{
    tracker_count(tracker, counter);
    publish_loss(tracker, LOSS_TABLE_FULL, tracker->last_ns, tracker->last_ns, 1);
}

void tracker_lost(struct tracker *tracker, uint32_t lost, uint64_t at_ns)
{
    const int32_t more = (int32_t)(lost - tracker->lost);
    if (more <= 0)
        return;
    tracker->lost = lost;
    counter_add(tracker->counters, COUNT_EVENTS_LOST, (uint64_t)more);
    publish_loss(tracker, LOSS_RING_FULL, tracker->last_ns, at_ns, (uint64_t)more);
    tracker_lose(tracker);
}
