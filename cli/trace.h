/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store, or some steps of it, as a Perfetto trace. Which rows become which slices, counters and instants is stated in
 * the man page of qpscope (PERFETTO) and checked by tests/cli/perfetto_check.py: change the three together.
 */
#pragma once

#include <stdint.h>

#include "cli/perfetto.h"
#include "cli/store_reader.h"

struct trace_counts {
    int64_t steps;
    int64_t slices;   /* operations of ranks */
    int64_t left_out; /* operations of ranks without a known begin or end */
    int64_t verdicts;
    int64_t counter_tracks;
    int64_t counter_values;
};

/* `range` is the first and the last step, or STORE_NULL twice for all that is in the store. -errno after logging. */
int trace_write(struct store_reader *store, const struct store_value range[2], struct perfetto *perfetto,
                struct trace_counts *counts);
