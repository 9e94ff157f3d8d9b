/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables that follow from record.def and operation.def. Invariant: a layout, once released, keeps its size and the
 * offsets of its fields; what is asserted here is what peers of other versions rely on.
 */
#include "wire/record.h"

#include <assert.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian and are copied as they are");
static_assert(sizeof(struct batch_header) == 48, "batch header");
static_assert(sizeof(struct record_hello) == 168, "hello");
static_assert(sizeof(struct record_heartbeat) == 24, "heartbeat");
static_assert(sizeof(struct record_clock_pair) == 40, "clock pair");
static_assert(sizeof(struct record_clock_sample) == 48, "clock sample");
static_assert(sizeof(struct record_counter) == 64, "counter");
static_assert(sizeof(struct record_loss) == 40, "loss");
static_assert(sizeof(struct record_port) == 64, "port");
static_assert(sizeof(struct record_flow) == 88, "flow");
static_assert(sizeof(struct record_message) == 40, "message");
static_assert(sizeof(struct record_window) == 40, "window");
static_assert(sizeof(struct record_flow_total) == 192, "flow total");
static_assert(sizeof(struct record_trigger) == 80, "trigger");
static_assert(sizeof(struct record_trigger_end) == 56, "trigger end");
static_assert(sizeof(struct record_traffic_source) == 56, "traffic source");
static_assert(sizeof(struct record_endpoint) == 88, "endpoint");
static_assert(sizeof(struct record_reading) == 96, "reading");
static_assert(sizeof(struct record_port_counter) == 40, "port counter");
static_assert(sizeof(struct record_coarse_window) == 48, "coarse window");
static_assert(sizeof(struct record_pin) == 48, "pin");
static_assert(sizeof(struct record_message_run) == 8, "message run");
static_assert(sizeof(struct record_process) == 144, "process");
static_assert(sizeof(struct record_process_fact) == 184, "process fact");
static_assert(sizeof(struct record_communicator) == 112, "communicator");
static_assert(sizeof(struct record_queue_pair) == 176, "queue pair");
static_assert(sizeof(struct record_call) == 64, "call");
static_assert(sizeof(struct record_marker) == 64, "marker");
static_assert(sizeof(struct record_host_delay) == 88, "host delay");
static_assert(sizeof(struct record_work) == 40, "work");
static_assert(sizeof(struct record_follow) == 32, "follow");
static_assert(sizeof(struct record_followed) == 40, "followed");
static_assert(sizeof(struct record_failure) == 160, "failure");
static_assert(sizeof(struct record_rdma_port) == 112, "rdma port");
static_assert(sizeof(struct record_rank_operation) == 224, "rank operation");

const char *record_kind_name(uint16_t kind)
{
    switch (kind) {
#define RECORD(upper, lower, number, help)                                                                             \
    case number:                                                                                                       \
        return #lower;
#include "wire/record.def"
#undef RECORD
    default:
        return NULL;
    }
}

size_t record_kind_bytes(uint16_t kind)
{
    switch (kind) {
#define RECORD(upper, lower, number, help)                                                                             \
    case number:                                                                                                       \
        return sizeof(struct record_##lower);
#include "wire/record.def"
#undef RECORD
    default:
        return 0;
    }
}

const char *process_fact_name(uint16_t fact)
{
    switch (fact) {
#define FACT(upper, number, text, help)                                                                                \
    case number:                                                                                                       \
        return text;
#define VARIABLE(name, number, help)                                                                                   \
    case number:                                                                                                       \
        return #name;
#include "wire/process_fact.def"
#undef VARIABLE
#undef FACT
    default:
        return NULL;
    }
}

const char *rdma_port_state_name(uint8_t state)
{
    static const char *const names[] = {"gone", "down", "initialising", "armed", "active"};

    return state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

const char *traffic_source_name(uint32_t kind)
{
    switch (kind) {
#define TRAFFIC_SOURCE(name, number, text, fields, grain, verdicts)                                                    \
    case number:                                                                                                       \
        return text;
#include "wire/traffic_source.def"
#undef TRAFFIC_SOURCE
    default:
        return NULL;
    }
}

uint32_t traffic_source_fields(uint32_t kind)
{
    switch (kind) {
#define TRAFFIC_SOURCE(name, number, text, fields, grain, verdicts)                                                    \
    case number:                                                                                                       \
        return fields;
#include "wire/traffic_source.def"
#undef TRAFFIC_SOURCE
    default:
        return 0;
    }
}

const char *source_field_name(unsigned bit)
{
    switch (bit) {
#define SOURCE_FIELD(name, bit, text, help)                                                                            \
    case bit:                                                                                                          \
        return text;
#include "wire/source_field.def"
#undef SOURCE_FIELD
    default:
        return NULL;
    }
}

const char *port_metric_name(uint16_t metric)
{
    switch (metric) {
#define PORT_METRIC(name, number, text, kind, help)                                                                    \
    case number:                                                                                                       \
        return text;
#include "wire/port_metric.def"
#undef PORT_METRIC
    default:
        return NULL;
    }
}

unsigned port_metric_kind(uint16_t metric)
{
    switch (metric) {
#define PORT_METRIC(name, number, text, kind, help)                                                                    \
    case number:                                                                                                       \
        return PORT_METRIC_##kind;
#include "wire/port_metric.def"
#undef PORT_METRIC
    default:
        return 0;
    }
}

uint32_t datatype_bytes(uint8_t datatype)
{
    /* ncclDataType_t: int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 bfloat16 float8e4m3 float8e5m2 */
    static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

    return datatype < sizeof sizes ? sizes[datatype] : 0;
}

const char *marker_name(uint16_t marker)
{
    switch (marker) {
#define MARKER(name, number, text)                                                                                     \
    case number:                                                                                                       \
        return text;
#include "wire/marker.def"
#undef MARKER
    default:
        return NULL;
    }
}

const char *failure_name(uint32_t cause)
{
    switch (cause) {
#define FAILURE(name, number, text, help)                                                                              \
    case number:                                                                                                       \
        return text;
#include "wire/failure.def"
#undef FAILURE
    default:
        return "unknown";
    }
}

const char *operation_name(uint8_t operation)
{
    switch (operation) {
#define OPERATION(name, number, text, point_to_point)                                                                  \
    case number:                                                                                                       \
        return text;
#include "wire/operation.def"
#undef OPERATION
    case OPERATION_TRAFFIC:
        return "Traffic";
    default:
        return "Unknown";
    }
}
