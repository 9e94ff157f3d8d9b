/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running agent: all parts of the host side together, from their opening to their end. Sleeps in epoll; wakes for
 * events, for new executable mappings, for requests, and every 50 ms for what every stream must have. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/emitter.h"
#include "wire/metric/metric_page.h"
#include "wire/option.h"
#include "wire/reload.h"

struct agent_options {
    struct emitter_options emitter; /* kind, instance, clock and counters are the agent's */
    const char *control;            /* NULL = nobody is heard */
    struct metric_page_place http;  /* where metrics are served */
    struct option_list roots;
    struct option_list libraries;
    uint64_t buffer_bytes;
    uint64_t probe_time_ns; /* of each second of a process; 1 s = as much as probes take */
    bool json;
    bool verbose;
    struct reload *reload; /* which changes probe_time_ns and verbose */
};

/* Runs until SIGINT or SIGTERM. 0 or -errno, logged. */
int agent_run(const struct agent_options *options);

/* Loads the probes and takes them away again: 0 or -errno, logged with what is missing. */
int agent_check(const struct agent_options *options);
