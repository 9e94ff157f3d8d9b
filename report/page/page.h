/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of qpscope report and of qpscope-correlator: a template (page/, made at build time) with one JSON object put
 * into it, which a live page asks for again as steps end. doc/http.md states what stands in that JSON. One thread a
 * report.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report/report.h"

/* Whether this build has a template; logs what to do where it has none. */
bool page_is_built(void);

/* What the page is of. */
struct page_source {
    const char *name;  /* what it calls the store */
    bool live;         /* it asks for each step's detail, and for all when something is new */
    uint64_t revision; /* of the live store; 0 in a report */
};

struct page_counts {
    int64_t steps;
    int64_t detailed; /* of these, with their time line */
};

/*
 * Writes the page to `out`. `range` names the steps with a time line, or is STORE_NULL twice: the worst ones; a live
 * page has none. -errno after logging; errors of writing stay in `out`.
 */
int page_write(struct report *report, FILE *out, const struct page_source *source, const struct store_value range[2],
               struct page_counts *counts);

/* The JSON alone: of all steps, or of one (-ENOENT, not logged, when there is none of that number). */
int page_write_overview(struct report *report, FILE *out, const struct page_source *source);
int page_write_step(struct report *report, FILE *out, const struct page_source *source, int64_t step);

/* Of what hangs; -ENOENT, not logged, when nothing does. */
int page_write_hang(struct report *report, FILE *out, const struct page_source *source);
