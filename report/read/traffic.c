/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of flow, message and traffic_window as rates. */
#include "report/read/traffic.h"

/* A named flow once, where it is seen best: at the sender's port, else the receiver's, else between. */
#define VANTAGE_ORDER "CASE vantage WHEN 'tx' THEN 0 WHEN 'rx' THEN 1 ELSE 2 END"

const char traffic_flows_sql[] =
    "WITH best AS (SELECT queue_pair, min(" VANTAGE_ORDER ") AS vantage_order FROM flow WHERE queue_pair IS NOT NULL "
    "GROUP BY queue_pair) "
    "SELECT f.id, f.source_rank, f.destination_rank, f.communicator, q.device || '/' || q.port, q.qpn "
    "FROM flow AS f JOIN queue_pair AS q ON q.id = f.queue_pair "
    "JOIN best ON best.queue_pair = f.queue_pair AND best.vantage_order = " VANTAGE_ORDER " "
    "WHERE f.communicator IS NOT NULL "
    "ORDER BY f.source_rank IS NULL, f.source_rank, f.destination_rank, f.communicator, f.id";

/* A flow's intervals do not overlap: of those that begin before the time only the last can reach into it. */
#define DURING(table, from, to)                                                                                        \
    from " >= coalesce((SELECT " from " FROM " table " WHERE flow = ?1 AND " from " < ?2 ORDER BY " from               \
         " DESC LIMIT 1), ?2, 0) AND " from " <= coalesce(?3, 9223372036854775807) AND " to " >= coalesce(?2, 0)"

static const char *const details_sql[] = {
    [TRAFFIC_MESSAGES] =
        "SELECT first_ns, last_ns, payload_bytes FROM message WHERE flow = ?1 AND role = 'data' AND " DURING(
            "message", "first_ns", "last_ns"),
    [TRAFFIC_WINDOWS] =
        "SELECT start_ns, start_ns + length_ns, payload_bytes FROM traffic_window WHERE flow = ?1 AND " DURING(
            "traffic_window", "start_ns", "start_ns + length_ns"),
};

int traffic_rate(struct store_reader *store, enum traffic_detail detail, int64_t flow,
                 const struct store_value times[2], struct rate *rate)
{
    struct store_value arguments[] = {store_integer(flow), times[0], times[1]};
    struct store_query *query = NULL;
    int result = store_query_open(&query, store, details_sql[detail], arguments, 3);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        result = rate_add(rate, store_query_value(query, 0).integer, store_query_value(query, 1).integer,
                          store_query_value(query, 2).integer);
        if (result != 0) {
            break;
        }
    }
    store_query_close(&query);
    rate_sort(rate);
    return result;
}

int traffic_times(struct store_reader *store, const struct store_value range[2], struct store_value times[2])
{
    struct store_value from;
    int result =
        store_reader_number(store, "SELECT min(start_ns) FROM step WHERE id BETWEEN ?1 AND ?2", range, 2, &from);
    if (result == 0) {
        result =
            store_reader_number(store, "SELECT max(end_ns) FROM step WHERE id BETWEEN ?1 AND ?2", range, 2, &times[1]);
    }
    times[0] = from;
    return result;
}
