/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What qpscope why and qpscope timeline say of a step, and the rates of its named flows. A rate of more values than a
 * screen can show is averaged over intervals, whose length is told.
 */
#include "cli/report_page_detail.h"

#include <inttypes.h>

#include "cli/rate.h"
#include "cli/subcommand.h"
#include "cli/traffic.h"

#define COUNT(array)    (sizeof(array) / sizeof((array)[0]))
#define RATE_VALUES_MAX 2000
#define EVENTS_MAX      "400"

static const struct column rank_step_columns[] = {
    {"rank", NULL, COLUMN_INTEGER},        {"start_ns", NULL, COLUMN_INTEGER}, {"end_ns", NULL, COLUMN_INTEGER},
    {"duration_ns", NULL, COLUMN_INTEGER}, {"late_ns", NULL, COLUMN_INTEGER},
};

static const struct listing rank_steps = {
    "rank_steps",
    "SELECT rank, start_ns, end_ns, duration_ns, late_ns FROM rank_step WHERE step = ?1 ORDER BY rank",
    rank_step_columns,
    COUNT(rank_step_columns),
};

static const struct column event_columns[] = {
    {"metric", NULL, COLUMN_TEXT},    {"from_ns", NULL, COLUMN_INTEGER}, {"to_ns", NULL, COLUMN_INTEGER},
    {"amount", NULL, COLUMN_INTEGER}, {"of_all", NULL, COLUMN_INTEGER},
};

/* What the flow's receiver answered is counted in the flow in which the answers travel. */
static const struct listing events = {
    "events",
    "SELECT metric, from_ns, to_ns, amount, count(*) OVER () FROM flow_event, step WHERE step.id = ?2 AND "
    "to_ns >= step.start_ns AND from_ns <= step.end_ns AND CASE WHEN metric IN ('naks', 'rnr_naks', 'cnps') "
    "THEN flow = (SELECT pair FROM flow_evidence WHERE flow_evidence.flow = ?1) ELSE flow = ?1 END "
    "ORDER BY from_ns, metric LIMIT " EVENTS_MAX,
    event_columns,
    COUNT(event_columns),
};

static const struct column pin_columns[] = {
    {"cause", NULL, COLUMN_TEXT},       {"from_ns", NULL, COLUMN_INTEGER},  {"to_ns", NULL, COLUMN_INTEGER},
    {"usual_ns", NULL, COLUMN_INTEGER}, {"found_ns", NULL, COLUMN_INTEGER},
};

static const struct listing pins = {
    "pins",
    "SELECT cause, from_ns, to_ns, usual_ns, found_ns FROM pin, step WHERE flow = ?1 AND step.id = ?2 "
    "AND to_ns >= start_ns AND from_ns <= end_ns ORDER BY from_ns LIMIT " EVENTS_MAX,
    pin_columns,
    COUNT(pin_columns),
};

/* The step that is written, and where a flow's own object has been begun. */
struct detail {
    struct report *report;
    struct store_value step;
    int64_t start_ns;
    int64_t end_ns;
};

static void put_point(struct json *json, int64_t value)
{
    json_integer(json, NULL, value);
}

/* The mean of a rate over each of RATE_VALUES_MAX intervals of the step. */
static void put_means(const struct detail *detail, struct rate *rate, int64_t interval_ns)
{
    struct json *json = &detail->report->json;
    struct rate_value value = {.time_ns = detail->start_ns};
    struct rate_value next;
    size_t at = 0;
    bool more = rate_next(rate, &at, &next);
    for (int64_t from_ns = detail->start_ns; from_ns < detail->end_ns; from_ns += interval_ns) {
        int64_t to_ns = from_ns + interval_ns;
        int64_t now_ns = from_ns;
        __int128 sum = 0;
        while (more && next.time_ns < to_ns) {
            if (next.time_ns > now_ns) {
                sum += (__int128)value.bytes_per_s * (next.time_ns - now_ns);
                now_ns = next.time_ns;
            }
            value = next;
            more = rate_next(rate, &at, &next);
        }
        sum += (__int128)value.bytes_per_s * (to_ns - now_ns);
        put_point(json, from_ns - detail->start_ns);
        put_point(json, (int64_t)(sum / interval_ns));
    }
}

static void put_values(const struct detail *detail, struct rate *rate)
{
    struct rate_value value;
    for (size_t at = 0; rate_next(rate, &at, &value);) {
        put_point(&detail->report->json, value.time_ns - detail->start_ns);
        put_point(&detail->report->json, value.bytes_per_s);
    }
}

/* Pairs of time after the step's begin and bytes per second from then on; null where nothing was carried. */
static int put_rate(const struct detail *detail, const char *key, enum traffic_detail kind, int64_t flow)
{
    struct json *json = &detail->report->json;
    struct store_value range[2] = {detail->step, detail->step};
    struct rate rate = {0};
    int result = traffic_rate(detail->report->store, kind, flow, range, &rate);
    if (result == 0 && rate.count > 0) {
        int64_t interval_ns =
            rate.count <= RATE_VALUES_MAX ? 0 : (detail->end_ns - detail->start_ns) / RATE_VALUES_MAX + 1;
        json_object_begin(json, key);
        json_integer(json, "mean_over_ns", interval_ns);
        json_array_begin(json, "values");
        if (interval_ns == 0) {
            put_values(detail, &rate);
        } else {
            put_means(detail, &rate, interval_ns);
        }
        json_array_end(json);
        json_object_end(json);
    } else if (result == 0) {
        json_null(json, key);
    }
    rate_fini(&rate);
    return result;
}

static void put_value(struct json *json, const char *key, struct store_value value)
{
    if (value.kind == STORE_INTEGER) {
        json_integer(json, key, value.integer);
    } else {
        json_text(json, key, value.text);
    }
}

static int put_flow(const struct detail *detail, const struct store_query *row)
{
    static const struct {
        const char *key;
        enum traffic_column column;
    } members[] = {
        {"flow", TRAFFIC_FLOW},           {"rank", TRAFFIC_RANK},
        {"peer_rank", TRAFFIC_PEER_RANK}, {"communicator", TRAFFIC_COMMUNICATOR},
        {"device", TRAFFIC_DEVICE},       {"lqpn", TRAFFIC_QPN},
    };
    struct report *report = detail->report;
    struct store_value arguments[] = {store_query_value(row, TRAFFIC_FLOW), detail->step};
    json_object_begin(&report->json, NULL);
    for (size_t i = 0; i < COUNT(members); i++) {
        put_value(&report->json, members[i].key, store_query_value(row, members[i].column));
    }
    int result = put_rate(detail, "windows", TRAFFIC_WINDOWS, arguments[0].integer);
    if (result == 0) {
        result = put_rate(detail, "messages", TRAFFIC_MESSAGES, arguments[0].integer);
    }
    if (result == 0) {
        result = report_list(report, &events, arguments, 2, NULL);
    }
    if (result == 0) {
        result = report_list(report, &pins, arguments, 2, NULL);
    }
    json_object_end(&report->json);
    return result;
}

static int put_flows(struct detail *detail)
{
    struct store_query *query = NULL;
    int result = store_query_open(&query, detail->report->store, traffic_flows_sql, NULL, 0);
    if (result != 0) {
        return result;
    }
    json_array_begin(&detail->report->json, "flows");
    while ((result = store_query_next(query)) == 1) {
        result = put_flow(detail, query);
        if (result != 0) {
            break;
        }
    }
    json_array_end(&detail->report->json);
    store_query_close(&query);
    return result;
}

/* The same objects as why --json and timeline --json, and the paragraphs of why. */
static int put_said(struct detail *detail)
{
    struct report *report = detail->report;
    json_object_begin(&report->json, "why");
    int result = subcommand_why_print(report, &detail->step);
    json_object_end(&report->json);
    if (result != 0) {
        return result;
    }
    report_words_begin(report, "said");
    result = subcommand_why_print(report, &detail->step);
    report_words_end(report);
    if (result != 0) {
        return result;
    }
    json_object_begin(&report->json, "timeline");
    result = subcommand_timeline_print(report, &detail->step);
    json_object_end(&report->json);
    return result;
}

int report_page_detail(struct report *report, int64_t step)
{
    struct detail detail = {.report = report, .step = store_integer(step)};
    struct store_value from;
    struct store_value to;
    int result = store_reader_number(report->store, "SELECT start_ns FROM step WHERE id = ?1", &detail.step, 1, &from);
    if (result == 0) {
        result = store_reader_number(report->store, "SELECT end_ns FROM step WHERE id = ?1", &detail.step, 1, &to);
    }
    if (result != 0) {
        return result;
    }
    detail.start_ns = from.integer;
    detail.end_ns = to.integer;
    json_object_begin(&report->json, NULL);
    json_integer(&report->json, "step", step);
    result = put_said(&detail);
    if (result == 0) {
        result = report_list(report, &rank_steps, &detail.step, 1, NULL);
    }
    if (result == 0) {
        result = put_flows(&detail);
    }
    json_object_end(&report->json);
    return result;
}
