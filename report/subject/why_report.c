/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope why: the verdicts of a step in words, and the operation that decided it, rank by rank. */
#include "report/subject/why_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/form/text.h"
#include "report/subject/hang.h"
#include "report/subject/hang_report.h"
#include "report/subject/loss.h"
#include "report/subject/path_report.h"
#include "report/subject/rank_place.h"
#include "report/subject/step_report.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *name;
    const char *meaning;
} classes[] = {
#define VERDICT_CLASS(name, text, fields, meaning, more) {text, meaning},
#include "correlator/verdict/verdict_class.def"
#undef VERDICT_CLASS
};

static const char *class_meaning(const char *name)
{
    for (size_t i = 0; i < COUNT(classes); i++) {
        if (strcmp(classes[i].name, name) == 0) {
            return classes[i].meaning;
        }
    }
    return "a class that this qpscope does not know";
}

static const struct column summary_columns[] = {
    {"class", "verdict", COLUMN_TEXT},        {NULL, "where", COLUMN_TEXT},
    {NULL, "on", COLUMN_TEXT | COLUMN_SPARE}, {NULL, "steps", COLUMN_TEXT | COLUMN_RIGHT},
    {"rank", NULL, COLUMN_INTEGER},           {"candidates", NULL, COLUMN_TEXT},
    {"peer_rank", NULL, COLUMN_INTEGER},      {"device", NULL, COLUMN_TEXT},
    {"steps", NULL, COLUMN_INTEGER},          {"steps_total", NULL, COLUMN_INTEGER},
    {"median_ns", "median ms", COLUMN_MS},    {"largest_ns", "largest ms", COLUMN_MS},
};

#define NOBODY "CASE WHEN class IN ('hang', 'late: cause not visible') THEN 'nobody alone' ELSE 'all ranks' END"

#define PLACE                                                                                                          \
    "CASE WHEN candidates IS NOT NULL THEN 'one of ranks ' || candidates WHEN rank IS NULL THEN " NOBODY " WHEN "      \
    "peer_rank IS NULL THEN 'rank ' || rank "                                                                          \
    "ELSE 'link rank ' || rank || ' to rank ' || peer_rank END || coalesce(' (' || device || ')', '')"

/* The same with where the ranks run. */
#define PLACE_NAMED(of)                                                                                                \
    "CASE WHEN candidates IS NOT NULL THEN 'one of ranks ' || candidates WHEN " of ".rank IS NULL THEN " NOBODY " "    \
    "WHEN peer_rank IS NULL THEN " RANK_NAMED(of ".rank") " ELSE 'link ' || " RANK_NAMED(                              \
        of ".rank") " || ' to ' || " RANK_NAMED(of ".peer_rank") " END || coalesce(', ' || device, '')"

#define ON(of)                                                                                                         \
    "(SELECT name FROM " RANK_PLACES "AS at WHERE at.rank = " of                                                       \
    ".rank) || coalesce(' to ' || (SELECT name FROM " RANK_PLACES "AS at WHERE at.rank = " of ".peer_rank), '')"

/* One row a culprit: the largest verdict of it in each step, then the median of those over its steps. */
#define CULPRITS                                                                                                       \
    "WITH by_step AS (SELECT class, rank, candidates, peer_rank, device, step, max(size_ns) AS size_ns FROM verdict "  \
    "WHERE step IS NOT NULL GROUP BY class, rank, candidates, peer_rank, device, step), "                              \
    "ranked AS (SELECT *, row_number() OVER (PARTITION BY class, rank, candidates, peer_rank, device ORDER BY "        \
    "size_ns) AS n, "                                                                                                  \
    "count(*) OVER (PARTITION BY class, rank, candidates, peer_rank, device) AS steps FROM by_step), "                 \
    "culprit AS (SELECT class, rank, candidates, peer_rank, device, steps, (SELECT count(*) FROM step) AS "            \
    "steps_total, "                                                                                                    \
    "CAST(avg(CASE WHEN n IN ((steps + 1) / 2, (steps + 2) / 2) THEN size_ns END) AS INTEGER) AS median_ns, "          \
    "max(size_ns) AS largest_ns FROM ranked GROUP BY class, rank, candidates, peer_rank, device) "

#define CULPRITS_SHOWN 8

static const struct listing summary = {
    "summary",
    CULPRITS "SELECT class, " PLACE ", " ON(
        "culprit") ", steps || ' of ' || steps_total, rank, candidates, peer_rank, device, steps, steps_total, "
                   "median_ns, largest_ns FROM culprit ORDER BY steps DESC, median_ns DESC, class, rank, candidates, "
                   "peer_rank, device "
                   "LIMIT ?1",
    summary_columns,
    COUNT(summary_columns),
};

#define CULPRITS_LEFT CULPRITS "SELECT count(*) - ?1 FROM culprit HAVING count(*) > ?1"

static const struct column verdict_columns[] = {
    {"class", NULL, COLUMN_TEXT},       {"rank", NULL, COLUMN_INTEGER},         {"peer_rank", NULL, COLUMN_INTEGER},
    {"device", NULL, COLUMN_TEXT},      {"operation", NULL, COLUMN_INTEGER},    {"place", NULL, COLUMN_INTEGER},
    {"kind", NULL, COLUMN_TEXT},        {"communicator", NULL, COLUMN_INTEGER}, {"size_ns", NULL, COLUMN_INTEGER},
    {"bound_ns", NULL, COLUMN_INTEGER}, {"confidence", NULL, COLUMN_REAL},      {"evidence", NULL, COLUMN_TEXT},
    {"more", NULL, COLUMN_TEXT},        {"since_step", NULL, COLUMN_INTEGER},   {"chronic", NULL, COLUMN_FLAG},
    {"candidates", NULL, COLUMN_TEXT},
};

#define OVER_FOR "5" /* so many last steps without it: it is over */

/* The last step in which the same was said of the same; NULL where it is not over. */
#define LAST_OF_RUN                                                                                                    \
    "(SELECT iif(max(v.step) + " OVER_FOR " <= (SELECT max(id) FROM step), max(v.step), NULL) FROM verdict AS v "      \
    "WHERE v.class = verdict.class AND v.rank IS verdict.rank AND v.peer_rank IS verdict.peer_rank AND "               \
    "v.candidates IS verdict.candidates) "

#define VERDICTS                                                                                                       \
    "SELECT class, rank, peer_rank, device, operation, operation.place, operation.kind, operation.communicator, "      \
    "size_ns, bound_ns, confidence, evidence, more, since_step, chronic, candidates, " PLACE_NAMED(                    \
        "verdict") ", CASE WHEN operation.step IS NULL THEN 'after the last whole step' "                              \
                   "WHEN verdict.step IS NULL THEN 'in step ' || operation.step || ', which has not ended' "           \
                   "ELSE 'in operation ' || operation.place || ' of the step' END, " LAST_OF_RUN                       \
                   "FROM verdict JOIN operation ON operation.id = verdict.operation "                                  \
                   "LEFT JOIN verdict_run ON verdict_run.verdict = verdict.id WHERE verdict.step "

static const struct listing verdicts = {
    "verdicts",
    VERDICTS "= ?1 ORDER BY size_ns DESC, verdict.id",
    verdict_columns,
    COUNT(verdict_columns),
};

/* What hangs belongs to no whole step. */
static const struct listing hangs = {
    "hangs",
    VERDICTS "IS NULL ORDER BY size_ns DESC, verdict.id",
    verdict_columns,
    COUNT(verdict_columns),
};

static const struct column number_columns[] = {
    {"verdict", NULL, COLUMN_INTEGER},   {"class", NULL, COLUMN_TEXT},       {"decides", NULL, COLUMN_FLAG},
    {"source", NULL, COLUMN_TEXT},       {"port", NULL, COLUMN_INTEGER},     {"port_name", NULL, COLUMN_TEXT},
    {"flow", NULL, COLUMN_INTEGER},      {"side", NULL, COLUMN_TEXT},        {"metric", NULL, COLUMN_TEXT},
    {"priority", NULL, COLUMN_INTEGER},  {"from_ns", NULL, COLUMN_INTEGER},  {"to_ns", NULL, COLUMN_INTEGER},
    {"amount", NULL, COLUMN_INTEGER},    {"usual", NULL, COLUMN_REAL},       {"share", NULL, COLUMN_REAL},
    {"first_row", NULL, COLUMN_INTEGER}, {"last_row", NULL, COLUMN_INTEGER}, {"rank", NULL, COLUMN_INTEGER},
    {"tid", NULL, COLUMN_INTEGER},
};

/* What was counted while the slow transfer ran (of a late rank: while its first frame was waited for). */
static const struct listing numbers = {
    "evidence",
    "SELECT e.verdict, v.class, e.decides, e.source, e.port, port.name, e.flow, e.side, e.metric, e.priority, "
    "e.from_ns, e.to_ns, e.amount, e.usual, e.share, e.first_row, e.last_row, e.rank, e.tid "
    "FROM verdict_evidence AS e JOIN verdict AS v ON v.id = e.verdict LEFT JOIN port ON port.id = "
    "e.port "
    "WHERE v.step IS ?1 OR v.step IS NULL ORDER BY v.size_ns DESC, v.id, e.decides DESC, e.rowid",
    number_columns,
    COUNT(number_columns),
};

static const struct column operation_columns[] = {
    {"operation", NULL, COLUMN_INTEGER},
    {"place", NULL, COLUMN_INTEGER},
    {"kind", NULL, COLUMN_TEXT},
    {"communicator", NULL, COLUMN_INTEGER},
    {"ranks_count", NULL, COLUMN_INTEGER},
    {"ranks_seen", NULL, COLUMN_INTEGER},
    {"buffer_bytes", NULL, COLUMN_INTEGER},
    {"algorithm", NULL, COLUMN_TEXT},
    {"status", NULL, COLUMN_TEXT},
    {"start_ns", NULL, COLUMN_INTEGER},
    {"last_arrival_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},
};

static const struct listing operation_row = {
    "operation",
    "SELECT o.id, place, kind, communicator, ranks_count, o.ranks_seen, buffer_bytes, algorithm, status, start_ns, "
    "iif(hangs, NULL, last_arrival_ns), iif(hangs, NULL, end_ns) FROM " HANG_OPERATIONS "AS o JOIN communicator ON "
    "communicator.id = o.communicator WHERE o.id = ?1",
    operation_columns,
    COUNT(operation_columns),
};

static const struct column rank_columns[] = {
    {"rank", "rank", COLUMN_INTEGER},
    {"host", NULL, COLUMN_TEXT},
    {"gpu", NULL, COLUMN_TEXT},
    {NULL, "on", COLUMN_TEXT},
    {NULL, "enqueued", COLUMN_MS},
    {NULL, "host ready", COLUMN_MS},
    {NULL, "GPU ready", COLUMN_TEXT | COLUMN_RIGHT},
    {NULL, "first data", COLUMN_MS | COLUMN_SPARE},
    {NULL, "last data", COLUMN_MS | COLUMN_SPARE},
    {NULL, "end", COLUMN_MS},
    {"late_ns", "late by", COLUMN_MS},
    {"arrival_of", "seen by", COLUMN_TEXT},
    {"status", "status", COLUMN_TEXT},
    {"enqueued_ns", NULL, COLUMN_INTEGER},
    {"host_ready_ns", NULL, COLUMN_INTEGER},
    {"gpu_ready_ns", NULL, COLUMN_INTEGER},
    {"gpu_ready_known", NULL, COLUMN_FLAG},
    {"arrival_ns", NULL, COLUMN_INTEGER},
    {"first_data_ns", NULL, COLUMN_INTEGER},
    {"last_data_ns", NULL, COLUMN_INTEGER},
    {"end_ns", NULL, COLUMN_INTEGER},
    {"active_ns", NULL, COLUMN_INTEGER},
    {"expected_bytes", NULL, COLUMN_INTEGER},
    {"observed_bytes", NULL, COLUMN_INTEGER},
    {"retransmitted_frames", NULL, COLUMN_INTEGER},
    {"marked_frames", NULL, COLUMN_INTEGER},
};

static const struct listing ranks = {
    "ranks",
    "SELECT r.rank, place.host, place.gpu, place.name, r.enqueued_ns - o.start_ns, r.host_ready_ns - o.start_ns, "
    "CASE WHEN r.gpu_ready_ns IS NOT NULL THEN iif(r.gpu_ready_known = 0, '≤', '') || printf('%.3f', (r.gpu_ready_ns - "
    "o.start_ns) / 1e6) END, "
    "r.first_data_ns - o.start_ns, r.last_data_ns - o.start_ns, iif(hangs, NULL, r.end_ns - o.start_ns), "
    "iif(hangs, NULL, r.late_ns), r.arrival_of, "
    "r.status, r.enqueued_ns, r.host_ready_ns, r.gpu_ready_ns, r.gpu_ready_known, r.arrival_ns, r.first_data_ns, "
    "r.last_data_ns, iif(hangs, NULL, r.end_ns), r.active_ns, r.expected_bytes, r.observed_bytes, "
    "r.retransmitted_frames, "
    "r.marked_frames FROM rank_operation AS r JOIN " HANG_OPERATIONS "AS o ON o.id = r.operation "
    "LEFT JOIN " RANK_PLACES "AS place ON place.rank = r.rank "
    "WHERE r.operation = ?1 AND r.id IN (SELECT id FROM rank_operation WHERE operation = ?1 ORDER BY "
    "status = 'complete', first_data_ns IS NOT NULL, late_ns IS NOT NULL, late_ns DESC LIMIT ?2) "
    "ORDER BY r.rank IS NULL, r.rank, r.id",
    rank_columns,
    COUNT(rank_columns),
};

#define RANKS_SHOWN 24 /* the latest, and those of which something is missing; of hundreds nobody reads all */
#define RANKS_LEFT  "SELECT count(*) - ?2 FROM rank_operation WHERE operation = ?1 HAVING count(*) > ?2"

static void say_ranks_left(struct report *report, const struct store_query *query)
{
    report_say(report, 0, "(%" PRId64 " ranks more, less late)", store_query_value(query, 0).integer);
}

static void say_left(struct report *report, const struct store_query *query)
{
    report_say(report, 0, "(%" PRId64 " more, of fewer steps or smaller: --json has all)",
               store_query_value(query, 0).integer);
}

static void say_verdict(struct report *report, const struct store_query *query)
{
    const char *class = store_query_value(query, 0).text;
    char size[TEXT_NUMBER_BYTES];
    char bound[TEXT_NUMBER_BYTES];
    int64_t size_ns = store_query_value(query, 8).integer;
    char cost[2 * TEXT_NUMBER_BYTES + 8] = "cost not known";
    if (size_ns > 0) {
        snprintf(cost, sizeof(cost), "%s ±%s", text_duration(size, size_ns),
                 text_duration(bound, store_query_value(query, 9).integer));
    }
    report_say(report, 0, "%s: %s, %s, %s (%s on communicator %" PRId64 "), confidence %.0f %%", class,
               store_query_value(query, 16).text, cost, store_query_value(query, 17).text,
               store_query_value(query, 6).text, store_query_value(query, 7).integer,
               store_query_value(query, 10).real * 100);
    report_say(report, 2, "it means: %s", class_meaning(class));
    report_say(report, 2, "evidence: %s", store_query_value(query, 11).text);
    if (store_query_value(query, 14).integer != 0 && store_query_value(query, 18).integer != 0)
        report_say(report, 2, "chronic, from step %" PRId64 " to step %" PRId64 ", not since",
                   store_query_value(query, 13).integer, store_query_value(query, 18).integer);
    else if (store_query_value(query, 14).integer != 0)
        report_say(report, 2, "chronic, since step %" PRId64, store_query_value(query, 13).integer);
    if (store_query_value(query, 12).kind == STORE_TEXT)
        report_say(report, 2, "what would tell more, if it goes on: %s", store_query_value(query, 12).text);
}

#define AMOUNT(of) "CASE WHEN share IS NULL THEN printf('%.4g', " of ") ELSE printf('%.3f ms', " of " / 1e6) END"

#define NUMBER_PLACE                                                                                                   \
    "CASE WHEN count(*) > 1 THEN count(*) || CASE e.source WHEN 'transport' THEN ' ranks' ELSE ' flows' END "          \
    "WHEN e.source = 'rdma_port' THEN (SELECT 'port ' || device || '/' || port FROM rdma_port WHERE id = first_row) "  \
    "WHEN e.rank IS NOT NULL THEN 'rank ' || e.rank || coalesce(', thread ' || e.tid, '') "                            \
    "WHEN e.source = 'failure' THEN 'an unknown rank' "                                                                \
    "WHEN e.port IS NULL THEN 'flow ' || e.flow ELSE 'port ' || port.name END || ' (' || e.side || ')'"

#define NUMBER_ROWS                                                                                                    \
    "e.source || ' ' || group_concat(e.first_row || CASE WHEN e.last_row = e.first_row THEN '' "                       \
    "ELSE '-' || e.last_row END, ', ')"

/* For people, a link's flows together, and the ranks that used sockets. */
#define NUMBERS_OF(verdicts)                                                                                           \
    "SELECT class, decides, metric || coalesce(' of priority ' || priority, ''), " AMOUNT(                             \
        "amount") ", span_ns, "                                                                                        \
                  "printf(' (%.0f %%)', share * 100), CASE WHEN usual IS NULL THEN '' ELSE ', usual ' || " AMOUNT(     \
                      "usual") " END, place, rows, share IS NULL "                                                     \
                               "FROM (SELECT v.class, e.decides, e.metric, e.priority, sum(e.amount) AS amount, "      \
                               "max(e.to_ns - e.from_ns) AS span_ns, sum(e.share) AS share, max(e.usual) AS "          \
                               "usual, " NUMBER_PLACE " AS place, " NUMBER_ROWS                                        \
                               " AS rows, v.size_ns, v.id, min(e.rowid) AS first "                                     \
                               "FROM verdict_evidence AS e JOIN verdict AS v ON v.id = e.verdict LEFT JOIN port ON "   \
                               "port.id = e.port "                                                                     \
                               "WHERE v.step " verdicts                                                                \
                               " GROUP BY v.id, e.decides, e.metric, e.priority, e.port, e.side, "                     \
                               "CASE e.source WHEN 'transport' THEN NULL WHEN 'rdma_port' THEN e.first_row ELSE "      \
                               "e.rank END) ORDER BY size_ns DESC, id, "                                               \
                               "decides DESC, first"

static void say_number(struct report *report, const struct store_query *query)
{
    char span[TEXT_NUMBER_BYTES];
    report_say(report, 2, "counted beside %s%s: %s at %s: %s in %s%s%s; rows: %s", store_query_value(query, 0).text,
               store_query_value(query, 1).integer != 0 ? "" : ", not decisive", store_query_value(query, 2).text,
               store_query_value(query, 7).text, store_query_value(query, 3).text,
               text_duration(span, store_query_value(query, 4).integer),
               store_query_value(query, 9).integer != 0 ? "" : store_query_value(query, 5).text,
               store_query_value(query, 6).text, store_query_value(query, 8).text);
}

#define LATEST                                                                                                         \
    "WITH usual AS (SELECT duration_ns FROM step WHERE kind = 'training' ORDER BY duration_ns LIMIT 1 OFFSET "         \
    "(SELECT count(*) / 2 FROM step WHERE kind = 'training')) "                                                        \
    "SELECT slowest_rank, late_ns, late_bound_ns, iif(kind = 'training' AND duration_ns > 1.25 * (SELECT duration_ns " \
    "FROM usual), (SELECT duration_ns FROM usual), NULL), " RANK_NAMED("slowest_rank") " FROM step WHERE id = ?1"

static void say_all_slower(struct report *report, const struct store_query *query)
{
    char usual[TEXT_NUMBER_BYTES];
    if (store_query_value(query, 3).kind == STORE_INTEGER) {
        report_say(report, 0,
                   "it took longer than the usual %s, and for all ranks alike: no rank and no link was late by it",
                   text_duration(usual, store_query_value(query, 3).integer));
    }
}

static void say_no_verdict(struct report *report, const struct store_query *query)
{
    struct store_value rank = store_query_value(query, 0);
    int64_t late_ns = store_query_value(query, 1).integer;
    struct store_value bound = store_query_value(query, 2);
    const char *name = store_query_value(query, 4).text;
    char late[TEXT_NUMBER_BYTES];
    char number[TEXT_NUMBER_BYTES];
    if (rank.kind == STORE_NULL) {
        report_say(report, 0, "no verdict: no rank's lateness is known in this step");
    } else if (bound.kind == STORE_NULL) {
        report_say(report, 0, "no verdict: the latest was %s, by %s; its error bound is not known", name,
                   text_duration(late, late_ns));
    } else {
        report_say(report, 0, "no verdict: the latest was %s, by %s ±%s%s", name, text_duration(late, late_ns),
                   text_duration(number, bound.integer),
                   late_ns > bound.integer ? "" : ", which is no more than what the clocks' error can make");
    }
    say_all_slower(report, query);
}

static void say_operation(struct report *report, const struct store_query *query)
{
    char bytes[TEXT_NUMBER_BYTES];
    char place[TEXT_NUMBER_BYTES + 24] = "the operation";
    if (store_query_value(query, 1).kind == STORE_INTEGER) {
        snprintf(place, sizeof(place), "operation %" PRId64 " of the step", store_query_value(query, 1).integer);
    }
    report_say(report, 0,
               "%s: %s of %s on communicator %" PRId64 ", %" PRId64 " of %" PRId64
               " ranks seen, %s, %s; times in ms after its first enqueue",
               place, store_query_value(query, 2).text, text_bytes(bytes, store_query_value(query, 6).integer),
               store_query_value(query, 3).integer, store_query_value(query, 5).integer,
               store_query_value(query, 4).integer, store_query_value(query, 7).text, store_query_value(query, 8).text);
}

#define NOT_SEEN                                                                                                       \
    "SELECT CASE WHEN count(*) > 16 THEN count(*) || ' ranks' ELSE iif(count(*) = 1, 'rank ', 'ranks ') || "           \
    "group_concat(coalesce(rank, 'unknown'), ', ') END, missing FROM ("                                                \
    "SELECT rank, rtrim(CASE WHEN enqueued_ns IS NULL THEN 'enqueue, ' ELSE '' END || "                                \
    "CASE WHEN host_ready_ns IS NULL THEN 'host ready, ' ELSE '' END || "                                              \
    "CASE WHEN gpu_ready_ns IS NULL THEN 'GPU ready, ' ELSE '' END || "                                                \
    "CASE WHEN first_data_ns IS NULL THEN 'data, ' ELSE '' END, ', ') AS missing "                                     \
    "FROM rank_operation WHERE operation = ?1 AND missing != '' ORDER BY rank IS NULL, rank, id) "                     \
    "GROUP BY missing ORDER BY min(rank)"

static void say_not_seen(struct report *report, const struct store_query *query)
{
    report_say(report, 0, "not seen of %s: %s", store_query_value(query, 0).text, store_query_value(query, 1).text);
}

/* What a report rests on: a step, and the operation that decided it (NULL when none is known). */
struct subject {
    struct store_value step;
    struct store_value operation;
};

#define DECIDING_OPERATION                                                                                             \
    "SELECT coalesce((SELECT operation FROM verdict WHERE step = ?1 ORDER BY size_ns DESC, id LIMIT 1), "              \
    "(SELECT late_operation FROM step WHERE id = ?1))"

static int find_subject(struct report *report, const struct store_value *wanted, struct subject *subject)
{
    int result = step_report_choose(report, wanted, &subject->step);
    return result == 0 ? store_reader_number(report->store, DECIDING_OPERATION, &subject->step, 1, &subject->operation)
                       : result;
}

static int print_verdicts(struct report *report, const struct subject *subject)
{
    size_t count = 0;
    int result = report->as_json ? report_list(report, &verdicts, &subject->step, 1, &count)
                                 : report_each(report, verdicts.sql, &subject->step, 1, say_verdict, &count);
    if (result == 0 && count == 0 && !report->as_json) {
        result = report_each(report, LATEST, &subject->step, 1, say_no_verdict, NULL);
    }
    if (result != 0) {
        return result;
    }
    return report->as_json ? report_list(report, &numbers, &subject->step, 1, NULL)
                           : report_each(report, NUMBERS_OF("= ?1"), &subject->step, 1, say_number, NULL);
}

static int print_operation(struct report *report, const struct subject *subject)
{
    int result = report_json_row(report, &operation_row, &subject->operation, 1);
    if (result == 0 && !report->as_json && subject->operation.kind == STORE_INTEGER) {
        report_break(report);
        result = report_each(report, operation_row.sql, &subject->operation, 1, say_operation, NULL);
    }
    const struct store_value asked[] = {subject->operation, store_integer(report->as_json ? -1 : RANKS_SHOWN)};
    if (result == 0) {
        result = report_list(report, &ranks, asked, COUNT(asked), NULL);
    }
    if (result == 0 && !report->as_json) {
        result = report_each(report, RANKS_LEFT, asked, COUNT(asked), say_ranks_left, NULL);
    }
    if (result == 0 && !report->as_json) {
        result = report_each(report, NOT_SEEN, &subject->operation, 1, say_not_seen, NULL);
    }
    return result;
}

/* What hangs now comes before all that was slow. */
static int print_hangs(struct report *report)
{
    struct subject subject = {.step = {.kind = STORE_NULL}};
    size_t count = 0;
    if (report->as_json) {
        int listed = report_list(report, &hangs, NULL, 0, NULL);
        return listed == 0 ? hang_report_print(report) : listed;
    }
    int result = report_each(report, hangs.sql, NULL, 0, say_verdict, &count);
    if (result == 0 && count != 0) {
        result = report_each(report, NUMBERS_OF("IS NULL"), NULL, 0, say_number, NULL);
    }
    if (result == 0 && count != 0) {
        report_break(report);
        result = hang_report_print(report);
    }
    if (result == 0 && count != 0) {
        result = store_reader_number(report->store, "SELECT " HANG_OPERATION, NULL, 0, &subject.operation);
    }
    if (result == 0 && count != 0) {
        result = print_operation(report, &subject);
        report_break(report);
    }
    return result;
}

static int print_step(struct report *report, const struct subject *subject)
{
    int result = step_report_print(report, &subject->step);
    if (result == 0) {
        result = print_verdicts(report, subject);
    }
    if (result == 0) {
        result = print_operation(report, subject);
    }
    if (result == 0) {
        result = path_report_print(report, &subject->step);
    }
    return result == 0 ? loss_report_step(report, subject->step.integer) : result;
}

static int print_summary(struct report *report)
{
    static const struct store_value all = {.kind = STORE_INTEGER, .integer = -1};
    struct store_value shown = store_integer(CULPRITS_SHOWN);
    size_t count = 0;
    int result = report_list(report, &summary, report->as_json ? &all : &shown, 1, &count);
    if (result != 0 || report->as_json) {
        return result;
    }
    if (count == 0) {
        report_say(report, 0, "no verdict in any step: nothing was late enough to be blamed");
    }
    result = report_each(report, CULPRITS_LEFT, &shown, 1, say_left, NULL);
    report_break(report);
    return result;
}

int why_report_print(struct report *report, const struct store_value *wanted)
{
    struct subject subject;
    int result = find_subject(report, wanted, &subject);
    if (result != 0) {
        return result;
    }
    if (wanted->kind == STORE_NULL && (result = print_hangs(report)) != 0) {
        return result;
    }
    if (subject.step.kind == STORE_NULL) {
        report_say(report, 0, "no steps yet: none of the job's operations has been seen to repeat");
    } else if (wanted->kind == STORE_NULL) {
        result = print_summary(report);
    }
    if (result == 0 && (report->as_json || subject.step.kind == STORE_INTEGER)) {
        result = print_step(report, &subject);
    }
    return result;
}

int why_report_print_hang(struct report *report)
{
    struct subject subject = {.step = {.kind = STORE_NULL}};
    int result = print_hangs(report);
    if (result != 0 || !report->as_json) {
        return result;
    }
    result = report_list(report, &numbers, &subject.step, 1, NULL);
    if (result == 0) {
        result = store_reader_number(report->store, "SELECT " HANG_OPERATION, NULL, 0, &subject.operation);
    }
    if (result == 0) {
        result = print_operation(report, &subject);
    }
    if (result == 0) {
        result = path_report_print(report, &subject.step);
    }
    return result == 0 ? loss_report_hang(report) : result;
}

void why_report_classes(struct report *report)
{
    json_array_begin(&report->json, "classes");
    for (size_t i = 0; i < COUNT(classes); i++) {
        json_object_begin(&report->json, NULL);
        json_text(&report->json, "class", classes[i].name);
        json_text(&report->json, "meaning", classes[i].meaning);
        json_object_end(&report->json);
    }
    json_array_end(&report->json);
}
