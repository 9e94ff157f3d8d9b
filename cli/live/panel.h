/* SPDX-License-Identifier: BSD-2-Clause */
/* The lists that qpscope top shows, of an open store. One thread. */
#pragma once

#include "report/report.h"

enum panel_kind {
    PANEL_STEPS, /* newest first */
    PANEL_RANKS, /* of the last steps, who cost most first */
    PANEL_FLOWS, /* of the last second that was seen, or less where much is sent; the fastest first */
    PANELS,
};

const char *panel_title(enum panel_kind panel);

/* A table of so many rows (-1: all) behind the first `skip` ones, or the JSON array of its name. -errno after logging.
 */
int panel_print(struct report *report, enum panel_kind panel, int64_t rows, int64_t skip);
