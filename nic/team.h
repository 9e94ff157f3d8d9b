/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The workers of a live run: one in the calling thread, or several in threads of their own while the calling one hands
 * control messages on.
 */
#pragma once

#include <stdatomic.h>

#include "nic/exposition/exposition.h"
#include "nic/meter.h"
#include "nic/port/port_watch.h"
#include "nic/publisher.h"
#include "nic/source/source.h"
#include "nic/worker.h"

struct team_options {
    struct meter_options meter;         /* memory_bytes is for all workers together, the rest for each */
    struct publisher_options publisher; /* of a single worker; several get names, files and links made of it */
    struct source_dpdk_options source;
    struct port_watch_options ports;      /* whose counters go with the first worker's stream */
    const struct metric_page_place *http; /* where metrics are served */
};

struct team;

/* Opens ports, workers and streams. -errno after logging. */
int team_open(struct team **team, const struct team_options *options);

/* Works until *stop is set, or until one cannot go on, which stops all: its -errno. */
int team_run(struct team *team, atomic_bool *stop);

/* Sends the last of everything. Returns the first error of a capture file; a no-op on NULL. */
int team_close(struct team **team);
