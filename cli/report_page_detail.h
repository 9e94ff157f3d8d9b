/* SPDX-License-Identifier: BSD-2-Clause */
/* The time line of one step in the page's JSON. One thread. */
#pragma once

#include <stdint.h>

#include "cli/report.h"

/* One object of the open array. -errno after logging. */
int report_page_detail(struct report *report, int64_t step);
