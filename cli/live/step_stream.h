/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps as they end, of a store that goes on being written: each once, when a later one is there, or when two looks
 * found it the same. One thread.
 */
#pragma once

#include <stdint.h>

#include "report/report.h"

struct step_stream {
    int64_t told_ns;   /* start of the last one that was told */
    int64_t newest_ns; /* of the look before: the newest one's start, and what was known of it */
    int64_t newest_mark;
};

void step_stream_init(struct step_stream *stream);

/*
 * Rows of the listing step_listing that are new: a line of text each, or a JSON object on a line of its own, with
 * schema_version and generator. -errno after logging.
 */
int step_stream_print(struct step_stream *stream, struct report *report);

/* The same as members of the open JSON array. */
int step_stream_json(struct step_stream *stream, struct report *report);
