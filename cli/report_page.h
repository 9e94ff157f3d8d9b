/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of qpscope report: a template (page/, made at build time) with what the other subcommands print of the same
 * store put into it as JSON. What stands in that JSON is stated in the man page of qpscope (REPORT). One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/report.h"

/* Whether this build has a template; logs what to do where it has none. */
bool report_page_is_built(void);

struct report_page_counts {
    int64_t steps;
    int64_t detailed; /* of these, with their time line */
};

/*
 * Writes the page to `out`. `range` names the steps with a time line, or is STORE_NULL twice: the worst ones. `name` is
 * what the page calls the store. -errno after logging; errors of writing stay in `out`.
 */
int report_page_write(struct report *report, FILE *out, const char *name, const struct store_value range[2],
                      struct report_page_counts *counts);
