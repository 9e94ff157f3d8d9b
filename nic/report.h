/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what was measured, on standard output: newline-delimited JSON rows (each with its "row" type, the first one a
 * header with schema_version and generator, the last one a summary with the counters), or tables for people.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "nic/flow/flow.h"
#include "nic/tally.h"
#include "wire/record.h"

#define REPORT_SCHEMA_VERSION 1

struct report {
    FILE *to;
    bool is_json;
    uint32_t window_ns;
    int headed; /* which table's head was printed last */
};

void report_begin(struct report *report, const char *source);
void report_flow(struct report *report, const struct flow *flow, const struct record_flow_total *total);
void report_message(struct report *report, const struct flow *flow, const struct record_message *message);
void report_window(struct report *report, const struct flow *flow, const struct record_window *window);

/* What a source that counts hands out; `endpoint` is the one that the reading is of. */
void report_source(struct report *report, const struct record_traffic_source *source);
void report_endpoint(struct report *report, const struct record_endpoint *endpoint);
void report_reading(struct report *report, const struct record_reading *reading);
void report_port_counter(struct report *report, const struct record_port_counter *counter);

/* The counters; `is_complete` is false when the input could not be read to its end. */
void report_end(struct report *report, const struct counter_table *counters, bool is_complete);
