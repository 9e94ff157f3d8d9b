/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What qpscope-host tells who watches it: its counters and its stream's state at /metrics (doc/metrics.md). Reads what
 * the agent's thread writes without holding it up.
 */
#pragma once

#include "wire/emitter.h"
#include "wire/metric/metric_page.h"

struct exposition;

/*
 * The counters, the stream and `ready`, which says whether the probes are set, outlive it. Without an address nothing
 * is served, and *exposition stays NULL. -errno, logged.
 */
int exposition_open(struct exposition **exposition, const struct metric_page_place *place,
                    const struct counter_table *counters, struct emitter *emitter, const bool *ready);

/* A no-op on NULL. */
void exposition_close(struct exposition **exposition);
