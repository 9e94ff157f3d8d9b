/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope qps: the queue pair map. */
#include "report/subject/queue_pair_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "report/form/text.h"
#include "report/subject/rank_place.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct column queue_pair_columns[] = {
    {NULL, "device", COLUMN_TEXT},
    {"device", NULL, COLUMN_TEXT},
    {"port", NULL, COLUMN_INTEGER},
    {"lqpn", "QPN", COLUMN_HEX},
    {"state", "state", COLUMN_TEXT},
    {"rank", "rank", COLUMN_INTEGER},
    {"on", "on", COLUMN_TEXT | COLUMN_SPARE},
    {"peer_rank", "peer", COLUMN_INTEGER},
    {"communicator", "comm", COLUMN_INTEGER},
    {"role", "role", COLUMN_TEXT},
    {"payload_bytes", "payload", COLUMN_BYTES},
    {"rqpn", "peer QPN", COLUMN_HEX},
    {"remote_address", "peer address", COLUMN_TEXT | COLUMN_SPARE},
    {"pid", "pid", COLUMN_INTEGER | COLUMN_SPARE},
    {"address", NULL, COLUMN_TEXT},
    {"comm", NULL, COLUMN_TEXT},
    {"communicator_identity", NULL, COLUMN_TEXT},
    {"attributed", NULL, COLUMN_FLAG},
    {"retransmitted_frames", NULL, COLUMN_INTEGER},
    {"marked_frames", NULL, COLUMN_INTEGER},
    {"timeouts", NULL, COLUMN_INTEGER},
    {"got_naks", NULL, COLUMN_INTEGER},
    {"got_rnr_naks", NULL, COLUMN_INTEGER},
    {"got_cnps", NULL, COLUMN_INTEGER},
    {"side", NULL, COLUMN_TEXT},
    {"channel", NULL, COLUMN_INTEGER},
    {"origin_rank", NULL, COLUMN_INTEGER},
    {"pxn", NULL, COLUMN_INTEGER},
    {"shared", NULL, COLUMN_INTEGER},
    {"connection", NULL, COLUMN_TEXT},
    {"generation", NULL, COLUMN_INTEGER},
    {"path_mtu_bytes", NULL, COLUMN_INTEGER},
    {"traffic_class", NULL, COLUMN_INTEGER},
    {"service_level", NULL, COLUMN_INTEGER},
    {"timeout", NULL, COLUMN_INTEGER},
    {"retry_count", NULL, COLUMN_INTEGER},
    {"rnr_retry", NULL, COLUMN_INTEGER},
    {"error_ns", NULL, COLUMN_INTEGER},
};

#define CONDITION                                                                                                      \
    "WHERE (?1 IS NULL OR q.rank = ?1) "                                                                               \
    "AND (?2 IS NULL OR q.device = ?2 OR q.device || '/' || q.port = ?2) "                                             \
    "AND (?3 IS NULL OR CAST(c.id AS TEXT) = ?3 OR (length(?3) >= 4 AND substr(c.identity, 1, length(?3)) = ?3)) "

#define TABLES                                                                                                         \
    "FROM queue_pair AS q JOIN process AS p ON p.id = q.process LEFT JOIN member AS m ON m.id = q.member "             \
    "LEFT JOIN communicator AS c ON c.id = m.communicator "

/* Which queue pairs are shown: those in use; after the job's end its last ones; everything. */
enum scope {
    SCOPE_IN_USE,
    SCOPE_ENDED,
    SCOPE_ALL,
};

/* Why a queue pair is not shown when ?4 is not SCOPE_ALL; NULL when it is. */
#define DESTROYED "(q.state = 'DESTROYED' OR q.destroyed_ns IS NOT NULL)"
#define HIDDEN                                                                                                         \
    "CASE WHEN q.role IN ('unused', 'flush', 'foreign') THEN q.role WHEN ?4 = 0 AND " DESTROYED " THEN 'destroyed' "   \
    "END"

static const char in_use_sql[] =
    "SELECT count(*) FROM queue_pair AS q WHERE NOT " DESTROYED " AND q.role NOT IN ('unused', 'flush', 'foreign')";

/* Several vantages count the same flow: each adds up its ports, and the fullest count stands. */
static const struct listing queue_pairs = {
    "queue_pairs",
    "WITH carried AS (SELECT queue_pair, vantage, sum(payload_bytes) AS bytes, sum(retransmitted_frames) AS resent, "
    "sum(marked_frames) AS marked, sum(timeouts) AS timeouts, sum(got_naks) AS naks, sum(got_rnr_naks) AS rnr_naks, "
    "sum(got_cnps) AS cnps FROM flow LEFT JOIN flow_evidence ON flow_evidence.flow = flow.id "
    "WHERE queue_pair IS NOT NULL GROUP BY queue_pair, vantage), "
    "payload AS (SELECT queue_pair, max(bytes) AS bytes, max(resent) AS resent, max(marked) AS marked, "
    "max(timeouts) AS timeouts, max(naks) AS naks, max(rnr_naks) AS rnr_naks, max(cnps) AS cnps "
    "FROM carried GROUP BY queue_pair) "
    "SELECT q.device || '/' || q.port, q.device, q.port, q.qpn, q.state, q.rank, place.name, q.peer_rank, c.id, "
    "q.role, "
    "payload.bytes, q.remote_qpn, q.remote_address, p.pid, q.address, p.command, c.identity, q.member IS NOT "
    "NULL, payload.resent, payload.marked, payload.timeouts, payload.naks, payload.rnr_naks, payload.cnps, "
    "s.side, s.channel, s.origin_rank, s.pxn, s.shared, q.connection, s.generation, s.path_mtu_bytes, s.traffic_class, "
    "s.service_level, s.timeout, s.retry_count, s.rnr_retry, s.error_ns " TABLES
    "LEFT JOIN payload ON payload.queue_pair = q.id LEFT JOIN queue_pair_setting AS s ON s.queue_pair = q.id "
    "LEFT JOIN " RANK_PLACES "AS place ON place.rank = q.rank " CONDITION "AND (?4 = 2 OR " HIDDEN " IS NULL) "
    "ORDER BY q.rank IS NULL, q.rank, c.id, q.device, q.port, q.qpn, q.id",
    queue_pair_columns,
    COUNT(queue_pair_columns),
};

static const char hidden_sql[] =
    "SELECT group_concat(number || ' ' || reason, ', ') FROM (SELECT " HIDDEN
    " AS reason, count(*) AS number " TABLES CONDITION "AND reason IS NOT NULL GROUP BY reason ORDER BY reason)";

static const struct column failure_columns[] = {
    {"at_ns", NULL, COLUMN_INTEGER},          {"cause", "first sign", COLUMN_TEXT},
    {"rank", "rank", COLUMN_INTEGER},         {"pid", "pid", COLUMN_INTEGER},
    {"communicator", "comm", COLUMN_INTEGER}, {"lqpn", "QPN", COLUMN_HEX},
    {"result", "result", COLUMN_INTEGER},     {"text", "text", COLUMN_TEXT},
};

/* Those of the rank and the communicator that are asked for, or of none. */
static const struct listing failures = {
    "failures",
    "SELECT f.at_ns, f.cause, f.rank, p.pid, c.id, q.qpn, f.result, f.text FROM failure AS f "
    "LEFT JOIN process AS p ON p.id = f.process LEFT JOIN member AS m ON m.id = f.member "
    "LEFT JOIN communicator AS c ON c.id = m.communicator LEFT JOIN queue_pair AS q ON q.id = f.queue_pair "
    "WHERE (?1 IS NULL OR f.rank IS NULL OR f.rank = ?1) "
    "AND (?3 IS NULL OR c.id IS NULL OR CAST(c.id AS TEXT) = ?3 OR substr(c.identity, 1, length(?3)) = ?3) "
    "AND (?4 = 2 OR f.cause <> 'process ended') ORDER BY f.id",
    failure_columns,
    COUNT(failure_columns),
};

static const struct column flow_columns[] = {
    {"port", "seen at", COLUMN_TEXT},
    {"vantage", "vantage", COLUMN_TEXT},
    {"source", "source", COLUMN_TEXT},
    {"destination", "destination", COLUMN_TEXT},
    {"rqpn", "to QPN", COLUMN_HEX},
    {"data_frames", "frames", COLUMN_INTEGER},
    {"payload_bytes", "payload", COLUMN_BYTES},
};

static const struct listing unattributed_flows = {
    "unattributed_flows",
    "SELECT port.name, flow.vantage, flow.source, flow.destination, flow.destination_qpn, flow.data_frames, "
    "flow.payload_bytes FROM flow JOIN port ON port.id = flow.port "
    "WHERE flow.communicator IS NULL AND flow.data_frames > 0 "
    "ORDER BY port.name, flow.source, flow.destination, flow.destination_qpn, flow.id",
    flow_columns,
    COUNT(flow_columns),
};

static const struct column endpoint_columns[] = {
    {"port", "counted at", COLUMN_TEXT},
    {"lqpn", "QPN", COLUMN_HEX},
    {"state", "state", COLUMN_TEXT},
    {"rank", "rank", COLUMN_INTEGER},
    {"peer_rank", "peer", COLUMN_INTEGER},
    {"rqpn", "peer QPN", COLUMN_HEX},
    {"sent_packets", "sent", COLUMN_INTEGER},
    {"received_packets", "received", COLUMN_INTEGER},
    {"sent_bytes_most", "at most", COLUMN_BYTES},
    {"source", "source", COLUMN_TEXT},
    {"last_ns", NULL, COLUMN_INTEGER},
    {"gone_ns", NULL, COLUMN_INTEGER},
};

/* What counting sources read, also of queue pairs that no host side knows. */
#define ENDPOINT_TABLES                                                                                                \
    "FROM endpoint AS e LEFT JOIN port ON port.id = e.port LEFT JOIN queue_pair AS q ON q.id = e.queue_pair "          \
    "LEFT JOIN traffic_source AS s ON s.emitter = e.emitter LEFT JOIN (SELECT endpoint, sum(sent_packets) AS sent, "   \
    "sum(received_packets) AS received, sum(sent_bytes_most) AS bytes, max(to_ns) AS last FROM reading "               \
    "GROUP BY endpoint) AS r ON r.endpoint = e.id "                                                                    \
    "WHERE (?1 IS NULL OR q.rank = ?1) AND (?2 IS NULL OR port.name = ?2 OR port.name LIKE ?2 || '/%') "               \
    "AND ?3 IS NULL AND (?4 > 0 OR e.gone_ns IS NULL) "

static const struct listing endpoints = {
    "endpoints",
    "SELECT port.name, e.qpn, e.state, q.rank, q.peer_rank, e.remote_qpn, r.sent, r.received, r.bytes, s.kind, r.last, "
    "e.gone_ns " ENDPOINT_TABLES "ORDER BY port.name, e.qpn, e.id",
    endpoint_columns,
    COUNT(endpoint_columns),
};

static void say_hidden(struct report *report, const struct store_query *query)
{
    struct store_value counts = store_query_value(query, 0);
    if (counts.kind == STORE_TEXT) {
        report_say(report, 0, "not shown: %s (--all shows them)", counts.text);
    }
}

static void say_unattributed(struct report *report, const struct store_query *query)
{
    int64_t flows = store_query_value(query, 0).integer;
    char bytes[TEXT_NUMBER_BYTES];
    if (flows > 0) {
        report_say(report, 0, "%" PRId64 " flow%s of %s unattributed: no communicator is known that sent it", flows,
                   flows == 1 ? "" : "s", text_bytes(bytes, store_query_value(query, 1).integer));
    }
}

static int print_rest(struct report *report, const struct store_value *filters, bool all)
{
    static const char sum_sql[] = "SELECT count(*), coalesce(sum(payload_bytes), 0) FROM flow "
                                  "WHERE communicator IS NULL AND data_frames > 0";
    if (report->as_json) {
        return report_list(report, &unattributed_flows, NULL, 0, NULL);
    }
    int result = 0;
    if (!all) {
        result = report_each(report, hidden_sql, filters, 4, say_hidden, NULL);
    }
    if (result == 0) {
        result = report_each(report, sum_sql, NULL, 0, say_unattributed, NULL);
    }
    return result == 0 && all ? report_list(report, &unattributed_flows, NULL, 0, NULL) : result;
}

int queue_pair_report_print(struct report *report, const struct queue_pair_filter *filter)
{
    struct store_value in_use;
    int result = store_reader_number(report->store, in_use_sql, NULL, 0, &in_use);
    if (result != 0) {
        return result;
    }
    enum scope scope = filter->all ? SCOPE_ALL : in_use.integer == 0 ? SCOPE_ENDED : SCOPE_IN_USE;
    struct store_value filters[] = {
        filter->rank,
        store_text(filter->device),
        store_text(filter->communicator),
        store_integer(scope),
    };
    size_t rows = 0;
    result = report_list(report, &queue_pairs, filters, COUNT(filters), &rows);
    if (result != 0) {
        return result;
    }
    struct store_value counted;
    result = store_reader_number(report->store, "SELECT count(*) " ENDPOINT_TABLES, filters, COUNT(filters), &counted);
    if (result == 0 && (report->as_json || counted.integer > 0)) {
        result = report_list(report, &endpoints, filters, COUNT(filters), NULL);
    }
    if (result == 0) {
        result = report_list(report, &failures, filters, COUNT(filters), NULL);
    }
    if (result != 0) {
        return result;
    }
    if (rows == 0) {
        report_say(report, 0, "no queue pairs in use that fit");
    } else if (scope == SCOPE_ENDED) {
        report_say(report, 0, "none is in use any more: these were the job's");
    }
    return print_rest(report, filters, filter->all);
}
