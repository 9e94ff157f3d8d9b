/* SPDX-License-Identifier: BSD-2-Clause */
/* What was lost, not seen or not attributed: said under every report, so that loss is always visible. One thread. */
#pragma once

#include <stdint.h>

#include "report/report.h"

/* Of all that the store holds: JSON members gaps, loss_counters and lost; else lines of text. -errno after logging. */
int loss_report(struct report *report);

#define LOSS_WORDS_BYTES 256

/* The same in a few words, without JSON: how many things of each kind. -errno after logging. */
int loss_words(struct report *report, char words[LOSS_WORDS_BYTES]);

/* The gaps that touch one step. */
int loss_report_step(struct report *report, int64_t step);

/* Those that touch the time of what hangs. */
int loss_report_hang(struct report *report);
