/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What qpscope-nic tells who watches it: /metrics of all its readers together (doc/metrics.md). Reads what the readers
 * write without holding them up.
 */
#pragma once

#include "nic/worker.h"
#include "wire/metric/metric_page.h"

struct exposition;

/*
 * `workers`: of each their counters, board and stream, which outlive the exposition. Without an address nothing is
 * served, and *exposition stays NULL. -errno, logged.
 */
int exposition_open(struct exposition **exposition, const struct metric_page_place *place,
                    const struct worker *const *workers, size_t count);

/* A no-op on NULL. */
void exposition_close(struct exposition **exposition);
