/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is left of steps whose detail is no longer held: it was cut out of the analysis's memory, was held by a
 * correlator that was here before, or had to go to keep the file small. How long they were, and their verdicts; in the
 * end sums over many of them. Invariant: a step that was whole is in `step`, in `past_step` or in the sums, and in one
 * of them only; what is in the sums ends before all that is in past_step.
 */
#include <inttypes.h>
#include <stdio.h>

#include "correlator/analysis.h"
#include "correlator/store/store_private.h"

typedef int64_t i64;

#define WITHIN                 "(start_ns + end_ns) / 2" /* a clock that is laid anew moves both a little */
#define PAST_BYTES             (64u << 20) /* of past_step and past_verdict where the store has no limit */
#define STEP_BYTES             96          /* of one row */
#define VERDICT_BYTES          400
#define FOLDED_STEPS           256
#define SUMMARIES_MAX          2048
#define BLAMES_MAX             4096
#define TEXT_OF(number)        #number
#define NUMBER_AS_TEXT(number) TEXT_OF(number)

/* Before it all steps are past: the first whole step that is held begins there. */
static i64 present_from_ns(const struct job *job)
{
    for (size_t i = 0; i < job->steps.count; i++)
        if (!job->steps.items[i].partial)
            return (i64)job->steps.items[i].start_ns;
    return INT64_MAX;
}

static void keep(struct store *store, i64 from_ns)
{
    char sql[1024];

    snprintf(sql, sizeof sql,
             "INSERT OR IGNORE INTO past_step SELECT start_ns, end_ns, duration_ns, bound_ns, kind, operations, "
             "incomplete, slowest_rank, late_ns FROM step WHERE partial = 0 AND " WITHIN " < %" PRId64 ";"
             "INSERT INTO past_verdict SELECT step.start_ns, verdict.class, verdict.rank, verdict.candidates, "
             "verdict.peer_rank, verdict.device, verdict.size_ns, verdict.bound_ns, verdict.confidence, "
             "verdict.evidence FROM verdict "
             "JOIN step ON step.id = verdict.step WHERE step.partial = 0 AND " WITHIN " < %" PRId64,
             from_ns, from_ns);
    store_execute(store, sql);
}

void store_keep_past(struct store *store, const struct analysis *analysis, enum store_history history)
{
    if (history == STORE_HISTORY_OTHER)
        store_execute(store, "DELETE FROM past_verdict; DELETE FROM past_step; DELETE FROM past_summary; "
                             "DELETE FROM past_blame");
    else if (history == STORE_HISTORY_BEFORE || intake_has_forgotten(&analysis->intake))
        keep(store, present_from_ns(&analysis->job));
}

/* Steps in front of it may be cut short, or are in the sums: where they are past, too, they are counted there. */
static size_t first_counted(const struct job *job, i64 folded_to_ns)
{
    size_t first = 0;

    while (first < job->steps.count &&
           (job->steps.items[first].partial || (i64)job->steps.items[first].start_ns < folded_to_ns))
        first++;
    return first;
}

void store_number_steps(struct store *store, const struct job *job)
{
    size_t first = first_counted(job, store_number(store, "SELECT coalesce(max(end_ns), 0) FROM past_summary"));
    char sql[256];
    i64 number = 0;

    if (first < job->steps.count) {
        snprintf(
            sql, sizeof sql,
            "SELECT (SELECT coalesce(sum(steps), 0) FROM past_summary) + (SELECT count(*) FROM past_step WHERE " WITHIN
            " < %" PRId64 ")",
            (i64)job->steps.items[first].start_ns);
        number = store_number(store, sql) - (i64)first;
    }
    store_set_first_step(store, number > 0 ? number : 0);
}

static void drop_present(struct store *store, const struct job *job)
{
    char sql[1024];

    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE present AS SELECT start_ns FROM past_step WHERE " WITHIN " >= %" PRId64
             " AND EXISTS (SELECT 1 FROM step WHERE step.partial = 0 AND (past_step.start_ns + past_step.end_ns) / 2 "
             "BETWEEN step.start_ns AND step.end_ns);"
             "DELETE FROM past_verdict WHERE step_start_ns IN (SELECT start_ns FROM present);"
             "DELETE FROM past_step WHERE start_ns IN (SELECT start_ns FROM present); DROP TABLE present",
             present_from_ns(job));
    store_execute(store, sql);
}

/* ---- steps that the analysis holds, and the file does not ---- */

static void drop_between(struct store *store, i64 from_ns, i64 to_ns)
{
    char sql[512];

    snprintf(sql, sizeof sql,
             "DELETE FROM past_verdict WHERE step_start_ns IN (SELECT start_ns FROM past_step WHERE " WITHIN
             " BETWEEN %" PRId64 " AND %" PRId64 "); DELETE FROM past_step WHERE " WITHIN " BETWEEN %" PRId64
             " AND %" PRId64,
             from_ns, to_ns, from_ns, to_ns);
    store_execute(store, sql);
}

static bool is_left_out(const struct store *store, const struct job *job, i64 folded_to_ns, i64 i)
{
    const struct step *step = i < 0 ? NULL : &job->steps.items[i];

    return step != NULL && !step->partial && !limit_has_step(store_limit(store), job, (int32_t)i) &&
           (i64)(step->start_ns / 2 + step->end_ns / 2) >= folded_to_ns;
}

static void put_left_out(struct store *store, const struct job *job)
{
    i64 folded_to_ns = store_number(store, "SELECT coalesce(max(end_ns), 0) FROM past_summary");
    i64 first = -1, last = -1;

    for (size_t i = 0; i < job->steps.count; i++) {
        if (!is_left_out(store, job, folded_to_ns, (i64)i))
            continue;
        first = first < 0 ? (i64)i : first;
        last = (i64)i;
    }
    if (first < 0)
        return;
    drop_between(store, (i64)job->steps.items[first].start_ns, (i64)job->steps.items[last].end_ns);
    for (i64 i = first; i <= last; i++) {
        const struct step *step = &job->steps.items[i];
        if (is_left_out(store, job, folded_to_ns, i))
            store_put(store, STORE_past_step, "iiiisiirk", (i64)step->start_ns, (i64)step->end_ns,
                      (i64)step->duration_ns, (i64)step->bound_ns, step_kind_name(step->kind), (i64)step->operations,
                      (i64)step->incomplete, (i64)step->slowest_rank, (int)(step->slowest_rank >= 0),
                      (i64)step->late_ns);
    }
    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *verdict = &job->verdicts.items[i];
        char text[STORE_CANDIDATES_BYTES];
        const char *several = store_candidates(verdict, text, sizeof text);
        if (is_left_out(store, job, folded_to_ns, verdict->step))
            store_put(store, STORE_past_verdict, "isrsrsiids", (i64)job->steps.items[verdict->step].start_ns,
                      verdict_class_name(verdict->class), several != NULL ? (i64)-1 : (i64)verdict->rank, several,
                      (i64)verdict->peer_rank, verdict->device[0] == '\0' ? NULL : verdict->device,
                      (i64)verdict->size_ns, (i64)verdict->bound_ns, verdict->confidence, verdict->evidence);
    }
}

/* ---- sums ---- */

#define BLAME_COLUMNS "class, rank, candidates, peer_rank, device"
#define BLAME_SUMS    "sum(verdicts), min(first_ns), max(last_ns), sum(size_ns), max(largest_ns)"

/* Both are made of what they held and what is added. */
static void fold_before(struct store *store, i64 to_ns)
{
    char sql[2048];

    snprintf(sql, sizeof sql,
             "INSERT INTO past_summary SELECT min(start_ns), max(end_ns), kind, count(*), sum(start_ns IN (SELECT "
             "step_start_ns FROM past_verdict)), sum(operations), sum(incomplete), sum(CAST(duration_ns AS REAL)), "
             "sum(CAST(duration_ns AS REAL) * duration_ns), min(duration_ns), max(duration_ns) FROM (SELECT *, "
             "(row_number() OVER (PARTITION BY kind ORDER BY start_ns) - 1) / " NUMBER_AS_TEXT(
                 FOLDED_STEPS) " AS part FROM past_step WHERE start_ns < %" PRId64 ") GROUP BY kind, part;"
                               "CREATE TEMP TABLE blamed AS SELECT " BLAME_COLUMNS ", " BLAME_SUMS
                               " FROM (SELECT * FROM past_blame UNION ALL SELECT " BLAME_COLUMNS
                               ", 1, step_start_ns, step_start_ns, CAST(size_ns AS REAL), size_ns FROM past_verdict "
                               "WHERE step_start_ns < %" PRId64 ") GROUP BY " BLAME_COLUMNS ";"
                               "DELETE FROM past_blame; INSERT INTO past_blame SELECT * FROM blamed; DROP TABLE blamed;"
                               "DELETE FROM past_verdict WHERE step_start_ns < %" PRId64
                               "; DELETE FROM past_step WHERE start_ns < %" PRId64,
             to_ns, to_ns, to_ns, to_ns);
    store_execute(store, sql);
}

/* Two rows become one each; the rarest places of a class one. */
static void fold_sums(struct store *store)
{
    if (store_number(store, "SELECT count(*) FROM past_summary") > SUMMARIES_MAX)
        store_execute(
            store,
            "CREATE TEMP TABLE folded AS SELECT min(start_ns), max(end_ns), kind, sum(steps), sum(steps_with_verdict), "
            "sum(operations), sum(incomplete), sum(duration_ns), sum(duration_squares_ns2), min(shortest_ns), "
            "max(longest_ns) FROM (SELECT *, (row_number() OVER (PARTITION BY kind ORDER BY start_ns) - 1) / 2 AS part "
            "FROM past_summary) GROUP BY kind, part; DELETE FROM past_summary; INSERT INTO past_summary SELECT * FROM "
            "folded; DROP TABLE folded");
    if (store_number(store, "SELECT count(*) FROM past_blame") > BLAMES_MAX)
        store_execute(store, "CREATE TEMP TABLE folded AS SELECT class, iif(often, rank, NULL) AS rank, iif(often, "
                             "candidates, NULL) AS candidates, iif(often, peer_rank, NULL) AS "
                             "peer_rank, iif(often, device, NULL) AS device, " BLAME_SUMS
                             " FROM (SELECT *, row_number() OVER (ORDER BY "
                             "verdicts DESC, last_ns DESC) <= " NUMBER_AS_TEXT(
                                 BLAMES_MAX) " / 2 AS often FROM past_blame) GROUP BY 1, 2, 3, 4, 5; DELETE FROM "
                                             "past_blame; INSERT INTO "
                                             "past_blame SELECT * FROM folded; DROP TABLE folded");
}

void store_fold_past(struct store *store, unsigned halvings)
{
    const struct limit *limit = store_limit(store);
    i64 most_bytes = limit->size_bytes == 0 ? PAST_BYTES : (i64)(limit->size_bytes / 8);
    i64 steps = store_number(store, "SELECT count(*) FROM past_step");
    i64 verdicts = store_number(store, "SELECT count(*) FROM past_verdict");
    char sql[128];

    if (halvings == 0 && steps * STEP_BYTES + verdicts * VERDICT_BYTES > most_bytes)
        halvings = 1;
    if (steps == 0 || halvings == 0)
        return;
    snprintf(sql, sizeof sql, "SELECT start_ns + 1 FROM past_step ORDER BY start_ns LIMIT 1 OFFSET %" PRId64,
             steps - 1 - (steps >> halvings));
    fold_before(store, store_number(store, sql));
    fold_sums(store);
}

void store_drop_past(struct store *store, const struct analysis *analysis, unsigned halvings)
{
    drop_present(store, &analysis->job);
    put_left_out(store, &analysis->job);
    store_fold_past(store, halvings);
}
