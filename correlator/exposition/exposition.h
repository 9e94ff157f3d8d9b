/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What qpscope-correlator tells who watches it: the job as metrics at /metrics (doc/metrics.md). The analysis hands
 * over what is new after each run; whoever asks gets what was handed over last. Both hold one lock, for as long as a
 * copy or a page of text takes.
 */
#pragma once

#include "correlator/analysis.h"
#include "wire/metric/metric_page.h"

struct exposition;

/* Never NULL. */
struct exposition *exposition_create(void);
void exposition_destroy(struct exposition **exposition);

/* After a run of the analysis, which took so long. The analysis's thread; a no-op on NULL. */
void exposition_take(struct exposition *exposition, const struct analysis *analysis, uint64_t took_ns);

/* For METRIC_PAGE_ROUTES; lives as long as the exposition. */
struct metric_page *exposition_page(struct exposition *exposition);
