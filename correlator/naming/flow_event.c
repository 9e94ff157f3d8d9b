/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: only rises are listed. A count may fall when later frames tell that it was something else. */
#include "correlator/naming/flow_event.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
    uint32_t factor;
    uint32_t needs;
} metrics[] = {
#define FLOW_METRIC(name, text, field, factor, needs)                                                                  \
    {text, offsetof(struct record_flow_total, field), (factor), (needs)},
#include "correlator/verdict/flow_metric.def"
#undef FLOW_METRIC
};

static uint32_t count_of(const struct record_flow_total *total, enum flow_metric metric)
{
    uint32_t count;

    memcpy(&count, (const char *)total + metrics[metric].offset, sizeof count);
    return count;
}

/*
 * A pause is counted when it ends. It began no sooner than the last frame that the total before knew, if that was data:
 * it was an answer if the pause does not fit behind it.
 */
static uint64_t pause_begin_ns(const struct flow_event *event, uint64_t silent_ns)
{
    uint64_t earliest_ns = event->amount < event->from_ns ? event->from_ns - event->amount : 0;
    uint64_t latest_ns = event->amount < event->to_ns ? event->to_ns - event->amount : 0;

    silent_ns = silent_ns < latest_ns ? silent_ns : latest_ns;
    return silent_ns > earliest_ns ? silent_ns : earliest_ns;
}

void flow_event_add(flow_event_list *events, const struct flow_event *where, const struct record_flow_total *before,
                    const struct record_flow_total *after, uint64_t silent_ns)
{
    for (enum flow_metric metric = 0; metric < FLOW_METRICS; metric++) {
        uint32_t was = count_of(before, metric), is = count_of(after, metric);
        if (is <= was)
            continue;
        struct flow_event *event = array_add(events);
        *event = *where;
        event->metric = metric;
        event->amount = (uint64_t)(is - was) * metrics[metric].factor;
        if (metric == FLOW_METRIC_TIMEOUT_TIME)
            event->from_ns = pause_begin_ns(event, silent_ns);
    }
}

const char *flow_metric_name(enum flow_metric metric)
{
    return metrics[metric].name;
}

uint32_t flow_metric_needs(enum flow_metric metric)
{
    return metrics[metric].needs;
}
