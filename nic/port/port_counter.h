/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ports count beside their flows: read from sysfs, from the interface's driver (ethtool) and from the traffic
 * source's driver (DPDK's xstats) in a thread of its own, since a reading may take milliseconds; brought to one set of
 * names (port_counter.def, wire/port_metric.def) and told where it changed. Where several places keep the same metric
 * the first in the table that has it is read.
 *
 * One thread takes; the reading thread is inside.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

struct port_counters;
struct source;

struct port_counter_target {
    uint32_t port;   /* its number in records */
    char device[64]; /* RDMA device; empty: none */
    unsigned device_port;
    char interface[16];    /* empty: none */
    struct source *source; /* whose statistics of the port are read; NULL: none */
};

struct port_counter_options {
    const struct port_counter_target *targets;
    size_t targets_count;
    uint64_t interval_ns;
    const char *sysfs; /* "/sys" */
};

/* -ENOMEM. A counter that is not there is no error: what can be read is found out here, and said once. */
int port_counters_open(struct port_counters **counters, const struct port_counter_options *options);
void port_counters_close(struct port_counters **counters);

/* Begins to read every interval, or as often as takes a twentieth of the time. Without it port_counters_round reads
 * once. */
int port_counters_start(struct port_counters *counters);
void port_counters_round(struct port_counters *counters);

/* The next change; false when there is none. When nobody takes them the newest are dropped, and told later by their
 * totals. */
bool port_counters_take(struct port_counters *counters, struct record_port_counter *change);

/* Tells all that was ever told once more. */
void port_counters_repeat(struct port_counters *counters);

/* How many metrics of a target are read. */
size_t port_counters_watched(const struct port_counters *counters, uint32_t port);
