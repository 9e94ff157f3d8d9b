/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope why: the verdicts of a step in words, and the operation that decided it, rank by rank. */
#include "cli/loss.h"
#include "cli/report.h"
#include "cli/step_report.h"
#include "cli/subcommand.h"
#include "cli/text.h"

#include <inttypes.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct why_options {
    struct report_options report;
    const char *step;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct why_options, report),
    REPORT_OPTION_JSON(struct why_options, report),
    REPORT_OPTION_STEP(struct why_options, step, "the step (default: the worst, after a summary over all)"),
};

static const struct option_program program = {
    .name = "qpscope why",
    .summary = "Why a step was slow: who was late or which link was slow, by how much, and what says so.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "Examples:\n"
                "  qpscope why              the worst step, and who was late over all steps\n"
                "  qpscope why --step 12    one step\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

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
    {"class", "verdict", COLUMN_TEXT},
    {NULL, "where", COLUMN_TEXT},
    {NULL, "steps", COLUMN_TEXT | COLUMN_RIGHT},
    {"rank", NULL, COLUMN_INTEGER},
    {"peer_rank", NULL, COLUMN_INTEGER},
    {"device", NULL, COLUMN_TEXT},
    {"steps", NULL, COLUMN_INTEGER},
    {"steps_total", NULL, COLUMN_INTEGER},
    {"median_ns", "median ms", COLUMN_MS},
    {"largest_ns", "largest ms", COLUMN_MS},
};

#define PLACE                                                                                                          \
    "CASE WHEN rank IS NULL THEN CASE class WHEN 'hang' THEN 'nobody alone' ELSE 'all ranks' END WHEN peer_rank IS "   \
    "NULL THEN 'rank ' || rank "                                                                                       \
    "ELSE 'link rank ' || rank || ' to rank ' || peer_rank END || coalesce(' (' || device || ')', '')"

/* One row a culprit: the largest verdict of it in each step, then the median of those over its steps. */
#define CULPRITS                                                                                                       \
    "WITH by_step AS (SELECT class, rank, peer_rank, device, step, max(size_ns) AS size_ns FROM verdict "              \
    "WHERE step IS NOT NULL GROUP BY class, rank, peer_rank, device, step), "                                          \
    "ranked AS (SELECT *, row_number() OVER (PARTITION BY class, rank, peer_rank, device ORDER BY size_ns) AS n, "     \
    "count(*) OVER (PARTITION BY class, rank, peer_rank, device) AS steps FROM by_step), "                             \
    "culprit AS (SELECT class, rank, peer_rank, device, steps, (SELECT count(*) FROM step) AS steps_total, "           \
    "CAST(avg(CASE WHEN n IN ((steps + 1) / 2, (steps + 2) / 2) THEN size_ns END) AS INTEGER) AS median_ns, "          \
    "max(size_ns) AS largest_ns FROM ranked GROUP BY class, rank, peer_rank, device) "

#define CULPRITS_SHOWN 8

static const struct listing summary = {
    "summary",
    CULPRITS "SELECT class, " PLACE ", steps || ' of ' || steps_total, rank, peer_rank, device, steps, steps_total, "
             "median_ns, largest_ns FROM culprit ORDER BY steps DESC, median_ns DESC, class, rank, peer_rank, device "
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
    {"more", NULL, COLUMN_TEXT},
};

#define VERDICTS                                                                                                       \
    "SELECT class, rank, peer_rank, device, operation, operation.place, operation.kind, operation.communicator, "      \
    "size_ns, bound_ns, confidence, evidence, more, " PLACE                                                            \
    ", CASE WHEN verdict.step IS NULL THEN 'after the last whole step' "                                               \
    "ELSE 'in operation ' || operation.place || ' of the step' END "                                                   \
    "FROM verdict JOIN operation ON operation.id = verdict.operation WHERE verdict.step "

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
    "SELECT operation.id, place, kind, communicator, ranks_count, operation.ranks_seen, buffer_bytes, algorithm, "
    "status, "
    "start_ns, last_arrival_ns, end_ns FROM operation JOIN communicator ON communicator.id = operation.communicator "
    "WHERE operation.id = ?1",
    operation_columns,
    COUNT(operation_columns),
};

static const struct column rank_columns[] = {
    {"rank", "rank", COLUMN_INTEGER},
    {NULL, "enqueued", COLUMN_MS},
    {NULL, "host ready", COLUMN_MS},
    {NULL, "GPU ready", COLUMN_TEXT | COLUMN_RIGHT},
    {NULL, "first data", COLUMN_MS},
    {NULL, "last data", COLUMN_MS},
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
    "SELECT r.rank, r.enqueued_ns - o.start_ns, r.host_ready_ns - o.start_ns, "
    "CASE WHEN r.gpu_ready_known = 0 THEN '≤' ELSE '' END || printf('%.3f', (r.gpu_ready_ns - o.start_ns) / 1e6), "
    "r.first_data_ns - o.start_ns, r.last_data_ns - o.start_ns, r.end_ns - o.start_ns, r.late_ns, r.arrival_of, "
    "r.status, r.enqueued_ns, r.host_ready_ns, r.gpu_ready_ns, r.gpu_ready_known, r.arrival_ns, r.first_data_ns, "
    "r.last_data_ns, r.end_ns, r.active_ns, r.expected_bytes, r.observed_bytes, r.retransmitted_frames, "
    "r.marked_frames FROM rank_operation AS r JOIN operation AS o ON o.id = r.operation "
    "WHERE r.operation = ?1 ORDER BY r.rank IS NULL, r.rank, r.id",
    rank_columns,
    COUNT(rank_columns),
};

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
               store_query_value(query, 13).text, cost, store_query_value(query, 14).text,
               store_query_value(query, 6).text, store_query_value(query, 7).integer,
               store_query_value(query, 10).real * 100);
    report_say(report, 2, "it means: %s", class_meaning(class));
    report_say(report, 2, "evidence: %s", store_query_value(query, 11).text);
    if (store_query_value(query, 12).kind == STORE_TEXT)
        report_say(report, 2, "what would tell more, if it goes on: %s", store_query_value(query, 12).text);
}

#define AMOUNT(of) "CASE WHEN share IS NULL THEN printf('%.4g', " of ") ELSE printf('%.3f ms', " of " / 1e6) END"

#define NUMBER_PLACE                                                                                                   \
    "CASE WHEN count(*) > 1 THEN count(*) || CASE e.source WHEN 'transport' THEN ' ranks' ELSE ' flows' END "          \
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
                               "CASE e.source WHEN 'transport' THEN NULL ELSE e.rank END) ORDER BY size_ns DESC, id, " \
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

#define LATEST "SELECT slowest_rank, late_ns, late_bound_ns FROM step WHERE id = ?1"

static void say_no_verdict(struct report *report, const struct store_query *query)
{
    struct store_value rank = store_query_value(query, 0);
    int64_t late_ns = store_query_value(query, 1).integer;
    struct store_value bound = store_query_value(query, 2);
    char late[TEXT_NUMBER_BYTES];
    char number[TEXT_NUMBER_BYTES];
    if (rank.kind == STORE_NULL) {
        report_say(report, 0, "no verdict: no rank's lateness is known in this step");
    } else if (bound.kind == STORE_NULL) {
        report_say(report, 0, "no verdict: the latest was rank %" PRId64 ", by %s; its error bound is not known",
                   rank.integer, text_duration(late, late_ns));
    } else {
        report_say(report, 0, "no verdict: the latest was rank %" PRId64 ", by %s ±%s%s", rank.integer,
                   text_duration(late, late_ns), text_duration(number, bound.integer),
                   late_ns > bound.integer ? "" : ", which is no more than what the clocks' error can make");
    }
}

static void say_operation(struct report *report, const struct store_query *query)
{
    char bytes[TEXT_NUMBER_BYTES];
    report_say(report, 0,
               "operation %" PRId64 " of the step: %s of %s on communicator %" PRId64 ", %" PRId64 " of %" PRId64
               " ranks seen, %s, %s; times in ms after its first enqueue",
               store_query_value(query, 1).integer, store_query_value(query, 2).text,
               text_bytes(bytes, store_query_value(query, 6).integer), store_query_value(query, 3).integer,
               store_query_value(query, 5).integer, store_query_value(query, 4).integer,
               store_query_value(query, 7).text, store_query_value(query, 8).text);
}

#define NOT_SEEN                                                                                                       \
    "SELECT rank, rtrim(CASE WHEN enqueued_ns IS NULL THEN 'enqueue, ' ELSE '' END || "                                \
    "CASE WHEN host_ready_ns IS NULL THEN 'host ready, ' ELSE '' END || "                                              \
    "CASE WHEN gpu_ready_ns IS NULL THEN 'GPU ready, ' ELSE '' END || "                                                \
    "CASE WHEN first_data_ns IS NULL THEN 'data, ' ELSE '' END, ', ') AS missing "                                     \
    "FROM rank_operation WHERE operation = ?1 AND missing != '' ORDER BY rank IS NULL, rank, id"

static void say_not_seen(struct report *report, const struct store_query *query)
{
    struct store_value rank = store_query_value(query, 0);
    char name[32] = "an unknown rank";
    if (rank.kind == STORE_INTEGER) {
        snprintf(name, sizeof(name), "rank %" PRId64, rank.integer);
    }
    report_say(report, 0, "not seen of %s: %s", name, store_query_value(query, 1).text);
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
    if (result == 0) {
        result = report_list(report, &ranks, &subject->operation, 1, NULL);
    }
    if (result == 0 && !report->as_json) {
        result = report_each(report, NOT_SEEN, &subject->operation, 1, say_not_seen, NULL);
    }
    return result;
}

#define HANGING_OPERATION "SELECT operation FROM verdict WHERE step IS NULL ORDER BY size_ns DESC, id LIMIT 1"

/* What hangs now comes before all that was slow. */
static int print_hangs(struct report *report)
{
    struct subject subject = {.step = {.kind = STORE_NULL}};
    size_t count = 0;
    if (report->as_json) {
        return report_list(report, &hangs, NULL, 0, NULL);
    }
    int result = report_each(report, hangs.sql, NULL, 0, say_verdict, &count);
    if (result == 0 && count != 0) {
        result = report_each(report, NUMBERS_OF("IS NULL"), NULL, 0, say_number, NULL);
    }
    if (result == 0 && count != 0) {
        result = store_reader_number(report->store, HANGING_OPERATION, NULL, 0, &subject.operation);
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

int subcommand_why_print(struct report *report, const struct store_value *wanted)
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

int subcommand_why(int argc, char **argv)
{
    struct why_options options = {0};
    struct store_value wanted = {.kind = STORE_NULL};
    int exit_code;
    if (!subcommand_parse(&program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    if (options.step != NULL) {
        wanted.kind = STORE_INTEGER;
        if (subcommand_parse_number(&program, "step", options.step, &wanted.integer) != 0) {
            return EXIT_CODE_USAGE;
        }
    }
    struct report report;
    int result = report_open(&report, &options.report);
    if (result == 0) {
        result = subcommand_why_print(&report, &wanted);
        report_close(&report);
    }
    return subcommand_exit(result);
}
