/* SPDX-License-Identifier: BSD-2-Clause */
/* Loss, from the tables gap, counter, flow, member and operation. */
#include "report/subject/loss.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/form/text.h"
#include "report/subject/hang.h"

static const struct column gap_columns[] = {
    {"emitter", NULL, COLUMN_TEXT}, {"instance", NULL, COLUMN_TEXT},   {"host", NULL, COLUMN_TEXT},
    {"port", NULL, COLUMN_INTEGER}, {"from_ns", NULL, COLUMN_INTEGER}, {"to_ns", NULL, COLUMN_INTEGER},
    {"cause", NULL, COLUMN_TEXT},   {"lost", NULL, COLUMN_INTEGER},
};

#define GAP_SELECT                                                                                                     \
    "SELECT emitter.kind, emitter.instance, emitter.host, gap.port, gap.from_ns, gap.to_ns, gap.cause, gap.lost "      \
    "FROM gap JOIN emitter ON emitter.id = gap.emitter "
#define DURING_STEP                                                                                                    \
    "gap.to_ns >= (SELECT start_ns FROM step WHERE id = ?1) "                                                          \
    "AND gap.from_ns <= (SELECT end_ns FROM step WHERE id = ?1) "
#define DURING_HANG "gap.to_ns >= (SELECT " HANG_FROM ") AND gap.from_ns <= " HANG_TO " "
#define GAP_ORDER   "ORDER BY gap.from_ns, gap.to_ns, emitter.kind, emitter.instance, gap.cause, gap.lost"

static const struct listing gaps = {
    "gaps",
    GAP_SELECT GAP_ORDER,
    gap_columns,
    sizeof(gap_columns) / sizeof(gap_columns[0]),
};

static const struct listing step_gaps = {
    "gaps",
    GAP_SELECT "WHERE " DURING_STEP GAP_ORDER,
    gap_columns,
    sizeof(gap_columns) / sizeof(gap_columns[0]),
};

static const struct listing hang_gaps = {
    "gaps",
    GAP_SELECT "WHERE " DURING_HANG GAP_ORDER,
    gap_columns,
    sizeof(gap_columns) / sizeof(gap_columns[0]),
};

static const struct column counter_columns[] = {
    {"emitter", NULL, COLUMN_TEXT}, {"instance", NULL, COLUMN_TEXT}, {"port", NULL, COLUMN_INTEGER},
    {"name", NULL, COLUMN_TEXT},    {"total", NULL, COLUMN_INTEGER},
};

/* By the words that every program's counters use for what it could not take or keep. */
#define LOSS_COUNTER                                                                                                   \
    "counter.total > 0 AND (counter.name GLOB '*_lost_*' OR counter.name GLOB '*_missed_*' "                           \
    "OR counter.name GLOB '*_dropped_*' OR counter.name GLOB '*_refused_*' OR counter.name GLOB '*_full_*' "           \
    "OR counter.name GLOB '*_failed_*' OR counter.name GLOB '*_unfinished_*' OR counter.name GLOB '*_cut_*' "          \
    "OR counter.name GLOB '*_incomplete_*')"

static const struct listing counters = {
    "loss_counters",
    "SELECT emitter.kind, emitter.instance, counter.port, counter.name, counter.total "
    "FROM counter JOIN emitter ON emitter.id = counter.emitter "
    "WHERE " LOSS_COUNTER " "
    "ORDER BY emitter.kind, emitter.instance, counter.port, counter.name",
    counter_columns,
    sizeof(counter_columns) / sizeof(counter_columns[0]),
};

static const struct column lost_columns[] = {
    {"gaps", NULL, COLUMN_INTEGER},
    {"unattributed_flows", NULL, COLUMN_INTEGER},
    {"unattributed_bytes", NULL, COLUMN_INTEGER},
    {"late_members", NULL, COLUMN_INTEGER},
    {"incomplete_operations", NULL, COLUMN_INTEGER},
    {"clocks_unknown", NULL, COLUMN_INTEGER},
    {"clocks_contradicted", NULL, COLUMN_INTEGER},
    {"clock_cuts", NULL, COLUMN_INTEGER},
    {"verdicts_withheld", NULL, COLUMN_TEXT},
};

static const struct column withheld_columns[] = {
    {"class", NULL, COLUMN_TEXT}, {"port", NULL, COLUMN_INTEGER}, {"port_name", NULL, COLUMN_TEXT},
    {"sight", NULL, COLUMN_TEXT}, {"missing", NULL, COLUMN_TEXT},
};

static const struct listing withheld = {
    "withheld",
    "SELECT class, port.id, port.name, sight, missing FROM withheld JOIN port ON port.id = withheld.port "
    "ORDER BY port.id, class",
    withheld_columns,
    sizeof(withheld_columns) / sizeof(withheld_columns[0]),
};

static const struct listing lost = {
    "lost",
    "SELECT (SELECT count(*) FROM gap), "
    "(SELECT count(*) FROM flow WHERE communicator IS NULL AND data_frames > 0), "
    "(SELECT coalesce(sum(payload_bytes), 0) FROM flow WHERE communicator IS NULL), "
    "(SELECT count(*) FROM member WHERE late = 1), "
    "(SELECT count(*) FROM operation WHERE status = 'incomplete'), "
    "(SELECT count(*) FROM emitter WHERE clock_source = 'none'), "
    "(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'clocks_contradicted'), "
    "(SELECT sum(clock_cuts) FROM emitter), "
    "(SELECT value FROM meta WHERE key = 'verdicts_withheld')",
    lost_columns,
    sizeof(lost_columns) / sizeof(lost_columns[0]),
};

/* What the number in gap.lost counts, by cause. */
static const struct {
    const char *cause;
    const char *unit;
} cause_units[] = {
    {"batches lost", "batches"}, {"link full", "batches"}, {"port drop", "frames"},
    {"ring full", "events"},     {"table full", "things"}, {"overwritten", "windows"},
};

static const char *cause_unit(const char *cause)
{
    for (size_t i = 0; i < sizeof(cause_units) / sizeof(cause_units[0]); i++) {
        if (strcmp(cause_units[i].cause, cause) == 0) {
            return cause_units[i].unit;
        }
    }
    return NULL;
}

static void say_gap(struct report *report, const struct store_query *query)
{
    const char *kind = store_query_value(query, 0).text;
    const char *instance = store_query_value(query, 1).text;
    const char *cause = store_query_value(query, 2).text;
    int64_t count = store_query_value(query, 3).integer;
    int64_t amount = store_query_value(query, 4).integer;
    const char *unit = cause_unit(cause);
    char duration[TEXT_NUMBER_BYTES];
    char number[64] = "";
    text_duration(duration, store_query_value(query, 5).integer);
    if (unit != NULL && amount > 0) {
        snprintf(number, sizeof(number), "%" PRId64 " %s, ", amount, unit);
    } else if (unit != NULL) {
        snprintf(number, sizeof(number), "an unknown number of %s, ", unit);
    }
    report_say(report, 2, "%s %s: %s: %s%" PRId64 " gap%s of %s in all", kind, instance, cause, number, count,
               count == 1 ? "" : "s", duration);
}

#define GAP_SUMMARY                                                                                                    \
    "SELECT emitter.kind, emitter.instance, gap.cause, count(*), sum(gap.lost), sum(gap.to_ns - gap.from_ns) "         \
    "FROM gap JOIN emitter ON emitter.id = gap.emitter WHERE ?1 IS NULL OR (" DURING_STEP ") "                         \
    "GROUP BY emitter.kind, emitter.instance, gap.cause ORDER BY emitter.kind, emitter.instance, gap.cause"

static void say_counter(struct report *report, const struct store_query *query)
{
    int64_t port = store_query_value(query, 2).integer;
    char place[32] = "";
    if (port != 0) {
        snprintf(place, sizeof(place), " port %" PRId64, port);
    }
    report_say(report, 2, "%s %s%s: %s %" PRId64, store_query_value(query, 0).text, store_query_value(query, 1).text,
               place, store_query_value(query, 3).text, store_query_value(query, 4).integer);
}

static void say_rest(struct report *report, const struct store_query *query)
{
    int64_t flows = store_query_value(query, 1).integer;
    int64_t members = store_query_value(query, 3).integer;
    int64_t operations = store_query_value(query, 4).integer;
    int64_t clocks = store_query_value(query, 5).integer;
    int64_t contradicted = store_query_value(query, 6).integer;
    int64_t cuts = store_query_value(query, 7).integer;
    struct store_value withheld = store_query_value(query, 8);
    char bytes[TEXT_NUMBER_BYTES];
    if (flows > 0) {
        report_say(report, 2, "%" PRId64 " flow%s unattributed: %s of payload (qpscope qps --all)", flows,
                   flows == 1 ? " is" : "s are", text_bytes(bytes, store_query_value(query, 2).integer));
    }
    if (members > 0) {
        report_say(report, 2,
                   "%" PRId64 " communicator rank%s made before qpscope looked: calls before that are missed", members,
                   members == 1 ? " was" : "s were");
    }
    if (operations > 0) {
        report_say(report, 2, "%" PRId64 " operation%s incomplete", operations, operations == 1 ? " is" : "s are");
    }
    if (clocks > 0) {
        report_say(report, 2, "the clock of %" PRId64 " emitter%s is not known: its times are not compared", clocks,
                   clocks == 1 ? "" : "s");
    }
    if (contradicted > 0) {
        report_say(report, 2, "frames contradict what %" PRId64 " pair%s of clocks exchanged: their bounds hold both",
                   contradicted, contradicted == 1 ? "" : "s");
    }
    if (cuts > 0) {
        report_say(report, 2, "clocks of emitters were set or stood still %" PRId64 " time%s (table emitter)", cuts,
                   cuts == 1 ? "" : "s");
    }
    if (withheld.kind == STORE_TEXT) {
        report_say(report, 2, "verdicts that cannot be given: %s", withheld.text);
    }
}

#define SOMETHING_LOST                                                                                                 \
    "SELECT (SELECT count(*) FROM gap) + (SELECT count(*) FROM counter WHERE " LOSS_COUNTER                            \
    ") + (SELECT count(*) FROM flow WHERE communicator IS NULL AND data_frames > 0) + "                                \
    "(SELECT count(*) FROM member WHERE late = 1) + "                                                                  \
    "(SELECT count(*) FROM operation WHERE status = 'incomplete') + "                                                  \
    "(SELECT count(*) FROM emitter WHERE clock_source = 'none') + "                                                    \
    "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'clocks_contradicted'), 0) + "                      \
    "(SELECT coalesce(sum(clock_cuts), 0) FROM emitter) + "                                                            \
    "(SELECT count(*) FROM withheld)"

/* Of the ports where something is seen, but not all that a class needs; those that nobody can see are said before. */
#define WITHHELD_SUMMARY                                                                                               \
    "SELECT group_concat(class, ', '), sight, missing, ports, first_port FROM (SELECT class, sight, missing, "         \
    "count(*) AS ports, min(port.name) AS first_port FROM withheld JOIN port ON port.id = withheld.port "              \
    "WHERE sight = 'part' OR NOT EXISTS (SELECT * FROM meta WHERE key = 'verdicts_withheld') "                         \
    "GROUP BY class, sight, missing ORDER BY class) GROUP BY sight, missing, ports, first_port "                       \
    "ORDER BY sight, missing, first_port"

static void say_withheld(struct report *report, const struct store_query *query)
{
    const char *sight = store_query_value(query, 1).text;
    int64_t ports = store_query_value(query, 3).integer;
    char more[64] = "";
    if (ports > 1) {
        snprintf(more, sizeof(more), " and %" PRId64 " more", ports - 1);
    }
    report_say(report, 2, "port %s%s: %s is %s: %s not seen", store_query_value(query, 4).text, more,
               store_query_value(query, 0).text,
               strcmp(sight, "none") == 0 ? "never given" : "given only where it shows",
               store_query_value(query, 2).text);
}

static int say_all(struct report *report)
{
    static const struct store_value every = {.kind = STORE_NULL};
    struct store_value amount;
    int result = store_reader_number(report->store, SOMETHING_LOST, NULL, 0, &amount);
    if (result != 0) {
        return result;
    }
    report_say(report, 0,
               amount.integer > 0 ? "lost or not known:" : "nothing was lost: no gaps, no flow without an owner");
    result = report_each(report, GAP_SUMMARY, &every, 1, say_gap, NULL);
    if (result == 0) {
        result = report_each(report, counters.sql, NULL, 0, say_counter, NULL);
    }
    if (result == 0) {
        result = report_each(report, lost.sql, NULL, 0, say_rest, NULL);
    }
    return result == 0 ? report_each(report, WITHHELD_SUMMARY, NULL, 0, say_withheld, NULL) : result;
}

int loss_report(struct report *report)
{
    if (!report->as_json) {
        return say_all(report);
    }
    int result = report_list(report, &gaps, NULL, 0, NULL);
    if (result == 0) {
        result = report_list(report, &counters, NULL, 0, NULL);
    }
    if (result == 0) {
        result = report_list(report, &withheld, NULL, 0, NULL);
    }
    return result == 0 ? report_json_row(report, &lost, NULL, 0) : result;
}

/* In the order of the columns of BRIEF: of one, of several. */
static const char *const brief_words[][2] = {
    {"gap", "gaps"},
    {"counter of loss", "counters of loss"},
    {"flow without an owner", "flows without an owner"},
    {"rank made before qpscope looked", "ranks made before qpscope looked"},
    {"incomplete operation", "incomplete operations"},
    {"clock not known", "clocks not known"},
    {"verdict withheld at a port", "verdicts withheld at ports"},
};

#define BRIEF                                                                                                          \
    "SELECT (SELECT count(*) FROM gap), (SELECT count(*) FROM counter WHERE " LOSS_COUNTER                             \
    "), (SELECT count(*) FROM flow WHERE communicator IS NULL AND data_frames > 0), "                                  \
    "(SELECT count(*) FROM member WHERE late = 1), (SELECT count(*) FROM operation WHERE status = 'incomplete'), "     \
    "(SELECT count(*) FROM emitter WHERE clock_source = 'none'), (SELECT count(*) FROM withheld)"

int loss_words(struct report *report, char words[LOSS_WORDS_BYTES])
{
    struct store_query *query = NULL;
    size_t length = 0;
    int result = store_query_open(&query, report->store, BRIEF, NULL, 0);
    if (result == 0 && (result = store_query_next(query)) == 1) {
        for (size_t i = 0; i < sizeof(brief_words) / sizeof(brief_words[0]) && length < LOSS_WORDS_BYTES - 32; i++) {
            int64_t count = store_query_value(query, i).integer;
            if (count > 0) {
                length += (size_t)snprintf(words + length, LOSS_WORDS_BYTES - length, "%s%" PRId64 " %s",
                                           length == 0 ? "" : ", ", count, brief_words[i][count != 1]);
            }
        }
        snprintf(words + length, LOSS_WORDS_BYTES - length, "%s",
                 length == 0 ? "nothing" : "; qpscope steps says more");
        result = 0;
    }
    store_query_close(&query);
    return result;
}

int loss_report_step(struct report *report, int64_t step)
{
    struct store_value number = store_integer(step);
    if (report->as_json) {
        return report_list(report, &step_gaps, &number, 1, NULL);
    }
    struct store_value count;
    int result = store_reader_number(report->store, "SELECT count(*) FROM gap WHERE " DURING_STEP, &number, 1, &count);
    if (result == 0 && count.integer > 0) {
        report_say(report, 0, "lost during this step:");
        result = report_each(report, GAP_SUMMARY, &number, 1, say_gap, NULL);
    }
    return result;
}

int loss_report_hang(struct report *report)
{
    if (report->as_json) {
        return report_list(report, &hang_gaps, NULL, 0, NULL);
    }
    struct store_value count;
    int result = store_reader_number(report->store, "SELECT count(*) FROM gap WHERE " DURING_HANG, NULL, 0, &count);
    if (result == 0 && count.integer > 0) {
        report_say(report, 0, "%" PRId64 " gaps in what was seen meanwhile: qpscope steps says which", count.integer);
    }
    return result;
}
