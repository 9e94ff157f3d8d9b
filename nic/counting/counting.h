/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is counted by others and only passed on: the endpoints and readings of a counting source, and the ports'
 * counters beside any source. Goes to the publisher, to standard output, or to both. One thread.
 */
#pragma once

#include <stdint.h>

#include "nic/publisher.h"
#include "nic/report.h"
#include "nic/source/source.h"
#include "nic/tally.h"

struct port_counters;

struct counting {
    struct source *source;
    struct publisher *publisher; /* NULL: none */
    struct report *report;       /* NULL: nothing is printed */
    struct tallies *tallies;     /* NULL: nobody counts */
    uint64_t told_refused;
    struct port_counters *port_counters; /* NULL: none are watched */
    uint64_t epoch;                      /* of the publisher, when the endpoints were last all handed out */
    struct record_traffic_source told;   /* kind 0: nothing yet */
    uint64_t fallback_grain_ns;          /* where the source knows none: the window */
    uint64_t due_ns;                     /* of what it tells of itself */
};

/* Passes on what is there. Cheap when nothing is. */
void counting_pass(struct counting *counting);
