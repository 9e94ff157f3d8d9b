/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of what was counted by others, and of what can be seen at all. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "correlator/analysis.h"
#include "correlator/store/store_private.h"
#include "correlator/verdict/verdict.h"

typedef int64_t i64;

static i64 row(int32_t index)
{
    return index < 0 ? -1 : index + 1;
}

/* "packets, wire_bytes" */
static const char *field_names(uint32_t fields, char text[256])
{
    text[0] = '\0';
    for (unsigned bit = 0; bit < 32; bit++) {
        size_t length = strlen(text);
        const char *name = (fields >> bit & 1) != 0 ? source_field_name(bit) : NULL;
        if (name != NULL)
            snprintf(text + length, 256 - length, "%s%s", length == 0 ? "" : ", ", name);
    }
    return text;
}

static const char *address_text(const uint8_t *address, char text[INET6_ADDRSTRLEN])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t none[ADDRESS_BYTES];

    if (memcmp(address, none, sizeof none) == 0)
        return NULL;
    return memcmp(address, mapped, sizeof mapped) == 0
               ? inet_ntop(AF_INET, address + sizeof mapped, text, INET6_ADDRSTRLEN)
               : inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
}

static void put_sources(struct store *store, const struct counted *counted)
{
    char text[256], missing[256];

    for (size_t i = 0; i < counted->sources.count; i++) {
        const struct record_traffic_source *record = &counted->sources.items[i].record;
        const char *name = traffic_source_name(record->kind);
        store_put(store, STORE_traffic_source, "isssnn", (i64)counted->sources.items[i].stream + 1,
                  name == NULL ? "unknown" : name, field_names(record->fields, text),
                  field_names(~record->fields, missing), (i64)record->grain_ns, (i64)record->stamp_bound_ns);
    }
}

static void put_endpoints(struct store *store, const struct counted *counted)
{
    static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    char address[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];

    for (size_t i = 0; i < counted->endpoints.count; i++) {
        const struct endpoint *endpoint = &counted->endpoints.items[i];
        const struct record_endpoint *record = &endpoint->record;
        store_put(store, STORE_endpoint, "iirriissnsnnn", (i64)i + 1, (i64)endpoint->stream + 1, row(endpoint->port),
                  row(endpoint->queue_pair), (i64)record->qpn, (i64)record->generation,
                  address_text(record->address, address), address_text(record->remote_address, remote),
                  (i64)record->remote_qpn, record->state < 7 ? states[record->state] : NULL,
                  (i64)record->path_mtu_bytes, (i64)endpoint->first_ns, (i64)endpoint->gone_ns);
    }
}

static void put_readings(struct store *store, const struct counted *counted)
{
    for (size_t i = 0; i < counted->readings.count; i++) {
        const struct reading *reading = &counted->readings.items[i];
        const struct record_reading *record = &reading->record;
        if (!limit_has_traffic(store_limit(store), reading->to_ns))
            continue;
        int has_bytes = (record->fields & (SOURCE_WIRE_BYTES | SOURCE_PAYLOAD_BYTES | SOURCE_PAYLOAD_BOUNDS)) != 0;
        int has_progress = (record->fields & SOURCE_PROGRESS) != 0;
        int has_sent = (record->flags & READING_RECEIVED_ONLY) == 0;
        int has_received = (record->flags & READING_SENT_ONLY) == 0;
        store_put(store, STORE_reading, "iiiiiikkkkkkkki", row(reading->endpoint), (i64)reading->from_ns,
                  (i64)reading->to_ns, (i64)record->from_bound_ns, (i64)record->to_bound_ns, (i64)reading->bound_ns,
                  has_sent, (i64)record->sent_packets, has_sent && has_bytes, (i64)record->sent_bytes_least,
                  has_sent && has_bytes, (i64)record->sent_bytes_most, has_received, (i64)record->received_packets,
                  has_received && has_bytes, (i64)record->received_bytes_least, has_received && has_bytes,
                  (i64)record->received_bytes_most, has_progress, (i64)record->acknowledged_packets, has_progress,
                  (i64)record->unacknowledged_packets, (i64)record->flags);
    }
}

static void put_port_counters(struct store *store, const struct counted *counted)
{
    for (size_t i = 0; i < counted->port_counters.count; i++) {
        const struct port_counter *counter = &counted->port_counters.items[i];
        const char *name = port_metric_name(counter->record.metric);
        if (!limit_has_detail(store_limit(store), counter->to_ns))
            continue;
        store_put(store, STORE_port_counter, "iiskiiiii", (i64)i + 1, row(counter->port),
                  name == NULL ? "unknown" : name, (int)(counter->record.priority != PRIORITY_NONE),
                  (i64)counter->record.priority, (i64)counter->from_ns, (i64)counter->to_ns, (i64)counter->record.value,
                  (i64)counter->added, (i64)((counter->record.flags & PORT_COUNTER_RESET) != 0));
    }
}

void store_counted(struct store *store, const struct analysis *analysis)
{
    char text[256];
    char withheld[256];

    store_put(store, STORE_meta, "ss", "fields", field_names(analysis->counted.fields, text));
    if (verdict_withheld(analysis->counted.fields, withheld, sizeof withheld))
        store_put(store, STORE_meta, "ss", "verdicts_withheld", withheld);
    put_sources(store, &analysis->counted);
    put_endpoints(store, &analysis->counted);
    put_readings(store, &analysis->counted);
    put_port_counters(store, &analysis->counted);
}
