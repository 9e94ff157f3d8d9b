/* SPDX-License-Identifier: BSD-2-Clause */
/* What hangs: who waits in it, who is missing, and since when. */
#pragma once

#include <stdbool.h>

#include "report/report.h"

/* *hangs: there is a verdict that something hangs. -errno after logging. */
int hang_report_find(struct report *report, bool *hangs);

/* In JSON the object "hang" (null: nothing does) and the array "hang_ranks", else words and a table. -errno after
 * logging. */
int hang_report_print(struct report *report);
