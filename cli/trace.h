/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store, or some steps of it, as a Perfetto trace. Which rows become which slices, counters and instants is stated in
 * the man page of qpscope (PERFETTO) and checked by tests/cli/perfetto_check.py: change the three together.
 */
#pragma once

#include <stdint.h>

#include "cli/perfetto.h"
#include "report/read/store_reader.h"

struct trace_options {
    struct store_value range[2]; /* the first and the last step, or STORE_NULL twice for all that is in the store */
    int64_t values_max;          /* of all counters together: above it flows get means */
    int64_t slices_max;          /* operations of ranks: above it they go without annotations and arrows */
};

struct trace_counts {
    int64_t steps;
    int64_t slices;   /* operations of ranks */
    int64_t left_out; /* operations of ranks without a known begin or end */
    int64_t arrows;
    int64_t verdicts;
    int64_t counter_tracks;
    int64_t counter_values;
    int64_t thinned_tracks;  /* of these, those with means */
    int64_t without_details; /* operations of ranks without annotations */
};

/* -errno after logging. */
int trace_write(struct store_reader *store, const struct trace_options *options, struct perfetto *perfetto,
                struct trace_counts *counts);
