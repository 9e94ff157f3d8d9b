/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows as counters of bytes per second. Invariant: all of them together have no more values than the viewer can hold:
 * a flow that has more than its share gets means over intervals of equal length, and is counted as thinned.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/trace_private.h"
#include "report/read/rate.h"
#include "report/read/traffic.h"

struct share { /* of the values, for one counter */
    int64_t tracks;
    int64_t values;
};

static void put_value(struct trace *trace, uint64_t track, const struct rate_value *value)
{
    perfetto_counter(trace->perfetto, track, value->time_ns, value->bytes_per_s);
    trace->counts->counter_values++;
}

/* The last value is 0, as without means. */
static void put_means(struct trace *trace, uint64_t track, struct rate *rate, int64_t count)
{
    int64_t begin_ns = rate->edges[0].time_ns;
    int64_t end_ns = rate->edges[rate->count - 1].time_ns;
    struct rate_means means;
    struct rate_value value;
    trace->counts->thinned_tracks++;
    rate_means_begin(&means, rate, begin_ns, end_ns, (end_ns - begin_ns) / count + 1);
    while (rate_means_next(&means, &value)) {
        put_value(trace, track, &value);
    }
    put_value(trace, track, &(struct rate_value){means.from_ns, 0});
}

static int put_rate(struct trace *trace, enum traffic_detail detail, int64_t flow, const char *name, uint64_t parent,
                    const struct share *share)
{
    struct rate rate = {0};
    struct store_value times[2];
    int result = traffic_times(trace->store, trace->options->range, times);
    if (result == 0) {
        result = traffic_rate(trace->store, detail, flow, times, &rate);
    }
    if (result == 0 && rate.count > 0) {
        uint64_t track = trace_make_track(trace, name, parent, "bytes/s");
        struct rate_value value;
        trace->counts->counter_tracks++;
        if ((int64_t)rate.count > share->values) {
            put_means(trace, track, &rate, share->values);
        } else {
            for (size_t at = 0; rate_next(&rate, &at, &value);) {
                put_value(trace, track, &value);
            }
        }
    }
    rate_fini(&rate);
    return result;
}

static int put_flow(struct trace *trace, const struct store_query *row, const struct share *share)
{
    int64_t flow = store_query_value(row, TRAFFIC_FLOW).integer;
    uint64_t parent = trace_rank_track(store_query_value(row, TRAFFIC_RANK));
    struct store_value peer = store_query_value(row, TRAFFIC_PEER_RANK);
    char to[24] = "?";
    char name[TRACE_NAME_BYTES];
    char windows[TRACE_NAME_BYTES + 16];
    if (peer.kind == STORE_INTEGER) {
        snprintf(to, sizeof(to), "%" PRId64, peer.integer);
    }
    snprintf(name, sizeof(name), "data to rank %s, communicator %" PRId64 ", %s QP 0x%06" PRIx64, to,
             store_query_value(row, TRAFFIC_COMMUNICATOR).integer, store_query_value(row, TRAFFIC_DEVICE).text,
             (uint64_t)store_query_value(row, TRAFFIC_QPN).integer);
    snprintf(windows, sizeof(windows), "%s, windows", name);
    int result = put_rate(trace, TRAFFIC_MESSAGES, flow, name, parent, share);
    return result == 0 ? put_rate(trace, TRAFFIC_WINDOWS, flow, windows, parent, share) : result;
}

static int count_flows(struct trace *trace, struct share *share)
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, trace->store, traffic_flows_sql, NULL, 0);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        share->tracks += 2;
    }
    store_query_close(&query);
    share->values = share->tracks == 0 ? 1 : trace->options->values_max / share->tracks;
    share->values = share->values < 2 ? 2 : share->values;
    return result;
}

int trace_flows(struct trace *trace)
{
    struct share share = {0};
    struct store_query *query = NULL;
    int result = count_flows(trace, &share);
    if (result == 0) {
        result = store_query_open(&query, trace->store, traffic_flows_sql, NULL, 0);
    }
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        result = put_flow(trace, query, &share);
        if (result != 0) {
            break;
        }
    }
    store_query_close(&query);
    return result;
}
