/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps, ranks and flows as they are now: one query each. */
#include "cli/live/panel.h"

#include "report/subject/rank_place.h"
#include "report/subject/verdict_words.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct column step_columns[] = {
    {"step", "step", COLUMN_INTEGER},
    {"duration_ns", "duration ms", COLUMN_MS | COLUMN_BOUND},
    {"bound_ns", NULL, COLUMN_INTEGER},
    {"usual_share", "% of usual", COLUMN_REAL | COLUMN_SPARE},
    {"slowest_rank", "latest rank", COLUMN_INTEGER},
    {"slowest_on", "on", COLUMN_TEXT | COLUMN_SPARE},
    {"late_ns", "late us", COLUMN_US | COLUMN_BOUND},
    {"late_bound_ns", NULL, COLUMN_INTEGER},
    {"incomplete", NULL, COLUMN_INTEGER},
    {"verdict", "verdict", COLUMN_TEXT},
};

static const struct column rank_columns[] = {
    {"rank", "rank", COLUMN_INTEGER},
    {"node", NULL, COLUMN_TEXT},
    {"on", "on", COLUMN_TEXT},
    {"times_latest", "times latest", COLUMN_INTEGER | COLUMN_SPARE},
    {"mean_late_ns", "mean late us", COLUMN_US},
    {"largest_late_ns", "largest us", COLUMN_US | COLUMN_SPARE},
    {"cost_ns", "cost ms", COLUMN_MS},
    {"cost_share", "% of steps", COLUMN_REAL},
    {"verdict", "verdict", COLUMN_TEXT},
};

static const struct column flow_columns[] = {
    {"rank", "rank", COLUMN_INTEGER},
    {"on", "on", COLUMN_TEXT | COLUMN_SPARE},
    {"peer_rank", "to", COLUMN_INTEGER},
    {"communicator", "comm", COLUMN_INTEGER},
    {"device", "device", COLUMN_TEXT},
    {"lqpn", "QPN", COLUMN_HEX},
    {"bits_per_second", NULL, COLUMN_REAL},
    {NULL, "Mbit/s", COLUMN_REAL},
    {"over_ns", "over ms", COLUMN_MS | COLUMN_SPARE},
    {"retransmitted_frames", "sent again", COLUMN_INTEGER},
    {"marked_frames", "ECN marked", COLUMN_INTEGER},
    {"got_cnps", "CNPs", COLUMN_INTEGER},
    {"got_rnr_naks", "RNR NAKs", COLUMN_INTEGER},
};

#define LAST_STEPS "20"

#define USUAL                                                                                                          \
    "(SELECT avg(duration_ns) FROM (SELECT duration_ns, row_number() OVER (ORDER BY duration_ns) AS place, "           \
    "count(*) OVER () AS steps FROM step WHERE kind = 'training') WHERE place IN ((steps + 1) / 2, (steps + 2) / 2))"

#define VANTAGE_ORDER "CASE vantage WHEN 'tx' THEN 0 WHEN 'rx' THEN 1 ELSE 2 END"

/* ?1: how many rows, ?2: how many are skipped. */
static const struct {
    const char *title;
    struct listing listing;
} panels[PANELS] = {
    [PANEL_STEPS] =
        {"steps, newest first",
         {"steps",
          "SELECT step.id, step.duration_ns, step.bound_ns, 100.0 * step.duration_ns / usual.ns, slowest_rank, "
          "place.name, late_ns, late_bound_ns, incomplete, "
          "nullif(rtrim(CASE WHEN step.kind <> 'training' THEN '(' || step.kind || ') ' ELSE '' END || coalesce("
          "(SELECT group_concat(" VERDICT_WORDS(
              "verdict") ", '; ') FROM verdict "
                         "WHERE verdict.step = step.id), '')), '') "
                         "FROM step, (SELECT " USUAL " AS ns) AS usual LEFT JOIN " RANK_PLACES
                         "AS place ON place.rank = step.slowest_rank ORDER BY step.id DESC LIMIT ?1 OFFSET ?2",
          step_columns, COUNT(step_columns)}},
    [PANEL_RANKS] =
        {"ranks over the last " LAST_STEPS " steps, costliest first",
         {"ranks",
          "WITH recent AS (SELECT * FROM step WHERE id > (SELECT max(id) FROM step) - " LAST_STEPS "), "
          "at AS (SELECT rank, host, name FROM " RANK_PLACES ") "
          "SELECT rank_step.rank, at.host, at.name, sum(recent.slowest_rank IS rank_step.rank), "
          "CAST(avg(rank_step.late_ns) AS INTEGER), max(rank_step.late_ns), sum(cost_ns) AS cost_ns, "
          "100.0 * sum(cost_ns) / sum(recent.duration_ns), "
          "(SELECT group_concat(DISTINCT class) FROM verdict WHERE verdict.rank = rank_step.rank AND "
          "verdict.step IN (SELECT id FROM recent)) "
          "FROM recent JOIN rank_step ON rank_step.step = recent.id LEFT JOIN at ON at.rank = rank_step.rank "
          "GROUP BY rank_step.rank ORDER BY cost_ns DESC, avg(rank_step.late_ns) DESC NULLS LAST, "
          "rank_step.rank LIMIT ?1 OFFSET ?2",
          rank_columns, COUNT(rank_columns)}},
    /*
     * A flow that several ports saw counts once, at the sender's port where that was watched. The time is a second, or
     * less where that would be more than 50000 messages: a look must stay quick.
     */
    [PANEL_FLOWS] =
        {"flows at the end of what was seen, fastest first",
         {"flows",
          "WITH best AS (SELECT queue_pair, min(" VANTAGE_ORDER
          ") AS vantage_order FROM flow WHERE queue_pair IS NOT NULL "
          "GROUP BY queue_pair), until AS (SELECT max(last_ns) AS ns, CAST(min(1e9, max(1e6, 50000.0 * (max(last_ns) - "
          "min(first_ns)) / max(1, sum(messages)))) AS INTEGER) AS over_ns FROM flow), "
          "rate AS (SELECT flow.*, over_ns, 8e9 / over_ns * (SELECT coalesce(sum(message.payload_bytes), 0) FROM "
          "message "
          "WHERE message.flow = flow.id AND role = 'data' AND message.first_ns > until.ns - over_ns) AS bits "
          "FROM flow, until JOIN best ON best.queue_pair = flow.queue_pair AND best.vantage_order = " VANTAGE_ORDER
          " WHERE flow.communicator IS NOT NULL AND flow.payload_bytes > 0) "
          "SELECT rate.source_rank, place.name, rate.destination_rank, rate.communicator, queue_pair.device || '/' || "
          "queue_pair.port, queue_pair.qpn, bits, bits / 1e6, over_ns, rate.retransmitted_frames, rate.marked_frames, "
          "got_cnps, got_rnr_naks FROM rate JOIN queue_pair ON queue_pair.id = rate.queue_pair "
          "LEFT JOIN flow_evidence ON flow_evidence.flow = rate.id "
          "LEFT JOIN " RANK_PLACES "AS place ON place.rank = rate.source_rank "
          "ORDER BY bits DESC, rate.source_rank, rate.id LIMIT ?1 OFFSET ?2",
          flow_columns, COUNT(flow_columns)}},
};

const char *panel_title(enum panel_kind panel)
{
    return panels[panel].title;
}

int panel_print(struct report *report, enum panel_kind panel, int64_t rows, int64_t skip)
{
    const struct store_value arguments[] = {store_integer(rows), store_integer(skip)};
    size_t printed = 0;
    int result = report_list(report, &panels[panel].listing, arguments, COUNT(arguments), &printed);
    if (result == 0 && printed == 0) {
        report_say(report, 0, skip > 0 ? "no more" : "none yet");
    }
    return result;
}
