/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passing counts on. Invariant: who has just begun to listen hears of the source and of every endpoint before a
 * reading.
 */
#include "nic/counting/counting.h"

#include "nic/port/port_counter.h"
#include "wire/clock.h"

#define GRAIN_INTERVAL_NS 1000000000u
#define COUNTS_AT_ONCE    64

static void pass_count(struct counting *counting, struct source_count *count)
{
    bool is_endpoint = count->kind == RECORD_ENDPOINT;

    if (counting->report != NULL && is_endpoint)
        report_endpoint(counting->report, &count->endpoint);
    if (counting->report != NULL && !is_endpoint)
        report_reading(counting->report, &count->reading);
    if (counting->publisher != NULL && is_endpoint)
        publisher_add(counting->publisher, RECORD_ENDPOINT, &count->endpoint);
    if (counting->publisher != NULL && !is_endpoint)
        publisher_add(counting->publisher, RECORD_READING, &count->reading);
}

static void pass_port_counters(struct counting *counting)
{
    struct record_port_counter change;

    while (counting->port_counters != NULL && port_counters_take(counting->port_counters, &change)) {
        if (counting->report != NULL)
            report_port_counter(counting->report, &change);
        if (counting->publisher != NULL)
            publisher_add(counting->publisher, RECORD_PORT_COUNTER, &change);
    }
}

static bool is_much(uint64_t number, uint64_t told)
{
    return number > told + told / 2 || number < told / 2;
}

/* Says what the source can see; again when that has become another, or a number in it another by half. */
static void pass_grain(struct counting *counting)
{
    struct record_traffic_source description;
    uint64_t now_ns = clock_now_ns();

    if (now_ns < counting->due_ns)
        return;
    counting->due_ns = now_ns + GRAIN_INTERVAL_NS;
    uint64_t refused = source_refused(counting->source);
    if (counting->tallies != NULL)
        tally_add(counting->tallies, TALLY_ENDPOINTS_REFUSED, refused - counting->told_refused);
    counting->told_refused = refused;
    source_describe(counting->source, &description);
    if (description.grain_ns == 0)
        description.grain_ns = counting->fallback_grain_ns;
    const struct record_traffic_source *told = &counting->told;
    if (told->kind != 0 && told->fields == description.fields && !is_much(description.grain_ns, told->grain_ns) &&
        !is_much(description.stamp_bound_ns, told->stamp_bound_ns))
        return;
    counting->told = description;
    description.at_ns = counting->publisher == NULL ? now_ns : publisher_now_ns(counting->publisher);
    if (counting->publisher != NULL)
        publisher_set_source(counting->publisher, &description);
    if (counting->report != NULL)
        report_source(counting->report, &description);
}

void counting_pass(struct counting *counting)
{
    struct source_count counts[COUNTS_AT_ONCE];
    size_t received;

    pass_grain(counting);
    if (counting->publisher != NULL && publisher_epoch(counting->publisher) != counting->epoch) {
        counting->epoch = publisher_epoch(counting->publisher);
        source_repeat(counting->source);
        if (counting->port_counters != NULL)
            port_counters_repeat(counting->port_counters);
    }
    while ((received = source_counts(counting->source, counts, COUNTS_AT_ONCE)) != 0)
        for (size_t i = 0; i < received; i++)
            pass_count(counting, &counts[i]);
    pass_port_counters(counting);
}
