/* SPDX-License-Identifier: BSD-2-Clause */
/* The time line of one step in the page's JSON. One thread. */
#pragma once

#include <stdint.h>

#include "report/report.h"

/* Members of the open object, of a page that holds `steps` such steps. -errno after logging. */
int page_detail_put(struct report *report, int64_t step, int64_t steps);

/* The same of what hangs; only where something does (hang_report_find). */
int page_detail_put_hang(struct report *report, int64_t steps);
