/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of ranks, and arrows from who sent to who received. Invariant: an arrow's two ends lie within two
 * slices that are there, so both are drawn or none.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace_private.h"
#include "wire/log.h"

struct arrow_end {
    int64_t rank_operation; /* within which it lies */
    int64_t time_ns;
    uint64_t number;
    int64_t other_rank;
    enum perfetto_end end;
};

struct arrows {
    struct arrow_end *ends; /* by rank operation, then time */
    size_t count;
    size_t capacity;
    uint64_t next_number;
    int error;
};

struct drawing {
    struct lanes lanes;
    struct arrows arrows;
};

/* ---- arrows ---- */

#define BEGIN_OF(r) "coalesce(" r ".enqueued_ns, " r ".first_data_ns)"
#define END_OF(r)   "max(" r ".end_ns, " BEGIN_OF(r) ")"

enum arrow_column {
    ARROW_SENDER,
    ARROW_RECEIVER,
    ARROW_FIRST,
    ARROW_LAST,
    ARROW_FROM_RANK,
    ARROW_TO_RANK,
};

/* From a rank's first data in an operation to a peer, to its last; where the flow is seen best, as its counter. */
#define ARROWS                                                                                                         \
    "WITH best AS (SELECT queue_pair, min(CASE vantage WHEN 'tx' THEN 0 WHEN 'rx' THEN 1 ELSE 2 END) AS place "        \
    "FROM flow WHERE queue_pair IS NOT NULL GROUP BY queue_pair), "                                                    \
    "sent AS (SELECT m.rank_operation AS sender, f.destination_rank AS peer, min(m.first_ns) AS first_ns, "            \
    "max(m.last_ns) AS last_ns FROM flow AS f JOIN best ON best.queue_pair = f.queue_pair AND best.place = "           \
    "CASE f.vantage WHEN 'tx' THEN 0 WHEN 'rx' THEN 1 ELSE 2 END JOIN message AS m ON m.flow = f.id "                  \
    "WHERE m.role = 'data' AND m.rank_operation IS NOT NULL AND f.communicator IS NOT NULL GROUP BY 1, 2) "            \
    "SELECT s.id, r.id, sent.first_ns, sent.last_ns, s.rank, r.rank FROM sent "                                        \
    "JOIN rank_operation AS s ON s.id = sent.sender JOIN operation AS o ON o.id = s.operation "                        \
    "JOIN rank_operation AS r ON r.operation = s.operation AND r.rank = sent.peer "                                    \
    "WHERE (?1 IS NULL OR o.step BETWEEN ?1 AND ?2) AND s.rank IS NOT NULL AND s.id != r.id "                          \
    "AND sent.first_ns BETWEEN " BEGIN_OF("s") " AND " END_OF("s") " AND sent.last_ns BETWEEN " BEGIN_OF(              \
        "r") " AND " END_OF("r") " ORDER BY s.id, r.id"

static void add_end(struct arrows *arrows, const struct arrow_end *end)
{
    if (arrows->count == arrows->capacity) {
        size_t capacity = arrows->capacity * 2 + 1024;
        struct arrow_end *grown = realloc(arrows->ends, capacity * sizeof(*grown));
        if (grown == NULL) {
            arrows->error = -ENOMEM;
            return;
        }
        arrows->ends = grown;
        arrows->capacity = capacity;
    }
    arrows->ends[arrows->count++] = *end;
}

static void add_arrow(struct trace *trace, const struct store_query *row, void *context)
{
    struct arrows *arrows = context;
    int64_t value[ARROW_TO_RANK + 1];
    for (size_t i = 0; i <= ARROW_TO_RANK; i++) {
        value[i] = store_query_value(row, i).integer;
    }
    uint64_t number = ++arrows->next_number;
    add_end(arrows, &(struct arrow_end){value[ARROW_SENDER], value[ARROW_FIRST], number, value[ARROW_TO_RANK],
                                        PERFETTO_ARROW_BEGINS});
    add_end(arrows, &(struct arrow_end){value[ARROW_RECEIVER], value[ARROW_LAST], number, value[ARROW_FROM_RANK],
                                        PERFETTO_ARROW_ENDS});
    trace->counts->arrows++;
}

static int by_rank_operation(const void *left, const void *right)
{
    const struct arrow_end *a = left;
    const struct arrow_end *b = right;
    if (a->rank_operation != b->rank_operation) {
        return (a->rank_operation > b->rank_operation) - (a->rank_operation < b->rank_operation);
    }
    if (a->time_ns != b->time_ns) {
        return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
    }
    return (a->number > b->number) - (a->number < b->number);
}

static int find_arrows(struct trace *trace, struct arrows *arrows)
{
    int result = trace_each(trace, ARROWS, arrows, add_arrow);
    if (result == 0 && arrows->error != 0) {
        return log_error_return(arrows->error, "out of memory for the trace");
    }
    if (arrows->count > 0) {
        qsort(arrows->ends, arrows->count, sizeof(*arrows->ends), by_rank_operation);
    }
    return result;
}

/* The first end of a rank operation; arrows->count when it has none. */
static size_t first_end(const struct arrows *arrows, int64_t rank_operation)
{
    size_t low = 0;
    size_t high = arrows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (arrows->ends[middle].rank_operation < rank_operation) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void put_end(struct trace *trace, uint64_t track, const struct arrow_end *end)
{
    char name[TRACE_NAME_BYTES];
    snprintf(name, sizeof(name),
             end->end == PERFETTO_ARROW_BEGINS ? "sends to rank %" PRId64 : "has all of rank %" PRId64,
             end->other_rank);
    perfetto_arrow(trace->perfetto, track, end->time_ns, name, end->number, end->end);
}

/* ---- operations ---- */

static const char *const slice_notes[] = {
    "operation",      "rank_operation", "step",          "place",        "buffer_bytes", "observed_bytes",
    "expected_bytes", "algorithm",      "status",        "late_ns",      "arrival_of",   "arrival_ns",
    "host_ready_ns",  "gpu_ready_ns",   "first_data_ns", "last_data_ns", "active_ns",    "retransmitted_frames",
    "marked_frames",
};

enum slice_column {
    SLICE_RANK,
    SLICE_COMMUNICATOR,
    SLICE_BEGIN,
    SLICE_END,
    SLICE_NAME,
    SLICE_ARRIVAL,
    SLICE_NOTES,
    SLICE_IDENTITY = SLICE_NOTES + 1, /* of the rank operation */
};

#define SLICES                                                                                                         \
    "SELECT r.rank, o.communicator, " BEGIN_OF("r") " AS begin_ns, " END_OF(                                           \
        "r") ", o.kind || ' ' || o.sequence, "                                                                         \
             "r.arrival_ns, o.id, r.id, o.step, o.place, o.buffer_bytes, r.observed_bytes, r.expected_bytes, "         \
             "o.algorithm, "                                                                                           \
             "r.status, r.late_ns, r.arrival_of, r.arrival_ns, r.host_ready_ns, r.gpu_ready_ns, r.first_data_ns, "     \
             "r.last_data_ns, r.active_ns, r.retransmitted_frames, r.marked_frames "                                   \
             "FROM rank_operation AS r JOIN operation AS o ON o.id = r.operation "                                     \
             "WHERE ?1 IS NULL OR o.step BETWEEN ?1 AND ?2 "                                                           \
             "ORDER BY r.rank IS NULL, r.rank, o.communicator, begin_ns, r.end_ns, r.id"

#define SLICES_COUNT                                                                                                   \
    "SELECT count(*) FROM rank_operation AS r JOIN operation AS o ON o.id = r.operation "                              \
    "WHERE ?1 IS NULL OR o.step BETWEEN ?1 AND ?2"

/* What happens within an operation, in order of time: ends of arrows, and from the arrival on another slice. */
static void put_inner(struct trace *trace, uint64_t track, const struct store_query *row, const struct arrows *arrows)
{
    struct store_value arrival = store_query_value(row, SLICE_ARRIVAL);
    int64_t begin_ns = store_query_value(row, SLICE_BEGIN).integer;
    int64_t end_ns = store_query_value(row, SLICE_END).integer;
    int64_t rank_operation = store_query_value(row, SLICE_IDENTITY).integer;
    bool moves = arrival.kind == STORE_INTEGER && arrival.integer >= begin_ns && arrival.integer <= end_ns;
    bool began = false;
    for (size_t i = first_end(arrows, rank_operation);
         i < arrows->count && arrows->ends[i].rank_operation == rank_operation; i++) {
        if (moves && !began && arrows->ends[i].time_ns >= arrival.integer) {
            perfetto_slice_begin(trace->perfetto, track, arrival.integer, "moving data", NULL, 0);
            began = true;
        }
        put_end(trace, track, &arrows->ends[i]);
    }
    if (moves && !began) {
        perfetto_slice_begin(trace->perfetto, track, arrival.integer, "moving data", NULL, 0);
    }
    if (moves) {
        perfetto_slice_end(trace->perfetto, track, end_ns);
    }
}

static bool put_slice(struct trace *trace, struct drawing *drawing, const struct store_query *row)
{
    struct store_value begin = store_query_value(row, SLICE_BEGIN);
    struct store_value end = store_query_value(row, SLICE_END);
    struct perfetto_note notes[TRACE_NOTES_MAX];
    size_t count = trace->is_lean ? 0
                                  : trace_notes(row, SLICE_NOTES, slice_notes,
                                                sizeof(slice_notes) / sizeof(slice_notes[0]), notes);
    if (begin.kind != STORE_INTEGER || end.kind != STORE_INTEGER) {
        return false;
    }
    uint64_t track = trace_lane(trace, &drawing->lanes, begin.integer, end.integer);
    if (track == 0) {
        return false;
    }
    perfetto_slice_begin(trace->perfetto, track, begin.integer, store_query_value(row, SLICE_NAME).text, notes, count);
    put_inner(trace, track, row, &drawing->arrows);
    perfetto_slice_end(trace->perfetto, track, end.integer);
    return true;
}

static void put_operation(struct trace *trace, const struct store_query *row, void *context)
{
    struct drawing *drawing = context;
    struct lanes *lanes = &drawing->lanes;
    uint64_t parent = trace_rank_track(store_query_value(row, SLICE_RANK));
    char name[TRACE_NAME_BYTES];
    snprintf(name, sizeof(name), "communicator %" PRId64, store_query_value(row, SLICE_COMMUNICATOR).integer);
    if (lanes->parent != parent || strcmp(lanes->name, name) != 0) {
        lanes->count = 0;
        lanes->parent = parent;
        memcpy(lanes->name, name, TRACE_NAME_BYTES);
    }
    bool put = put_slice(trace, drawing, row);
    trace->counts->slices += put;
    trace->counts->left_out += !put;
    trace->counts->without_details += put && trace->is_lean;
}

static void count_slices(struct trace *trace, const struct store_query *row, void *context)
{
    (void)context;
    trace->is_lean = store_query_value(row, 0).integer > trace->options->slices_max;
}

int trace_operations(struct trace *trace)
{
    struct drawing *drawing = calloc(1, sizeof(*drawing));
    if (drawing == NULL) {
        return log_error_return(-ENOMEM, "out of memory for the trace");
    }
    int result = trace_each(trace, SLICES_COUNT, NULL, count_slices);
    if (result == 0 && !trace->is_lean) {
        result = find_arrows(trace, &drawing->arrows);
    }
    if (result == 0) {
        result = trace_each(trace, SLICES, drawing, put_operation);
    }
    free(drawing->arrows.ends);
    free(drawing);
    return result;
}
