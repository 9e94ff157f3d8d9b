/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template and data to one file. Invariant: what is between the template's halves is one JSON object in which no "<"
 * stands, so that no name from outside can end its element.
 */
#include "report/page/page.h"

#include <errno.h>
#include <string.h>

#include "report/page/page_detail.h"
#include "report/subject/hang_report.h"
#include "report/subject/queue_pair_report.h"
#include "report/subject/rank_place.h"
#include "report/subject/step_choice.h"
#include "report/subject/step_list.h"
#include "report/subject/utc.h"
#include "report/subject/why_report.h"
#include "wire/log.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

extern const char page_template[]; /* made by page/meson.build */
static const char data_mark[] = "@DATA@";
static const char connect_mark[] = "@CONNECT@";
static const char connect_live[] = "; connect-src 'self'";

/* Without --step: the steps with the largest verdicts, the latest ranks and the longest time, and the healthy one. */
#define DETAILED_MAX "12"
#define ROWS_MAX     "30000" /* of operations of ranks, so that a browser holds the page */
#define HANG_SHARE   8       /* what hangs has this part of the values of a page */

#define WORST_FIRST                                                                                                    \
    "SELECT step.id, (SELECT count(*) FROM operation JOIN rank_operation ON rank_operation.operation = operation.id "  \
    "WHERE operation.step = step.id) AS parts, "                                                                       \
    "row_number() OVER (ORDER BY " WORSE_FIRST("step", "(SELECT max(size_ns) FROM verdict WHERE verdict.step = "       \
                                                       "step.id)") ") AS place FROM step"

#define DETAILED                                                                                                       \
    "WITH ranked AS (" WORST_FIRST "), wanted AS (SELECT id, parts, "                                                  \
    "CASE WHEN ?1 IS NULL AND id IN (SELECT id FROM " HEALTHY_STEP ") THEN 2 ELSE place * 2 + 1 END AS place FROM "    \
    "ranked "                                                                                                          \
    "WHERE ?1 IS NULL OR id BETWEEN ?1 AND ?2), "                                                                      \
    "filled AS (SELECT id, row_number() OVER (ORDER BY place) AS n, sum(parts) OVER (ORDER BY place) AS parts FROM "   \
    "wanted) "                                                                                                         \
    "SELECT id FROM filled WHERE n = 1 OR (parts <= " ROWS_MAX " AND (?1 IS NOT NULL OR n <= " DETAILED_MAX            \
    ")) ORDER BY id"
static const char detailed_sql[] = DETAILED;
static const char detailed_count_sql[] = "SELECT count(*) FROM (" DETAILED ")";

static const struct column meta_columns[] = {{"key", NULL, COLUMN_TEXT}, {"value", NULL, COLUMN_TEXT}};

static const struct listing meta = {
    "meta",
    "SELECT key, value FROM meta ORDER BY key",
    meta_columns,
    COUNT(meta_columns),
};

/* What happened to flows on their way, each once however often it was seen. */
static const struct column network_columns[] = {
    {"flows", NULL, COLUMN_INTEGER},         {"retransmitted_frames", NULL, COLUMN_INTEGER},
    {"marked_frames", NULL, COLUMN_INTEGER}, {"timeouts", NULL, COLUMN_INTEGER},
    {"naks", NULL, COLUMN_INTEGER},          {"rnr_naks", NULL, COLUMN_INTEGER},
    {"cnps", NULL, COLUMN_INTEGER},
};

static const struct listing network = {
    "network",
    "SELECT count(*), sum(retransmitted), sum(marked), sum(timeouts), sum(naks), sum(rnr_naks), sum(cnps) FROM (SELECT "
    "max(retransmitted_frames) AS retransmitted, max(marked_frames) AS marked, max(timeouts) AS timeouts, "
    "max(naks) AS naks, max(rnr_naks) AS rnr_naks, max(cnps) AS cnps FROM flow "
    "LEFT JOIN flow_evidence ON flow_evidence.flow = flow.id "
    "GROUP BY source, destination, destination_qpn, udp_source_port, generation)",
    network_columns,
    COUNT(network_columns),
};

/* Where each rank runs. */
static const struct column place_columns[] = {
    {"rank", NULL, COLUMN_INTEGER}, {"host", NULL, COLUMN_TEXT},   {"cuda_device", NULL, COLUMN_INTEGER},
    {"devices", NULL, COLUMN_TEXT}, {"pid", NULL, COLUMN_INTEGER}, {"command", NULL, COLUMN_TEXT},
    {"emitter", NULL, COLUMN_TEXT}, {"gpu", NULL, COLUMN_TEXT},    {"name", NULL, COLUMN_TEXT},
};

static const struct listing places = {
    "places",
    "SELECT member.rank, emitter.host, min(cuda_device), devices, process.pid, process.command, emitter.kind, "
    "place.gpu, "
    "place.name FROM member "
    "JOIN process ON process.id = member.process JOIN emitter ON emitter.id = process.emitter "
    "LEFT JOIN (SELECT rank, group_concat(DISTINCT device || '/' || port) AS devices FROM queue_pair "
    "WHERE rank IS NOT NULL GROUP BY rank) AS pairs ON pairs.rank = member.rank "
    "LEFT JOIN " RANK_PLACES "AS place ON place.rank = member.rank "
    "WHERE member.rank IS NOT NULL GROUP BY member.rank ORDER BY member.rank",
    place_columns,
    COUNT(place_columns),
};

static const struct column utc_columns[] = {{"host", NULL, COLUMN_TEXT}, {"bound_ns", NULL, COLUMN_INTEGER}};

static const struct listing utc = {
    "utc",
    "SELECT host, bound_ns FROM " UTC_SOURCE,
    utc_columns,
    COUNT(utc_columns),
};

#define BY_RANK_COLUMNS 4
#define BY_RANK_MAX     "400000" /* rows, so that a browser holds them: then of the last steps alone */
#define BY_RANK                                                                                                        \
    "SELECT step, rank, late_ns, cost_ns FROM rank_step WHERE step > (SELECT max(id) FROM step) - " BY_RANK_MAX        \
    " / max(1, (SELECT count(DISTINCT rank) FROM rank_step)) ORDER BY step, rank"

bool page_is_built(void)
{
    if (strstr(page_template, data_mark) != NULL) {
        return true;
    }
    log_error(
        "this qpscope was built without the page (%.*s): install npm, then meson setup --reconfigure and build again, "
        "with access to npm's registry",
        (int)strcspn(page_template, "\n"), page_template);
    return false;
}

/* Step, rank, lateness (null: not known) and cost as an array, since there can be a hundred thousand of them. */
static void put_by_rank(struct report *report, const struct store_query *row)
{
    json_array_begin(&report->json, NULL);
    for (size_t i = 0; i < BY_RANK_COLUMNS; i++) {
        struct store_value value = store_query_value(row, i);
        if (value.kind == STORE_INTEGER) {
            json_integer(&report->json, NULL, value.integer);
        } else {
            json_null(&report->json, NULL);
        }
    }
    json_array_end(&report->json);
}

static int put_details(struct report *report, const struct store_value range[2], int64_t *detailed)
{
    struct store_query *query = NULL;
    struct store_value steps;
    int result = store_reader_number(report->store, detailed_count_sql, range, 2, &steps);
    if (result == 0) {
        result = store_query_open(&query, report->store, detailed_sql, range, 2);
    }
    if (result != 0) {
        return result;
    }
    json_array_begin(&report->json, "details");
    while ((result = store_query_next(query)) == 1) {
        json_object_begin(&report->json, NULL);
        result = page_detail_put(report, store_query_value(query, 0).integer, steps.integer);
        json_object_end(&report->json);
        if (result != 0) {
            break;
        }
        (*detailed)++;
    }
    json_array_end(&report->json);
    store_query_close(&query);
    return result;
}

/* The time line of what hangs, null where nothing does. */
static int put_hang(struct report *report, int64_t steps)
{
    bool hangs;
    int result = hang_report_find(report, &hangs);
    if (result != 0) {
        return result;
    }
    if (!hangs) {
        json_null(&report->json, "hang_detail");
        return 0;
    }
    json_object_begin(&report->json, "hang_detail");
    result = page_detail_put_hang(report, steps);
    json_object_end(&report->json);
    return result;
}

static int print_why(struct report *report)
{
    static const struct store_value worst = {.kind = STORE_NULL};
    return why_report_print(report, &worst);
}

static int print_queue_pairs(struct report *report)
{
    static const struct queue_pair_filter everything = {.all = true};
    return queue_pair_report_print(report, &everything);
}

/* What a subcommand writes with --json, and what it says to people. */
static int put_parts(struct report *report)
{
    static const struct {
        const char *key;
        const char *said;
        int (*print)(struct report *report);
    } parts[] = {
        {"steps", "steps_said", step_list_print},
        {"why", "why_said", print_why},
        {"queue_pairs", "queue_pairs_said", print_queue_pairs},
    };
    int result = 0;
    for (size_t i = 0; result == 0 && i < COUNT(parts); i++) {
        json_object_begin(&report->json, parts[i].key);
        result = parts[i].print(report);
        json_object_end(&report->json);
        if (result == 0) {
            report_words_begin(report, parts[i].said);
            result = parts[i].print(report);
            report_words_end(report);
        }
    }
    return result;
}

/* What has a time line in a report. */
static int put_all_details(struct report *report, const struct store_value *range, int64_t *detailed)
{
    if (range != NULL) {
        int result = put_hang(report, HANG_SHARE);
        return result == 0 ? put_details(report, range, detailed) : result;
    }
    json_null(&report->json, "hang_detail");
    json_array_begin(&report->json, "details");
    json_array_end(&report->json);
    return 0;
}

static int put_data(struct report *report, const struct page_source *source, const struct store_value *range,
                    int64_t *detailed)
{
    json_text(&report->json, "store", source->name);
    json_boolean(&report->json, "live", source->live);
    json_integer(&report->json, "revision", (int64_t)source->revision);
    why_report_classes(report);
    int result = report_list(report, &meta, NULL, 0, NULL);
    if (result == 0) {
        result = report_list(report, &places, NULL, 0, NULL);
    }
    if (result == 0) {
        result = report_json_row(report, &network, NULL, 0);
    }
    if (result == 0) {
        result = report_json_row(report, &utc, NULL, 0);
    }
    if (result == 0) {
        result = put_parts(report);
    }
    if (result == 0) {
        json_array_begin(&report->json, "by_rank");
        result = report_each(report, BY_RANK, NULL, 0, put_by_rank, NULL);
        json_array_end(&report->json);
    }
    return result == 0 ? put_all_details(report, range, detailed) : result;
}

static void begin(struct report *report, FILE *out, bool in_html)
{
    json_init(&report->json, out);
    report->json.in_html = in_html;
    report->as_json = true;
    report_json_begin(&report->json);
}

static void end(struct report *report)
{
    json_object_end(&report->json);
    report->as_json = false;
}

int page_write_overview(struct report *report, FILE *out, const struct page_source *source)
{
    int64_t detailed = 0;
    begin(report, out, false);
    int result = put_data(report, source, NULL, &detailed);
    end(report);
    return result;
}

int page_write_step(struct report *report, FILE *out, const struct page_source *source, int64_t step)
{
    struct store_value number = store_integer(step);
    struct store_value found;
    int result = store_reader_number(report->store, "SELECT id FROM step WHERE id = ?1", &number, 1, &found);
    if (result != 0 || found.kind == STORE_NULL) {
        return result != 0 ? result : -ENOENT;
    }
    begin(report, out, false);
    json_integer(&report->json, "revision", (int64_t)source->revision);
    result = page_detail_put(report, step, 1);
    end(report);
    return result;
}

int page_write_hang(struct report *report, FILE *out, const struct page_source *source)
{
    bool hangs;
    int result = hang_report_find(report, &hangs);
    if (result != 0 || !hangs) {
        return result != 0 ? result : -ENOENT;
    }
    begin(report, out, false);
    json_integer(&report->json, "revision", (int64_t)source->revision);
    result = page_detail_put_hang(report, 1);
    end(report);
    return result;
}

/* The template up to its data, with what a live page may connect to; returns what comes behind the data. */
static const char *write_head(FILE *out, bool live)
{
    const char *connect = strstr(page_template, connect_mark);
    const char *mark = strstr(page_template, data_mark);
    fwrite(page_template, 1, (size_t)(connect - page_template), out);
    fputs(live ? connect_live : "", out);
    connect += strlen(connect_mark);
    fwrite(connect, 1, (size_t)(mark - connect), out);
    return mark + strlen(data_mark);
}

int page_write(struct report *report, FILE *out, const struct page_source *source, const struct store_value range[2],
               struct page_counts *counts)
{
    struct store_value steps;
    int64_t detailed = 0;
    int result = store_reader_number(report->store, "SELECT count(*) FROM step", NULL, 0, &steps);
    if (result != 0) {
        return result;
    }
    const char *tail = write_head(out, source->live);
    begin(report, out, true);
    result = put_data(report, source, source->live ? NULL : range, &detailed);
    end(report);
    fputs(tail, out);
    *counts = (struct page_counts){steps.integer, detailed};
    return result;
}
