/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: endpoints are sorted by (stream, number) and port counters by (port, metric, priority, time), so that
 * equal batches give equal rows in whatever order they came.
 */
#include "correlator/detail/counted.h"

#include <stdio.h>
#include <string.h>

struct builder {
    struct counted *counted;
    const struct naming *naming;
    const struct intake *intake;
    const struct timeline *timeline;
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

static void take_port_counter(struct builder *builder, size_t stream, const struct record_port_counter *record)
{
    struct counted *counted = builder->counted;
    int32_t port = find_port(builder->naming, stream, record->header.source);

    if (port < 0) {
        counted->orphans_count++;
        return;
    }
    struct port_counter *counter = array_add(&counted->port_counters);
    counter->port = port;
    counter->from_ns = timeline_map(builder->timeline, stream, record->from_ns).ns;
    counter->to_ns = timeline_map(builder->timeline, stream, record->to_ns).ns;
    counter->record = *record;
}

static int series_order(const struct port_counter *left, const struct port_counter *right)
{
    if (left->port != right->port)
        return left->port < right->port ? -1 : 1;
    if (left->record.metric != right->record.metric)
        return left->record.metric < right->record.metric ? -1 : 1;
    return (left->record.priority > right->record.priority) - (left->record.priority < right->record.priority);
}

static int by_series_and_time(const void *a, const void *b)
{
    const struct port_counter *left = a;
    const struct port_counter *right = b;
    int order = series_order(left, right);

    return order != 0 ? order : (left->record.to_ns > right->record.to_ns) - (left->record.to_ns < right->record.to_ns);
}

static uint64_t added_since(const struct port_counter *counter, const struct port_counter *before)
{
    if (port_metric_kind(counter->record.metric) == PORT_METRIC_STATE)
        return before != NULL;
    if (before == NULL)
        return counter->record.value;
    return counter->record.value > before->record.value ? counter->record.value - before->record.value : 0;
}

/* A change that was told again, for a new listener's sake, is the one before. */
static void order_port_counters(struct counted *counted)
{
    size_t kept = 0;

    array_sort(&counted->port_counters, by_series_and_time);
    for (size_t i = 0; i < counted->port_counters.count; i++) {
        struct port_counter counter = counted->port_counters.items[i];
        struct port_counter *before = kept == 0 ? NULL : &counted->port_counters.items[kept - 1];
        if (before != NULL && by_series_and_time(before, &counter) == 0)
            continue;
        counter.added = added_since(&counter, before != NULL && series_order(before, &counter) == 0 ? before : NULL);
        counted->port_counters.items[kept++] = counter;
    }
    counted->port_counters.count = kept;
}

/* Endpoints first: a loss may have reordered what names something and what refers to it. */
static void walk_names(struct builder *builder)
{
    struct intake_walk walk = {.intake = builder->intake, .skips_runs = true};
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
    struct intake_walk walk = {.intake = builder->intake, .skips_runs = true};
    union record record;

    while (intake_next(&walk, &record)) {
        if (record.header.kind == RECORD_READING)
            take_reading(builder, walk.stream, &record.reading);
        if (record.header.kind == RECORD_PORT_COUNTER)
            take_port_counter(builder, walk.stream, &record.port_counter);
    }
}

/* NIC sides of before the record exists say nothing, and see frames. */
uint32_t counted_fields(const struct counted *counted, size_t stream)
{
    for (size_t i = 0; i < counted->sources.count; i++)
        if (counted->sources.items[i].stream == stream)
            return counted->sources.items[i].record.fields;
    return traffic_source_fields(TRAFFIC_SOURCE_DPDK);
}

static bool is_one_machine(const struct intake *intake, size_t a, size_t b)
{
    return memcmp(intake->streams.items[a].hello.kernel_boot, intake->streams.items[b].hello.kernel_boot, 16) == 0;
}

/* "rxe0/1" is port 1 of the device "rxe0"; port 0: whichever. */
static bool is_device(const struct port *port, const char *device, unsigned number)
{
    char name[sizeof port->record.name + 1] = "", text[8];
    size_t length;

    memcpy(name, port->record.name, sizeof port->record.name);
    snprintf(text, sizeof text, "/%u", number);
    length = strcspn(name, "/");
    return length < DEVICE_NAME_BYTES && strncmp(name, device, length) == 0 &&
           strnlen(device, DEVICE_NAME_BYTES) == length && (number == 0 || strcmp(name + length, text) == 0);
}

bool counted_is_port_of(const struct intake *intake, const struct port *port, const struct queue_pair *pair)
{
    static const uint8_t none[ADDRESS_BYTES];

    if (memcmp(port->record.address, none, sizeof none) != 0 && memcmp(pair->record.address, none, sizeof none) != 0)
        return memcmp(port->record.address, pair->record.address, sizeof none) == 0;
    return is_one_machine(intake, port->stream, pair->stream) &&
           is_device(port, pair->record.device, pair->record.port);
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
           is_device(&builder->naming->ports.items[endpoint->port], pair->record.device, 0);
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
    walk_names(&builder);
    walk_counts(&builder);
    order_port_counters(counted);
    for (size_t i = 0; i < intake->streams.count; i++)
        if (intake->streams.items[i].kind == EMITTER_NIC)
            counted->fields |= counted_fields(counted, i);
    join(&builder);
}

void counted_fini(struct counted *counted)
{
    array_fini(&counted->sources);
    array_fini(&counted->endpoints);
    array_fini(&counted->readings);
    array_fini(&counted->port_counters);
}
