/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What qpscope why and qpscope timeline say of a step, and the rates of its named flows. A rate of more values than a
 * screen can show is averaged over intervals, whose length is told; of many flows each gets fewer values, so that a
 * browser holds them all.
 */
#include "report/page/page_detail.h"

#include <inttypes.h>

#include "report/read/rate.h"
#include "report/read/traffic.h"
#include "report/subject/hang.h"
#include "report/subject/timeline_report.h"
#include "report/subject/why_report.h"

#define COUNT(array)    (sizeof(array) / sizeof((array)[0]))
#define RATE_VALUES_MIN 20
#define RATE_VALUES_MAX 2000
#define PAGE_VALUES_MAX 500000 /* of all flows of all steps of a page: about 10 MB */
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
    "SELECT metric, from_ns, to_ns, amount, count(*) OVER () FROM flow_event WHERE "
    "to_ns >= ?2 AND from_ns <= ?3 AND CASE WHEN metric IN ('naks', 'rnr_naks', 'cnps') "
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
    "SELECT cause, from_ns, to_ns, usual_ns, found_ns FROM pin WHERE flow = ?1 "
    "AND to_ns >= ?2 AND from_ns <= ?3 ORDER BY from_ns LIMIT " EVENTS_MAX,
    pin_columns,
    COUNT(pin_columns),
};

/* What is written. */
struct detail {
    struct report *report;
    struct store_value step; /* STORE_NULL: what hangs, behind the last one */
    bool hangs;
    int64_t start_ns;
    int64_t end_ns;
    int64_t values_max; /* of a rate */
};

static void put_point(struct json *json, int64_t value)
{
    json_integer(json, NULL, value);
}

/* The mean of a rate over each of `values_max` intervals of the step, told where it changes. */
static void put_means(const struct detail *detail, struct rate *rate, int64_t interval_ns)
{
    struct json *json = &detail->report->json;
    struct rate_means means;
    struct rate_value mean;
    int64_t told = 0;
    rate_means_begin(&means, rate, detail->start_ns, detail->end_ns, interval_ns);
    while (rate_means_next(&means, &mean)) {
        if (mean.bytes_per_s != told) {
            put_point(json, mean.time_ns - detail->start_ns);
            put_point(json, mean.bytes_per_s);
            told = mean.bytes_per_s;
        }
    }
    if (told != 0) {
        put_point(json, detail->end_ns - detail->start_ns);
        put_point(json, 0);
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
    const struct store_value times[2] = {store_integer(detail->start_ns), store_integer(detail->end_ns)};
    struct rate rate = {0};
    int result = traffic_rate(detail->report->store, kind, flow, times, &rate);
    if (result == 0 && rate.count > 0) {
        int64_t interval_ns =
            rate.count <= (size_t)detail->values_max ? 0 : (detail->end_ns - detail->start_ns) / detail->values_max + 1;
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
    struct store_value arguments[] = {store_query_value(row, TRAFFIC_FLOW), store_integer(detail->start_ns),
                                      store_integer(detail->end_ns)};
    json_object_begin(&report->json, NULL);
    for (size_t i = 0; i < COUNT(members); i++) {
        put_value(&report->json, members[i].key, store_query_value(row, members[i].column));
    }
    int result = put_rate(detail, "windows", TRAFFIC_WINDOWS, arguments[0].integer);
    if (result == 0) {
        result = put_rate(detail, "messages", TRAFFIC_MESSAGES, arguments[0].integer);
    }
    if (result == 0) {
        result = report_list(report, &events, arguments, 3, NULL);
    }
    if (result == 0) {
        result = report_list(report, &pins, arguments, 3, NULL);
    }
    json_object_end(&report->json);
    return result;
}

/* How many values a rate may have in a page of `steps` steps. */
static int share_values(struct detail *detail, int64_t steps)
{
    struct store_query *query = NULL;
    int64_t flows = 0;
    int result = store_query_open(&query, detail->report->store, traffic_flows_sql, NULL, 0);
    if (result != 0) {
        return result;
    }
    while ((result = store_query_next(query)) == 1) {
        flows++;
    }
    store_query_close(&query);
    int64_t share = flows == 0 || steps == 0 ? RATE_VALUES_MAX : PAGE_VALUES_MAX / flows / steps;
    detail->values_max = share < RATE_VALUES_MIN ? RATE_VALUES_MIN : share > RATE_VALUES_MAX ? RATE_VALUES_MAX : share;
    return result;
}

static int put_flows(struct detail *detail, int64_t steps)
{
    struct store_query *query = NULL;
    int result = share_values(detail, steps);
    if (result == 0) {
        result = store_query_open(&query, detail->report->store, traffic_flows_sql, NULL, 0);
    }
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

static int print_why(struct detail *detail)
{
    return detail->hangs ? why_report_print_hang(detail->report) : why_report_print(detail->report, &detail->step);
}

/* The same objects as why --json and timeline --json, and the paragraphs of why. */
static int put_said(struct detail *detail)
{
    struct report *report = detail->report;
    json_object_begin(&report->json, "why");
    int result = print_why(detail);
    json_object_end(&report->json);
    if (result != 0) {
        return result;
    }
    report_words_begin(report, "said");
    result = print_why(detail);
    report_words_end(report);
    if (result != 0) {
        return result;
    }
    json_object_begin(&report->json, "timeline");
    result = detail->hangs ? timeline_report_print_hang(report) : timeline_report_print(report, &detail->step);
    json_object_end(&report->json);
    return result;
}

static int put(struct detail *detail, int64_t steps)
{
    int result = put_said(detail);
    if (result == 0) {
        result = report_list(detail->report, &rank_steps, &detail->step, 1, NULL);
    }
    return result == 0 ? put_flows(detail, steps) : result;
}

int page_detail_put(struct report *report, int64_t step, int64_t steps)
{
    struct detail detail = {.report = report, .step = store_integer(step)};
    const struct store_value range[2] = {detail.step, detail.step};
    struct store_value times[2];
    int result = traffic_times(report->store, range, times);
    if (result != 0) {
        return result;
    }
    detail.start_ns = times[0].integer;
    detail.end_ns = times[1].integer;
    json_integer(&report->json, "step", step);
    return put(&detail, steps);
}

int page_detail_put_hang(struct report *report, int64_t steps)
{
    struct detail detail = {.report = report, .hangs = true};
    struct store_value from;
    struct store_value to;
    int result = store_reader_number(report->store, "SELECT " HANG_FROM, NULL, 0, &from);
    if (result == 0) {
        result = store_reader_number(report->store, "SELECT " HANG_TO, NULL, 0, &to);
    }
    if (result == 0) {
        result = store_reader_number(report->store, "SELECT " HANG_STEP, NULL, 0, &detail.step);
    }
    if (result != 0) {
        return result;
    }
    detail.start_ns = from.integer;
    detail.end_ns = to.integer;
    if (detail.step.kind == STORE_INTEGER) {
        json_integer(&report->json, "step", detail.step.integer);
    } else {
        json_null(&report->json, "step");
    }
    return put(&detail, steps);
}
