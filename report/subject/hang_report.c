/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hanging operation rank by rank. A rank's last sign is the last thing that was seen of it: an enqueue, a credit,
 * data, the end of an operation; of one that never came to the hanging operation, in those before.
 */
#include "report/subject/hang_report.h"

#include <inttypes.h>

#include "report/form/text.h"
#include "report/subject/hang.h"
#include "report/subject/rank_place.h"
#include "report/subject/utc.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct column hang_columns[] = {
    {"step", NULL, COLUMN_INTEGER},        {"number", NULL, COLUMN_INTEGER},     {"operation", NULL, COLUMN_INTEGER},
    {"kind", NULL, COLUMN_TEXT},           {"place", NULL, COLUMN_INTEGER},      {"communicator", NULL, COLUMN_INTEGER},
    {"from_ns", NULL, COLUMN_INTEGER},     {"began_ns", NULL, COLUMN_INTEGER},   {"to_ns", NULL, COLUMN_INTEGER},
    {"began_utc", NULL, COLUMN_TEXT},      {"to_utc", NULL, COLUMN_TEXT},        {"utc_bound_ns", NULL, COLUMN_INTEGER},
    {"ranks_count", NULL, COLUMN_INTEGER}, {"ranks_seen", NULL, COLUMN_INTEGER},
};

static const struct listing hang_row = {
    "hang",
    "SELECT o.step, " HANG_NUMBER ", o.id, o.kind, o.place, o.communicator, " HANG_FROM ", o.start_ns, " HANG_TO
    ", " UTC_TEXT("o.start_ns") ", " UTC_TEXT(
        HANG_TO) ", (SELECT bound_ns FROM " UTC_SOURCE "), c.ranks_count, o.ranks_seen "
                 "FROM operation AS o JOIN communicator AS c ON c.id = o.communicator WHERE o.id = " HANG_OPERATION,
    hang_columns,
    COUNT(hang_columns),
};

static const struct column rank_columns[] = {
    {"rank", "rank", COLUMN_INTEGER},
    {"host", NULL, COLUMN_TEXT},
    {"gpu", NULL, COLUMN_TEXT},
    {NULL, "on", COLUMN_TEXT},
    {"state", "state", COLUMN_TEXT},
    {"named", NULL, COLUMN_FLAG},
    {"in_communicator", NULL, COLUMN_FLAG},
    {NULL, "gave it ms", COLUMN_MS},
    {NULL, "last sign ms", COLUMN_MS},
    {"silent_ns", "silent for ms", COLUMN_MS},
    {"enqueued_ns", NULL, COLUMN_INTEGER},
    {"last_sign_ns", NULL, COLUMN_INTEGER},
};

#define LAST_SIGN(of)                                                                                                  \
    "max(coalesce(" of ".enqueued_ns, 0), coalesce(" of ".host_ready_ns, 0), coalesce(" of ".gpu_ready_ns, 0), "       \
    "coalesce(" of ".last_data_ns, 0), coalesce(" of ".end_ns, 0))"

#define ELSEWHERE                                                                                                      \
    "EXISTS (SELECT 1 FROM rank_operation AS other WHERE other.rank = job.rank AND " HANG_HAS("other.operation") ")"

/* Of a group of sends and receives nobody knows who should be in it. */
#define STATE                                                                                                          \
    "CASE WHEN own IS NOT NULL AND named AND wireless THEN 'may hold it up' WHEN own IS NOT NULL AND named AND sent "  \
    "THEN 'does not go on' WHEN own IS NOT NULL AND named THEN 'has sent nothing' WHEN own IS NOT NULL THEN 'waits' "  \
    "WHEN named AND member THEN 'missing' WHEN named THEN 'may hold it up' "                                           \
    "WHEN elsewhere THEN 'waits in another operation' WHEN member AND kind <> 'SendRecv' THEN 'not seen in it' "       \
    "ELSE 'not in it' END"

/* In a merged store ranks of several jobs are numbered on. */
#define OF_ITS_JOB                                                                                                     \
    "coalesce((SELECT max(id) FROM source WHERE first_rank <= member.rank), 0) = coalesce((SELECT source FROM "        \
    "source_rows JOIN hang WHERE name = 'operation' AND hang.id BETWEEN first_row AND last_row), 0)"

#define HANG_RANKS                                                                                                     \
    "WITH hang AS (SELECT id, kind, communicator, start_ns FROM operation WHERE id = " HANG_OPERATION "), "            \
    "job AS (SELECT rank, max(communicator = (SELECT communicator FROM hang)) AS member FROM member WHERE rank IS "    \
    "NOT NULL AND " OF_ITS_JOB " GROUP BY rank), signs AS (SELECT rank, max(" LAST_SIGN(                               \
        "of") ") AS sign_ns FROM rank_operation AS of "                                                                \
              "GROUP BY rank), shown AS (SELECT job.rank AS rank, job.member AS member, own.id AS own, "               \
              "own.status = 'no wire' OR own.expected_bytes = 0 AS wireless, own.observed_bytes > 0 AS sent, "         \
              "own.enqueued_ns AS "                                                                                    \
              "enqueued_ns, " HANG_NAMES(                                                                              \
                  "job.rank") " AS named, " ELSEWHERE " AS elsewhere, hang.kind AS kind, hang.start_ns AS start_ns, "  \
                              "coalesce(nullif(" LAST_SIGN(                                                            \
                                  "own") ", 0), signs.sign_ns) AS sign_ns FROM hang JOIN job LEFT JOIN "               \
                                         "rank_operation AS own ON own.operation = hang.id AND own.rank = "            \
                                         "job.rank LEFT JOIN signs ON signs.rank = "                                   \
                                         "job.rank) "

static const struct listing hang_ranks = {
    "hang_ranks",
    HANG_RANKS "SELECT shown.rank, place.host, place.gpu, place.name, " STATE
               ", named, member, enqueued_ns - start_ns, "
               "sign_ns - start_ns, " HANG_TO " - sign_ns, enqueued_ns, sign_ns FROM shown LEFT JOIN " RANK_PLACES
               "AS place ON place.rank = shown.rank ORDER BY named DESC, member DESC, shown.rank LIMIT ?1",
    rank_columns,
    COUNT(rank_columns),
};

#define RANKS_SHOWN 24 /* of hundreds nobody reads all */
#define RANKS_LEFT                                                                                                     \
    HANG_RANKS ", rest AS (SELECT " STATE " AS state FROM shown ORDER BY named DESC, member DESC, rank LIMIT -1 "      \
               "OFFSET ?1) SELECT count(*) || ' more: ' || state FROM rest GROUP BY state"

static void say_left(struct report *report, const struct store_query *row)
{
    report_say(report, 0, "(%s)", store_query_value(row, 0).text);
}

static void say_hang(struct report *report, const struct store_query *row)
{
    char waited[TEXT_NUMBER_BYTES];
    char bound[TEXT_NUMBER_BYTES];
    struct store_value began = store_query_value(row, 9);
    struct store_value bound_ns = store_query_value(row, 11);
    text_duration(waited, store_query_value(row, 8).integer - store_query_value(row, 7).integer);
    report_say(report, 0,
               "%s on communicator %" PRId64 " hangs%s: %" PRId64 " of %" PRId64
               " ranks gave it, the first at %s%s%s, and for %s it has not ended%s",
               store_query_value(row, 3).text, store_query_value(row, 5).integer,
               store_query_value(row, 0).kind == STORE_NULL ? " behind the last whole step" : "",
               store_query_value(row, 13).integer, store_query_value(row, 12).integer,
               began.kind == STORE_TEXT ? began.text : "a time that is not known",
               bound_ns.kind == STORE_INTEGER ? " ±" : "",
               bound_ns.kind == STORE_INTEGER ? text_duration(bound, bound_ns.integer) : "", waited,
               report->in_words ? "" : "; times in ms after that");
}

int hang_report_find(struct report *report, bool *hangs)
{
    struct store_value operation;
    int result = store_reader_number(report->store, "SELECT " HANG_OPERATION, NULL, 0, &operation);
    *hangs = result == 0 && operation.kind == STORE_INTEGER;
    return result;
}

int hang_report_print(struct report *report)
{
    int result = report->as_json ? report_json_row(report, &hang_row, NULL, 0)
                                 : report_each(report, hang_row.sql, NULL, 0, say_hang, NULL);
    const struct store_value shown = store_integer(report->as_json ? -1 : RANKS_SHOWN);
    if (result == 0) {
        result = report_list(report, &hang_ranks, &shown, 1, NULL);
    }
    return result == 0 && !report->as_json && !report->in_words
               ? report_each(report, RANKS_LEFT, &shown, 1, say_left, NULL)
               : result;
}
