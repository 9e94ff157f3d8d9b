/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the job can afford its probes. The time that they took of it is hits times what a hit costs; where that is
 * more than its share of a second, the duties that can be done without are given up, the dearest first, and taken up
 * again later. Data calls are always told. Pure logic; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/library/library.h"

enum budget_cost {
    COST_ENTRY,  /* a probe at an entry */
    COST_RETURN, /* at a return */
    COST_SWITCH, /* a thread that is followed leaves or comes to a CPU */
    COSTS
};

struct budget_options {
    double share;            /* of the time of one thread of each process: 0.0016 */
    uint64_t cost_ns[COSTS]; /* of a hit */
    void (*set)(void *context, enum probe_duty duty, bool on);
    void *context;
};

struct budget;

int budget_create(struct budget **budget, const struct budget_options *options);
void budget_destroy(struct budget **budget);

/* Another share from now on: what was given up for the old one is tried again as after any other. */
void budget_set_share(struct budget *budget, double share);

/* Hits so far, and the processes that they were of now. */
struct budget_hits {
    uint64_t total[DUTIES][COSTS];
    uint64_t processes;
};

/* Call often; decides once a second. Returns how often something was given up so far. */
uint64_t budget_tick(struct budget *budget, uint64_t now_ns, const struct budget_hits *hits);

/* The probes' share of the job's time in the last second that was looked at. */
double budget_share(const struct budget *budget);
bool budget_allows(const struct budget *budget, enum probe_duty duty);
