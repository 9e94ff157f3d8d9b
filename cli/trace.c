/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows to events. Invariant: slices of one track never overlap (an overlapping one gets a lane of its own, which is
 * another track), since the viewer would drop them.
 */
#include "cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rate.h"
#include "cli/traffic.h"
#include "wire/log.h"

#define LANES_MAX  256
#define NAME_BYTES 160
#define NOTES_MAX  24

/* Identities of tracks: ranks have theirs by number, so that lanes and counters find their parent. */
#define TRACK_VERDICTS 2
#define TRACK_RANKS    (1ull << 32) /* an unknown rank; rank r is r + 1 above it */
#define TRACK_OTHERS   (1ull << 33)

struct trace {
    struct store_reader *store;
    struct perfetto *perfetto;
    struct trace_counts *counts;
    const struct store_value *range;
    uint64_t next_track;
    int64_t next_order;
};

/* The tracks on which the slices of one sort stand: as many as overlap at once. */
struct lanes {
    char name[NAME_BYTES];
    uint64_t parent;
    size_t count;
    int64_t ends_ns[LANES_MAX];
    uint64_t tracks[LANES_MAX];
};

static uint64_t rank_track(struct store_value rank)
{
    return rank.kind == STORE_INTEGER ? TRACK_RANKS + 1 + (uint64_t)rank.integer : TRACK_RANKS;
}

static uint64_t make_track(struct trace *trace, const char *name, uint64_t parent, const char *unit)
{
    struct perfetto_track track = {.identity = trace->next_track++, .parent = parent, .name = name, .unit = unit};
    track.order = trace->next_order++;
    perfetto_track(trace->perfetto, &track);
    return track.identity;
}

/* The first lane that is free at `begin_ns`, taken until `end_ns`; 0 when there are too many. */
static uint64_t lane_take(struct trace *trace, struct lanes *lanes, int64_t begin_ns, int64_t end_ns)
{
    size_t lane = 0;
    while (lane < lanes->count && lanes->ends_ns[lane] > begin_ns) {
        lane++;
    }
    if (lane == LANES_MAX) {
        return 0;
    }
    if (lane == lanes->count) {
        lanes->tracks[lane] = make_track(trace, lanes->name, lanes->parent, NULL);
        lanes->count++;
    }
    lanes->ends_ns[lane] = end_ns;
    return lanes->tracks[lane];
}

/* The columns of a query from `first` on, as notes with these names. */
static size_t notes_of(const struct store_query *query, size_t first, const char *const *names, size_t count,
                       struct perfetto_note *notes)
{
    for (size_t i = 0; i < count; i++) {
        notes[i].name = names[i];
        notes[i].value = store_query_value(query, first + i);
    }
    return count;
}

/* Calls `put` for each row. */
static int each(struct trace *trace, const char *sql, void *context,
                void (*put)(struct trace *trace, const struct store_query *row, void *context))
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, trace->store, sql, trace->range, 2);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        put(trace, query, context);
    }
    store_query_close(&query);
    return result;
}

static void put_clock(struct trace *trace, const struct store_query *row, void *context)
{
    (void)context;
    struct store_value offset = store_query_value(row, 0);
    struct store_value begin = store_query_value(row, 1);
    if (offset.kind == STORE_INTEGER && begin.kind == STORE_INTEGER) {
        perfetto_clock(trace->perfetto, begin.integer, begin.integer + offset.integer);
    }
}

#define CLOCK                                                                                                          \
    "SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'realtime_minus_reference_ns'), "                     \
    "min((SELECT min(start_ns) FROM operation), (SELECT min(start_ns) FROM step))"

static const char *const step_notes[] = {"step", "duration_ns", "bound_ns", "operations", "incomplete", "partial"};

#define STEPS                                                                                                          \
    "SELECT start_ns, max(end_ns, start_ns), 'step ' || id, id, duration_ns, bound_ns, operations, incomplete, "       \
    "partial FROM step WHERE ?1 IS NULL OR id BETWEEN ?1 AND ?2 ORDER BY start_ns, id"

/* A slice from columns `first` (begin, end, name); within it another one from `inner_ns` on, unless that is NULL. */
static bool put_slice(struct trace *trace, struct lanes *lanes, const struct store_query *row, size_t first,
                      const struct store_value *inner_ns, const struct perfetto_note *notes, size_t notes_count)
{
    int64_t begin_ns = store_query_value(row, first).integer;
    int64_t end_ns = store_query_value(row, first + 1).integer;
    uint64_t track = lane_take(trace, lanes, begin_ns, end_ns);
    if (track == 0) {
        return false;
    }
    perfetto_slice_begin(trace->perfetto, track, begin_ns, store_query_value(row, first + 2).text, notes, notes_count);
    if (inner_ns->kind == STORE_INTEGER && inner_ns->integer >= begin_ns && inner_ns->integer <= end_ns) {
        perfetto_slice_begin(trace->perfetto, track, inner_ns->integer, "moving data", NULL, 0);
        perfetto_slice_end(trace->perfetto, track, end_ns);
    }
    perfetto_slice_end(trace->perfetto, track, end_ns);
    return true;
}

static void put_step(struct trace *trace, const struct store_query *row, void *context)
{
    struct perfetto_note notes[NOTES_MAX];
    size_t count = notes_of(row, 3, step_notes, sizeof(step_notes) / sizeof(step_notes[0]), notes);
    static const struct store_value none = {.kind = STORE_NULL};
    trace->counts->steps += put_slice(trace, context, row, 0, &none, notes, count);
}

static void put_rank(struct trace *trace, const struct store_query *row, void *context)
{
    (void)context;
    struct store_value rank = store_query_value(row, 0);
    char name[NAME_BYTES] = "rank unknown";
    if (rank.kind == STORE_INTEGER) {
        snprintf(name, sizeof(name), "rank %" PRId64, rank.integer);
    }
    struct perfetto_track track = {.identity = rank_track(rank), .name = name, .order = trace->next_order++};
    perfetto_track(trace->perfetto, &track);
}

#define RANKS                                                                                                          \
    "SELECT DISTINCT rank FROM (SELECT rank FROM rank_operation UNION SELECT source_rank FROM flow "                   \
    "WHERE communicator IS NOT NULL) ORDER BY rank IS NULL, rank"

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
};

#define SLICES                                                                                                         \
    "SELECT r.rank, o.communicator, coalesce(r.enqueued_ns, r.first_data_ns) AS begin_ns, "                            \
    "max(r.end_ns, coalesce(r.enqueued_ns, r.first_data_ns)), o.kind || ' ' || o.sequence, r.arrival_ns, o.id, r.id, " \
    "o.step, "                                                                                                         \
    "o.place, o.buffer_bytes, r.observed_bytes, r.expected_bytes, o.algorithm, r.status, r.late_ns, r.arrival_of, "    \
    "r.arrival_ns, r.host_ready_ns, r.gpu_ready_ns, r.first_data_ns, r.last_data_ns, r.active_ns, "                    \
    "r.retransmitted_frames, r.marked_frames FROM rank_operation AS r JOIN operation AS o ON o.id = r.operation "      \
    "WHERE ?1 IS NULL OR o.step BETWEEN ?1 AND ?2 "                                                                    \
    "ORDER BY r.rank IS NULL, r.rank, o.communicator, begin_ns, r.end_ns, r.id"

static void put_operation(struct trace *trace, const struct store_query *row, void *context)
{
    struct lanes *lanes = context;
    uint64_t parent = rank_track(store_query_value(row, SLICE_RANK));
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "communicator %" PRId64, store_query_value(row, SLICE_COMMUNICATOR).integer);
    if (lanes->parent != parent || strcmp(lanes->name, name) != 0) {
        lanes->count = 0;
        lanes->parent = parent;
        memcpy(lanes->name, name, NAME_BYTES);
    }
    struct perfetto_note notes[NOTES_MAX];
    size_t count = notes_of(row, SLICE_NOTES, slice_notes, sizeof(slice_notes) / sizeof(slice_notes[0]), notes);
    bool known = store_query_value(row, SLICE_BEGIN).kind == STORE_INTEGER &&
                 store_query_value(row, SLICE_END).kind == STORE_INTEGER;
    struct store_value arrival = store_query_value(row, SLICE_ARRIVAL);
    bool put = known && put_slice(trace, lanes, row, SLICE_BEGIN, &arrival, notes, count);
    trace->counts->slices += put;
    trace->counts->left_out += !put;
}

static const char *const verdict_notes[] = {"verdict",  "step",       "operation", "size_ns",
                                            "bound_ns", "confidence", "evidence"};

#define VERDICTS                                                                                                       \
    "SELECT coalesce((SELECT arrival_ns FROM rank_operation AS r WHERE r.operation = v.operation AND r.rank = v.rank " \
    "ORDER BY r.id LIMIT 1), o.last_arrival_ns, o.start_ns), "                                                         \
    "v.class || coalesce(': rank ' || v.rank, '') || coalesce(' to rank ' || v.peer_rank, ''), "                       \
    "v.id, v.step, v.operation, v.size_ns, v.bound_ns, v.confidence, v.evidence FROM verdict AS v "                    \
    "JOIN operation AS o ON o.id = v.operation WHERE ?1 IS NULL OR v.step BETWEEN ?1 AND ?2 ORDER BY 1, v.id"

static void put_verdict(struct trace *trace, const struct store_query *row, void *context)
{
    (void)context;
    struct perfetto_note notes[NOTES_MAX];
    size_t count = notes_of(row, 2, verdict_notes, sizeof(verdict_notes) / sizeof(verdict_notes[0]), notes);
    perfetto_instant(trace->perfetto, TRACK_VERDICTS, store_query_value(row, 0).integer, store_query_value(row, 1).text,
                     notes, count);
    trace->counts->verdicts++;
}

static int put_rate(struct trace *trace, enum traffic_detail detail, int64_t flow, const char *name, uint64_t parent)
{
    struct rate rate = {0};
    int result = traffic_rate(trace->store, detail, flow, trace->range, &rate);
    if (result == 0 && rate.count > 0) {
        uint64_t track = make_track(trace, name, parent, "bytes/s");
        struct rate_value value;
        trace->counts->counter_tracks++;
        for (size_t at = 0; rate_next(&rate, &at, &value);) {
            perfetto_counter(trace->perfetto, track, value.time_ns, value.bytes_per_s);
            trace->counts->counter_values++;
        }
    }
    rate_fini(&rate);
    return result;
}

static int put_flow(struct trace *trace, const struct store_query *row)
{
    int64_t flow = store_query_value(row, TRAFFIC_FLOW).integer;
    uint64_t parent = rank_track(store_query_value(row, TRAFFIC_RANK));
    struct store_value peer = store_query_value(row, TRAFFIC_PEER_RANK);
    char to[24] = "?";
    char name[NAME_BYTES];
    char windows[NAME_BYTES + 16];
    if (peer.kind == STORE_INTEGER) {
        snprintf(to, sizeof(to), "%" PRId64, peer.integer);
    }
    snprintf(name, sizeof(name), "data to rank %s, communicator %" PRId64 ", %s QP 0x%06" PRIx64, to,
             store_query_value(row, TRAFFIC_COMMUNICATOR).integer, store_query_value(row, TRAFFIC_DEVICE).text,
             (uint64_t)store_query_value(row, TRAFFIC_QPN).integer);
    snprintf(windows, sizeof(windows), "%s, windows", name);
    int result = put_rate(trace, TRAFFIC_MESSAGES, flow, name, parent);
    return result == 0 ? put_rate(trace, TRAFFIC_WINDOWS, flow, windows, parent) : result;
}

static int put_flows(struct trace *trace)
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, trace->store, traffic_flows_sql, NULL, 0);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        result = put_flow(trace, query);
        if (result != 0) {
            break;
        }
    }
    store_query_close(&query);
    return result;
}

static int put_slices(struct trace *trace)
{
    struct lanes *lanes = calloc(1, sizeof(*lanes));
    if (lanes == NULL) {
        return log_error_return(-ENOMEM, "out of memory for the trace");
    }
    strcpy(lanes->name, "steps");
    int result = each(trace, STEPS, lanes, put_step);
    if (result == 0) {
        memset(lanes, 0, sizeof(*lanes));
        result = each(trace, SLICES, lanes, put_operation);
    }
    free(lanes);
    return result;
}

int trace_write(struct store_reader *store, const struct store_value range[2], struct perfetto *perfetto,
                struct trace_counts *counts)
{
    static const struct perfetto_track verdicts = {.identity = TRACK_VERDICTS, .name = "verdicts"};
    struct trace trace = {
        .store = store, .perfetto = perfetto, .counts = counts, .range = range, .next_track = TRACK_OTHERS};
    memset(counts, 0, sizeof(*counts));
    int result = each(&trace, CLOCK, NULL, put_clock);
    perfetto_track(perfetto, &verdicts);
    if (result == 0) {
        result = each(&trace, VERDICTS, NULL, put_verdict);
    }
    if (result == 0) {
        result = each(&trace, RANKS, NULL, put_rank);
    }
    if (result == 0) {
        result = put_slices(&trace);
    }
    return result == 0 ? put_flows(&trace) : result;
}
