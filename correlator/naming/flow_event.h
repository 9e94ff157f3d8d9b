/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happened to flows that ought to be rare, and when: by how much such a count rose between two totals of a flow.
 * `naks`, `rnr_naks` and `cnps` travel in the flow and concern the other direction of its connection.
 */
#pragma once

#include "correlator/array.h"
#include "wire/record.h"

enum flow_metric {
#define FLOW_METRIC(name, text, field, factor, needs) FLOW_METRIC_##name,
#include "correlator/verdict/flow_metric.def"
#undef FLOW_METRIC
    FLOW_METRICS
};

struct flow_event {
    int32_t flow;
    enum flow_metric metric;
    uint64_t from_ns; /* it happened within [from_ns, to_ns); reference clock */
    uint64_t to_ns;
    uint64_t amount;
};
typedef ARRAY(struct flow_event) flow_event_list;

/*
 * Adds what rose from one total of a flow to the next; `before` is all zeros for its first one. From `silent_ns` on, in
 * the reference clock, no frame had come when `before` was told.
 */
void flow_event_add(flow_event_list *events, const struct flow_event *where, const struct record_flow_total *before,
                    const struct record_flow_total *after, uint64_t silent_ns);

const char *flow_metric_name(enum flow_metric metric);
uint32_t flow_metric_needs(enum flow_metric metric); /* enum source_field */
