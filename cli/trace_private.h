/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the trace's files share. trace.c has the order of things, nodes, ranks, clocks, steps and verdicts;
 * trace_operation.c the operations of ranks and the arrows between them; trace_flow.c the rates of flows.
 */
#pragma once

#include <stdbool.h>

#include "cli/trace.h"

#define TRACE_LANES_MAX  256
#define TRACE_NAME_BYTES 160
#define TRACE_NOTES_MAX  24

/* Identities of tracks: ranks have theirs by number, so that lanes and counters find their parent. */
#define TRACK_VERDICTS 2
#define TRACK_CLOCKS   3
#define TRACK_RANKS    (1ull << 32) /* an unknown rank; rank r is r + 1 above it */
#define TRACK_OTHERS   (1ull << 33)
#define TRACK_NODES    (1ull << 34)

struct trace {
    struct store_reader *store;
    struct perfetto *perfetto;
    struct trace_counts *counts;
    const struct trace_options *options;
    uint64_t next_track;
    int64_t next_order;
    bool is_lean; /* operations go without annotations, since there are so many */
};

/* The tracks on which the slices of one sort stand: as many as overlap at once. */
struct lanes {
    char name[TRACE_NAME_BYTES];
    uint64_t parent;
    size_t count;
    int64_t ends_ns[TRACE_LANES_MAX];
    uint64_t tracks[TRACE_LANES_MAX];
};

uint64_t trace_rank_track(struct store_value rank);
uint64_t trace_make_track(struct trace *trace, const char *name, uint64_t parent, const char *unit);

/* The first lane that is free at `begin_ns`, taken until `end_ns`; 0 when there are too many. */
uint64_t trace_lane(struct trace *trace, struct lanes *lanes, int64_t begin_ns, int64_t end_ns);

/* The columns of a query from `first` on, as notes with these names. */
size_t trace_notes(const struct store_query *query, size_t first, const char *const *names, size_t count,
                   struct perfetto_note *notes);

/* Calls `put` for each row of a query on the chosen steps (?1 and ?2). */
int trace_each(struct trace *trace, const char *sql, void *context,
               void (*put)(struct trace *trace, const struct store_query *row, void *context));

int trace_operations(struct trace *trace);
int trace_flows(struct trace *trace);
