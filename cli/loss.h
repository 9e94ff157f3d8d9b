/* SPDX-License-Identifier: BSD-2-Clause */
/* What was lost, not seen or not attributed: said under every report, so that loss is always visible. One thread. */
#pragma once

#include <stdint.h>

#include "cli/report.h"

/* Of all that the store holds: JSON members gaps, loss_counters and lost; else lines of text. -errno after logging. */
int loss_report(struct report *report);

/* The gaps that touch one step. */
int loss_report_step(struct report *report, int64_t step);
