/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: endpoints are sorted by (stream, number), so that equal batches give equal rows in whatever order they
 * came.
 */
#include "correlator/counted.h"

#include <stdlib.h>
#include <string.h>

#define METRICS_MAX    128
#define PRIORITIES_MAX 9 /* 0 to 7, and the whole port */

struct last { /* what was told last of each metric of a port: index in port_counters, and one */
    int32_t of[METRICS_MAX][PRIORITIES_MAX];
};

struct builder {
    struct counted *counted;
    const struct naming *naming;
    const struct intake *intake;
    const struct timeline *timeline;
    struct last *last; /* by port */
};

static int32_t find_port(const struct naming *naming, size_t stream, uint32_t number)
{
    for (size_t i = 0; i < naming->ports.count; i++)
        if (naming->ports.items[i].stream == stream && naming->ports.items[i].record.port == number)
            return (int32_t)i;
    return -1;
}

static size_t endpoint_place(const struct counted *counted, size_t stream, uint32_t number)
{
    size_t low = 0, high = counted->endpoints.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct endpoint *at = &counted->endpoints.items[middle];
        if (at->stream < stream || (at->stream == stream && at->record.endpoint < number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct counted *counted, size_t place, size_t stream, uint32_t number)
{
    return place < counted->endpoints.count && counted->endpoints.items[place].stream == stream &&
           counted->endpoints.items[place].record.endpoint == number;
}

static void take_endpoint(struct builder *builder, size_t stream, const struct record_endpoint *record)
{
    struct counted *counted = builder->counted;
    size_t place = endpoint_place(counted, stream, record->endpoint);

    if (!is_at(counted, place, stream, record->endpoint)) {
        array_add(&counted->endpoints);
        memmove(&counted->endpoints.items[place + 1], &counted->endpoints.items[place],
                (counted->endpoints.count - 1 - place) * sizeof counted->endpoints.items[0]);
    }
    counted->endpoints.items[place] = (struct endpoint){
        .stream = stream,
        .record = *record,
        .port = find_port(builder->naming, stream, record->port),
        .queue_pair = -1,
        .first_ns = timeline_map(builder->timeline, stream, record->first_ns).ns,
        .gone_ns = timeline_map(builder->timeline, stream, record->gone_ns).ns,
    };
}

static void take_source(struct builder *builder, size_t stream, const struct record_traffic_source *record)
{
    struct counted *counted = builder->counted;
    size_t count = counted->sources.count;
    struct source_view *source = count != 0 && counted->sources.items[count - 1].stream == stream
                                     ? &counted->sources.items[count - 1]
                                     : array_add(&counted->sources);

    source->stream = stream;
    source->record = *record;
    counted->fields |= record->fields;
}

static void take_reading(struct builder *builder, size_t stream, const struct record_reading *record)
{
    struct counted *counted = builder->counted;
    size_t place = endpoint_place(counted, stream, record->header.source);

    if (!is_at(counted, place, stream, record->header.source)) {
        counted->orphans_count++;
        return;
    }
    struct timeline_time from = timeline_map(builder->timeline, stream, record->from_ns);
    struct timeline_time to = timeline_map(builder->timeline, stream, record->to_ns);
    struct reading *reading = array_add(&counted->readings);
    reading->endpoint = (int32_t)place;
    reading->from_ns = from.ns;
    reading->to_ns = to.ns;
    reading->bound_ns = from.bound_ns > to.bound_ns ? from.bound_ns : to.bound_ns;
    reading->record = *record;
}

/* A change that was told again, for a new listener's sake, is the one before. */
static void take_port_counter(struct builder *builder, size_t stream, const struct record_port_counter *record)
{
    struct counted *counted = builder->counted;
    int32_t port = find_port(builder->naming, stream, record->header.source);
    unsigned priority = record->priority < PRIORITIES_MAX - 1 ? record->priority : PRIORITIES_MAX - 1;

    if (port < 0 || record->metric >= METRICS_MAX) {
        counted->orphans_count++;
        return;
    }
    int32_t *last = &builder->last[port].of[record->metric][priority];
    if (*last != 0 && counted->port_counters.items[*last - 1].record.to_ns == record->to_ns)
        return;
    struct port_counter *counter = array_add(&counted->port_counters);
    *last = (int32_t)counted->port_counters.count;
    counter->port = port;
    counter->from_ns = timeline_map(builder->timeline, stream, record->from_ns).ns;
    counter->to_ns = timeline_map(builder->timeline, stream, record->to_ns).ns;
    counter->record = *record;
}

/* Endpoints first: a loss may have reordered what names something and what refers to it. */
static void walk_names(struct builder *builder)
{
    struct intake_walk walk = {.intake = builder->intake};
    union record record;

    while (intake_next(&walk, &record)) {
        if (record.header.kind == RECORD_TRAFFIC_SOURCE)
            take_source(builder, walk.stream, &record.traffic_source);
        if (record.header.kind == RECORD_ENDPOINT)
            take_endpoint(builder, walk.stream, &record.endpoint);
    }
}

static void walk_counts(struct builder *builder)
{
    struct intake_walk walk = {.intake = builder->intake};
    union record record;

    while (intake_next(&walk, &record)) {
        if (record.header.kind == RECORD_READING)
            take_reading(builder, walk.stream, &record.reading);
        if (record.header.kind == RECORD_PORT_COUNTER)
            take_port_counter(builder, walk.stream, &record.port_counter);
    }
}

/* NIC sides of before the record exists say nothing, and see frames. */
static void add_silent_sources(struct counted *counted, const struct intake *intake)
{
    for (size_t i = 0; i < intake->streams.count; i++) {
        bool has_said = false;
        for (size_t s = 0; s < counted->sources.count; s++)
            has_said |= counted->sources.items[s].stream == i;
        if (!has_said && intake->streams.items[i].kind == EMITTER_NIC)
            counted->fields |= traffic_source_fields(TRAFFIC_SOURCE_DPDK);
    }
}

static bool is_one_machine(const struct intake *intake, size_t a, size_t b)
{
    return memcmp(intake->streams.items[a].hello.kernel_boot, intake->streams.items[b].hello.kernel_boot, 16) == 0;
}

/* "rxe0/1" is a port of the device "rxe0". */
static bool is_device(const struct port *port, const char *device)
{
    size_t length = strcspn(port->record.name, "/");

    return length < DEVICE_NAME_BYTES && strncmp(port->record.name, device, length) == 0 &&
           strnlen(device, DEVICE_NAME_BYTES) == length;
}

/* The same number at the same address, or on the same device of the same machine; both lived at one time. */
static bool is_same(const struct builder *builder, const struct endpoint *endpoint, const struct queue_pair *pair)
{
    static const uint8_t none[ADDRESS_BYTES];
    const struct record_endpoint *record = &endpoint->record;

    if (pair->record.qpn != record->qpn || (endpoint->gone_ns != 0 && pair->created_ns > endpoint->gone_ns) ||
        (pair->destroyed_ns != 0 && pair->destroyed_ns < endpoint->first_ns))
        return false;
    if (record->remote_qpn != 0 && pair->record.remote_qpn != 0 && record->remote_qpn != pair->record.remote_qpn)
        return false;
    if (memcmp(record->address, none, sizeof none) != 0 && memcmp(pair->record.address, none, sizeof none) != 0)
        return memcmp(record->address, pair->record.address, sizeof none) == 0;
    return endpoint->port >= 0 && is_one_machine(builder->intake, endpoint->stream, pair->stream) &&
           is_device(&builder->naming->ports.items[endpoint->port], pair->record.device);
}

static void join(struct builder *builder)
{
    struct counted *counted = builder->counted;

    for (size_t i = 0; i < counted->endpoints.count; i++)
        for (size_t p = 0; p < builder->naming->queue_pairs.count && counted->endpoints.items[i].queue_pair < 0; p++)
            if (is_same(builder, &counted->endpoints.items[i], &builder->naming->queue_pairs.items[p]))
                counted->endpoints.items[i].queue_pair = (int32_t)p;
}

void counted_build(struct counted *counted, const struct naming *naming, const struct intake *intake,
                   const struct timeline *timeline)
{
    struct builder builder = {.counted = counted, .naming = naming, .intake = intake, .timeline = timeline};

    memset(counted, 0, sizeof *counted);
    builder.last = array_zeroed((naming->ports.count + 1) * sizeof *builder.last);
    walk_names(&builder);
    walk_counts(&builder);
    add_silent_sources(counted, intake);
    join(&builder);
    free(builder.last);
}

void counted_fini(struct counted *counted)
{
    array_fini(&counted->sources);
    array_fini(&counted->endpoints);
    array_fini(&counted->readings);
    array_fini(&counted->port_counters);
}
