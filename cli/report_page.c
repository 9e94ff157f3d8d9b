/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template and data to one file. Invariant: what is between the template's halves is one JSON object in which no "<"
 * stands, so that no name from outside can end its element.
 */
#include "cli/report_page.h"

#include <errno.h>
#include <string.h>

#include "cli/report_page_detail.h"
#include "cli/subcommand.h"
#include "wire/log.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

extern const char page_template[]; /* made by page/meson.build */
static const char data_mark[] = "@DATA@";

/* Without --step: the steps with the largest verdicts, the latest ranks and the longest time, and a usual one. */
#define DETAILED_MAX "12"
#define ROWS_MAX     "30000" /* of operations of ranks, so that a browser holds the page */

#define WORST_FIRST                                                                                                    \
    "SELECT step.id, (SELECT count(*) FROM operation JOIN rank_operation ON rank_operation.operation = operation.id "  \
    "WHERE operation.step = step.id) AS parts, "                                                                       \
    "row_number() OVER (ORDER BY (SELECT max(size_ns) FROM verdict WHERE verdict.step = step.id) DESC NULLS LAST, "    \
    "late_ns DESC NULLS LAST, duration_ns DESC, step.id) AS place, "                                                   \
    "row_number() OVER (ORDER BY duration_ns, step.id) AS rising, count(*) OVER () AS steps FROM step"

static const char detailed_sql[] =
    "WITH ranked AS (" WORST_FIRST "), wanted AS (SELECT id, parts, "
    "CASE WHEN ?1 IS NULL AND rising = steps / 2 + 1 THEN 2 ELSE place * 2 + 1 END AS place FROM ranked "
    "WHERE ?1 IS NULL OR id BETWEEN ?1 AND ?2), "
    "filled AS (SELECT id, row_number() OVER (ORDER BY place) AS n, sum(parts) OVER (ORDER BY place) AS parts FROM "
    "wanted) "
    "SELECT id FROM filled WHERE n = 1 OR (parts <= " ROWS_MAX " AND (?1 IS NOT NULL OR n <= " DETAILED_MAX
    ")) ORDER BY id";

static const struct column meta_columns[] = {{"key", NULL, COLUMN_TEXT}, {"value", NULL, COLUMN_TEXT}};

static const struct listing meta = {
    "meta",
    "SELECT key, value FROM meta ORDER BY key",
    meta_columns,
    COUNT(meta_columns),
};

#define LATE_COLUMNS 3
#define LATENESS     "SELECT step, rank, late_ns FROM rank_step ORDER BY step, rank"

bool report_page_is_built(void)
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

/* Step, rank and nanoseconds (null: not known) as an array, since there can be a hundred thousand of them. */
static void put_late(struct report *report, const struct store_query *row)
{
    json_array_begin(&report->json, NULL);
    for (size_t i = 0; i < LATE_COLUMNS; i++) {
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
    int result = store_query_open(&query, report->store, detailed_sql, range, 2);
    if (result != 0) {
        return result;
    }
    json_array_begin(&report->json, "details");
    while ((result = store_query_next(query)) == 1) {
        result = report_page_detail(report, store_query_value(query, 0).integer);
        if (result != 0) {
            break;
        }
        (*detailed)++;
    }
    json_array_end(&report->json);
    store_query_close(&query);
    return result;
}

static int print_why(struct report *report)
{
    static const struct store_value worst = {.kind = STORE_NULL};
    return subcommand_why_print(report, &worst);
}

/* What a subcommand writes with --json, and what it says to people. */
static int put_parts(struct report *report)
{
    static const struct {
        const char *key;
        const char *said;
        int (*print)(struct report *report);
    } parts[] = {
        {"steps", "steps_said", subcommand_steps_print},
        {"why", "why_said", print_why},
        {"queue_pairs", "queue_pairs_said", subcommand_qps_print_all},
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

static int put_data(struct report *report, const char *name, const struct store_value range[2], int64_t *detailed)
{
    json_text(&report->json, "store", name);
    int result = report_list(report, &meta, NULL, 0, NULL);
    if (result == 0) {
        result = put_parts(report);
    }
    if (result == 0) {
        json_array_begin(&report->json, "lateness");
        result = report_each(report, LATENESS, NULL, 0, put_late, NULL);
        json_array_end(&report->json);
    }
    return result == 0 ? put_details(report, range, detailed) : result;
}

int report_page_write(struct report *report, FILE *out, const char *name, const struct store_value range[2],
                      struct report_page_counts *counts)
{
    struct store_value steps;
    int64_t detailed = 0;
    const char *mark = strstr(page_template, data_mark);
    int result = store_reader_number(report->store, "SELECT count(*) FROM step", NULL, 0, &steps);
    if (result != 0) {
        return result;
    }
    fwrite(page_template, 1, (size_t)(mark - page_template), out);
    json_init(&report->json, out);
    report->json.in_html = true;
    report->as_json = true;
    report_json_begin(&report->json);
    result = put_data(report, name, range, &detailed);
    json_object_end(&report->json);
    report->as_json = false;
    fputs(mark + strlen(data_mark), out);
    *counts = (struct report_page_counts){steps.integer, detailed};
    return result;
}
