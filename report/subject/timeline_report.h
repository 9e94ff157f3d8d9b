/* SPDX-License-Identifier: BSD-2-Clause */
/* A step as lanes of text, and its operations: what qpscope timeline prints. */
#pragma once

#include "report/report.h"

/* Of `step`, or of the worst where that is STORE_NULL. -errno after logging. */
int timeline_report_print(struct report *report, const struct store_value *step);

/* The same of what hangs: from where its step began until when it was seen not to have ended. */
int timeline_report_print_hang(struct report *report);
