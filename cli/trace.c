/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows to events. Invariant: slices of one track never overlap (an overlapping one gets a lane of its own, which is
 * another track), since the viewer would drop them.
 */
#include "cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace_private.h"
#include "wire/log.h"

uint64_t trace_rank_track(struct store_value rank)
{
    return rank.kind == STORE_INTEGER ? TRACK_RANKS + 1 + (uint64_t)rank.integer : TRACK_RANKS;
}

uint64_t trace_make_track(struct trace *trace, const char *name, uint64_t parent, const char *unit)
{
    struct perfetto_track track = {.identity = trace->next_track++, .parent = parent, .name = name, .unit = unit};
    track.order = trace->next_order++;
    perfetto_track(trace->perfetto, &track);
    return track.identity;
}

uint64_t trace_lane(struct trace *trace, struct lanes *lanes, int64_t begin_ns, int64_t end_ns)
{
    size_t lane = 0;
    while (lane < lanes->count && lanes->ends_ns[lane] > begin_ns) {
        lane++;
    }
    if (lane == TRACE_LANES_MAX) {
        return 0;
    }
    if (lane == lanes->count) {
        lanes->tracks[lane] = trace_make_track(trace, lanes->name, lanes->parent, NULL);
        lanes->count++;
    }
    lanes->ends_ns[lane] = end_ns;
    return lanes->tracks[lane];
}

size_t trace_notes(const struct store_query *query, size_t first, const char *const *names, size_t count,
                   struct perfetto_note *notes)
{
    for (size_t i = 0; i < count; i++) {
        notes[i].name = names[i];
        notes[i].value = store_query_value(query, first + i);
    }
    return count;
}

int trace_each(struct trace *trace, const char *sql, void *context,
               void (*put)(struct trace *trace, const struct store_query *row, void *context))
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, trace->store, sql, trace->options->range, 2);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        put(trace, query, context);
    }
    store_query_close(&query);
    return result;
}

/* ---- clocks ---- */

#define CLOCK                                                                                                          \
    "SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'realtime_minus_reference_ns'), "                     \
    "min((SELECT min(start_ns) FROM operation), (SELECT min(start_ns) FROM step))"

static void put_clock(struct trace *trace, const struct store_query *row, void *context)
{
    (void)context;
    struct store_value offset = store_query_value(row, 0);
    struct store_value begin = store_query_value(row, 1);
    if (offset.kind == STORE_INTEGER && begin.kind == STORE_INTEGER) {
        const struct perfetto_reading readings[] = {{PERFETTO_MONOTONIC, begin.integer},
                                                    {PERFETTO_REALTIME, begin.integer + offset.integer}};
        perfetto_clocks(trace->perfetto, readings, 2);
    }
}

/* The first and the last reading of each agent's clock; what it read is what its offset and drift make of the time. */
#define RAW_CLOCKS                                                                                                     \
    "SELECT c.at_ns, e.kind || ' ' || e.host || ' ' || e.instance, c.at_ns - e.clock_offset_ns - "                     \
    "CAST((c.at_ns - (e.started_ns / 2 + e.last_ns / 2)) * (coalesce(e.clock_drift_ppb, 0) / 1e9) AS INTEGER), "       \
    "c.realtime_ns, c.bound_ns, e.clock_bound_ns, e.host FROM clock_pair AS c JOIN emitter AS e ON e.id = c.emitter "  \
    "WHERE e.clock_offset_ns IS NOT NULL AND c.at_ns IN ((SELECT min(at_ns) FROM clock_pair WHERE emitter = e.id), "   \
    "(SELECT max(at_ns) FROM clock_pair WHERE emitter = e.id)) ORDER BY c.at_ns, e.id"

static const char *const clock_notes[] = {"agent_clock_ns", "realtime_ns", "bound_ns", "clock_bound_ns"};

static void put_raw_clock(struct trace *trace, const struct store_query *row, void *context)
{
    (void)context;
    char agent[TRACE_NAME_BYTES];
    char realtime[TRACE_NAME_BYTES];
    int64_t at_ns = store_query_value(row, 0).integer;
    snprintf(agent, sizeof(agent), "%s", store_query_value(row, 1).text);
    snprintf(realtime, sizeof(realtime), "CLOCK_REALTIME of %s", store_query_value(row, 6).text);
    const struct perfetto_reading readings[] = {
        {PERFETTO_MONOTONIC, at_ns},
        {perfetto_clock_number(agent), store_query_value(row, 2).integer},
        {perfetto_clock_number(realtime), store_query_value(row, 3).integer},
    };
    struct perfetto_note notes[TRACE_NOTES_MAX];
    size_t count = trace_notes(row, 2, clock_notes, sizeof(clock_notes) / sizeof(clock_notes[0]), notes);
    notes[count].name = "clock";
    notes[count++].value = store_integer(readings[1].clock);
    notes[count].name = "realtime_clock";
    notes[count++].value = store_integer(readings[2].clock);
    perfetto_clocks(trace->perfetto, readings, 3);
    perfetto_instant(trace->perfetto, TRACK_CLOCKS, at_ns, agent, notes, count);
}

/* ---- nodes and ranks ---- */

enum rank_column { RANK_RANK, RANK_HOST, RANK_NODE };

/* Each rank with its node; nodes are numbered by their ranks. */
#define RANKS                                                                                                          \
    "WITH home AS (SELECT m.rank AS rank, min(e.host) AS host FROM member AS m JOIN process AS p ON p.id = m.process " \
    "JOIN emitter AS e ON e.id = p.emitter WHERE m.rank IS NOT NULL GROUP BY m.rank), "                                \
    "node AS (SELECT host, row_number() OVER (ORDER BY min(rank)) AS number FROM home GROUP BY host), "                \
    "shown AS (SELECT DISTINCT rank FROM (SELECT rank FROM rank_operation UNION SELECT source_rank FROM flow "         \
    "WHERE communicator IS NOT NULL)) "                                                                                \
    "SELECT shown.rank, home.host, node.number FROM shown LEFT JOIN home ON home.rank = shown.rank "                   \
    "LEFT JOIN node ON node.host = home.host ORDER BY node.number IS NULL, node.number, shown.rank IS NULL, "          \
    "shown.rank"

static void put_node(struct trace *trace, const struct store_query *row)
{
    char name[TRACE_NAME_BYTES];
    int64_t number = store_query_value(row, RANK_NODE).integer;
    snprintf(name, sizeof(name), "node %s", store_query_value(row, RANK_HOST).text);
    struct perfetto_track track = {.identity = TRACK_NODES + (uint64_t)number, .name = name, .process = number};
    track.order = trace->next_order++;
    perfetto_track(trace->perfetto, &track);
}

static void put_rank(struct trace *trace, const struct store_query *row, void *context)
{
    int64_t *last_node = context;
    struct store_value rank = store_query_value(row, RANK_RANK);
    struct store_value node = store_query_value(row, RANK_NODE);
    char name[TRACE_NAME_BYTES] = "rank unknown";
    if (node.kind == STORE_INTEGER && node.integer != *last_node) {
        put_node(trace, row);
        *last_node = node.integer;
    }
    if (rank.kind == STORE_INTEGER) {
        snprintf(name, sizeof(name), "rank %" PRId64, rank.integer);
    }
    struct perfetto_track track = {.identity = trace_rank_track(rank), .name = name, .order = trace->next_order++};
    track.parent = node.kind == STORE_INTEGER ? TRACK_NODES + (uint64_t)node.integer : 0;
    perfetto_track(trace->perfetto, &track);
}

/* ---- steps and verdicts ---- */

static const char *const step_notes[] = {"step", "duration_ns", "bound_ns", "operations", "incomplete", "partial"};

#define STEPS                                                                                                          \
    "SELECT start_ns, max(end_ns, start_ns), 'step ' || id, id, duration_ns, bound_ns, operations, incomplete, "       \
    "partial FROM step WHERE ?1 IS NULL OR id BETWEEN ?1 AND ?2 ORDER BY start_ns, id"

static void put_step(struct trace *trace, const struct store_query *row, void *context)
{
    struct perfetto_note notes[TRACE_NOTES_MAX];
    size_t count = trace_notes(row, 3, step_notes, sizeof(step_notes) / sizeof(step_notes[0]), notes);
    int64_t begin_ns = store_query_value(row, 0).integer;
    int64_t end_ns = store_query_value(row, 1).integer;
    uint64_t track = trace_lane(trace, context, begin_ns, end_ns);
    if (track == 0) {
        return;
    }
    perfetto_slice_begin(trace->perfetto, track, begin_ns, store_query_value(row, 2).text, notes, count);
    perfetto_slice_end(trace->perfetto, track, end_ns);
    trace->counts->steps++;
}

static int put_steps(struct trace *trace)
{
    struct lanes *lanes = calloc(1, sizeof(*lanes));
    if (lanes == NULL) {
        return log_error_return(-ENOMEM, "out of memory for the trace");
    }
    strcpy(lanes->name, "steps");
    int result = trace_each(trace, STEPS, lanes, put_step);
    free(lanes);
    return result;
}

static const char *const verdict_notes[] = {"verdict",  "step",       "operation", "size_ns",
                                            "bound_ns", "confidence", "evidence"};

#define VERDICTS                                                                                                       \
    "SELECT coalesce((SELECT arrival_ns FROM rank_operation AS r WHERE r.operation = v.operation AND r.rank = v.rank " \
    "ORDER BY r.id LIMIT 1), o.last_arrival_ns, o.start_ns), "                                                         \
    "v.class || coalesce(': rank ' || v.rank, ': one of ranks ' || v.candidates, '') || coalesce(' to rank ' || "      \
    "v.peer_rank, ''), "                                                                                               \
    "v.id, v.step, v.operation, v.size_ns, v.bound_ns, v.confidence, v.evidence FROM verdict AS v "                    \
    "JOIN operation AS o ON o.id = v.operation WHERE ?1 IS NULL OR v.step BETWEEN ?1 AND ?2 ORDER BY 1, v.id"

static void put_verdict(struct trace *trace, const struct store_query *row, void *context)
{
    (void)context;
    struct perfetto_note notes[TRACE_NOTES_MAX];
    size_t count = trace_notes(row, 2, verdict_notes, sizeof(verdict_notes) / sizeof(verdict_notes[0]), notes);
    perfetto_instant(trace->perfetto, TRACK_VERDICTS, store_query_value(row, 0).integer, store_query_value(row, 1).text,
                     notes, count);
    trace->counts->verdicts++;
}

int trace_write(struct store_reader *store, const struct trace_options *options, struct perfetto *perfetto,
                struct trace_counts *counts)
{
    static const struct perfetto_track verdicts = {.identity = TRACK_VERDICTS, .name = "verdicts"};
    static const struct perfetto_track clocks = {.identity = TRACK_CLOCKS, .name = "clocks of agents"};
    struct trace trace = {
        .store = store, .perfetto = perfetto, .counts = counts, .options = options, .next_track = TRACK_OTHERS};
    int64_t last_node = 0;
    memset(counts, 0, sizeof(*counts));
    int result = trace_each(&trace, CLOCK, NULL, put_clock);
    perfetto_track(perfetto, &verdicts);
    perfetto_track(perfetto, &clocks);
    if (result == 0) {
        result = trace_each(&trace, RAW_CLOCKS, NULL, put_raw_clock);
    }
    if (result == 0) {
        result = trace_each(&trace, VERDICTS, NULL, put_verdict);
    }
    if (result == 0) {
        result = trace_each(&trace, RANKS, &last_node, put_rank);
    }
    if (result == 0) {
        result = put_steps(&trace);
    }
    if (result == 0) {
        result = trace_operations(&trace);
    }
    return result == 0 ? trace_flows(&trace) : result;
}
