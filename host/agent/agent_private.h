/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent's files share. agent.c opens, runs and closes; agent_seam.c is what the parts ask of each other;
 * agent_request.c follows what somebody asks for; agent_budget.c keeps the probes within their time.
 */
#pragma once

#include "host/agent/agent.h"
#include "host/agent/budget.h"
#include "host/counter.h"
#include "host/exposition.h"
#include "host/follow/control.h"
#include "host/follow/follow.h"
#include "host/follow/work.h"
#include "host/library/discovery.h"
#include "host/machine/machine_port.h"
#include "host/probe/probe.h"
#include "host/probe/watch.h"
#include "host/publisher.h"
#include "host/tracker/tracker.h"

/* As many as are probed, and 0. */
#define LIBRARIES_NOTED 257

/* A library with probes, as it was when they were ordered. */
struct noted_library {
    bool splits;      /* it defines ncclCommSplit */
    uint32_t version; /* as ncclGetVersion gives it; 0 = not known */
    uint64_t mapped_ns;
    char kinds[128];
    char path[256];
};

struct agent {
    const struct agent_options *options;
    uint64_t counters[HOST_COUNTERS];
    struct counter_table counter_table;
    struct probe *probe;
    struct watch *watch; /* NULL = may not be had */
    uint64_t ticks;
    struct discovery *discovery;
    struct tracker *tracker;
    struct publisher *publisher;
    struct exposition *exposition; /* NULL = nobody watches */
    struct control *control;       /* NULL = nobody is heard */
    struct follow *follow;
    struct work *work;
    struct noted_library libraries[LIBRARIES_NOTED]; /* by number */
    uint64_t started_ns;                             /* clock_now_ns */
    bool discovered;                                 /* what was there at the start has been looked for */
    bool ready;                                      /* and its probes are set */
    bool scans;                                      /* processes or folders are being looked at */
    bool ends;
    int error; /* why */
    struct budget *budget;
    struct budget_hits hits;
    uint64_t calls; /* of `hits` */
    uint64_t described_epoch;
    struct machine_ports ports;
    int poll;
    int timer;
    int signals;
};

/* ---- agent.c ---- */

/* Of discovery_options: lets a turn of the loop come between. */
bool agent_go_on(void *context);

/* ---- agent_seam.c ---- */

void agent_raise_counter(struct agent *agent, enum host_counter counter, uint64_t value);

/* Of probe_options, tracker_system, discovery_options and watch_read; the context is the agent. */
void agent_take_event(void *context, const void *event, size_t length_bytes);
void agent_take_attached(void *context, const struct placement_attached *attached);
struct tracker_system agent_tracker_system(struct agent *agent);
struct discovery_options agent_discovery_options(struct agent *agent);
void agent_look_at_mapping(void *context, pid_t pid, const struct mapping *mapping, uint64_t at_ns);

/* ---- agent_request.c ---- */

int agent_open_requests(struct agent *agent, const struct agent_options *options);
void agent_read_requests(struct agent *agent);

/* ---- agent_budget.c ---- */

int agent_open_budget(struct agent *agent, const struct agent_options *options);

/* SIGHUP came. */
void agent_reload(struct agent *agent, const struct agent_options *options);
void agent_keep_within_budget(struct agent *agent, uint64_t now_ns);
