/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What NIC sides can see, and what was counted for them: sources, endpoints with their readings, ports' counters.
 * Beside naming, which has what NIC sides saw in frames. Times in the reference clock, 0 = unknown; indices -1 = none.
 * One thread.
 */
#pragma once

#include "correlator/naming/naming.h"

struct source_view { /* one a NIC stream */
    size_t stream;
    struct record_traffic_source record;
};

struct endpoint {
    size_t stream;
    struct record_endpoint record;
    int32_t port;
    int32_t queue_pair; /* the same one as the host side knows it */
    uint64_t first_ns;
    uint64_t gone_ns;
};

struct reading {
    int32_t endpoint;
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t bound_ns; /* of both against the reference clock */
    struct record_reading record;
};

struct port_counter {
    int32_t port;
    uint64_t added; /* since the change before; of a state 1, but 0 of the first that was told */
    uint64_t from_ns;
    uint64_t to_ns;
    struct record_port_counter record;
};

struct counted {
    ARRAY(struct source_view) sources;
    ARRAY(struct endpoint) endpoints; /* by stream, number */
    ARRAY(struct reading) readings;
    ARRAY(struct port_counter) port_counters; /* by port, metric, priority, time; each change once */
    uint32_t fields;        /* enum source_field: what any source fills; a NIC side that does not say sees frames */
    uint64_t orphans_count; /* readings and counters of what was never described */
};

void counted_build(struct counted *counted, const struct naming *naming, const struct intake *intake,
                   const struct timeline *timeline);
/* What the stream's source fills, whatever its ports leave out. */
uint32_t counted_fields(const struct counted *counted, size_t stream);

/* Whether the port is the one that the queue pair uses: by address where both are known, else by machine and device. */
bool counted_is_port_of(const struct intake *intake, const struct port *port, const struct queue_pair *pair);

void counted_fini(struct counted *counted);
