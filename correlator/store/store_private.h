/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between store.c (SQLite) and store_rows.c (which row holds what). A row is put by a format, one letter a column:
 *   i  int64_t
 *   n  uint64_t time, 0 is stored as NULL
 *   r  int64_t index or rank, below 0 is stored as NULL
 *   k  int (known or not), int64_t; stored as NULL when not known
 *   d  double
 *   p  int (known or not), double; stored as NULL when not known
 *   s  const char *, NULL is stored as NULL
 */
#pragma once

#include "correlator/job/stitch.h"
#include "correlator/naming/naming.h"
#include "correlator/store/limit.h"
#include "correlator/store/store.h"

#define STORE_CANDIDATES_BYTES 256

enum store_table {
#define TABLE(name, columns) STORE_##name,
#define LONG_TABLE           TABLE
#define STEP_TABLE           TABLE
#define KEPT_TABLE           TABLE
#include "correlator/store/store_table.def"
#undef TABLE
#undef LONG_TABLE
#undef STEP_TABLE
#undef KEPT_TABLE
    STORE_TABLES
};

enum store_history {                       /* what the file holds when it is written */
                     STORE_HISTORY_OWN,    /* what this store wrote */
                     STORE_HISTORY_BEFORE, /* the same job's, on the same clock, by a correlator that was here before */
                     STORE_HISTORY_OTHER,
};

/* Runs statements. After the first error nothing more is done; store_write reports it. */
void store_execute(struct store *store, const char *sql);

/* Before the rows are replaced: moves steps that are not held any longer to past_step (store_past.c). */
void store_keep_past(struct store *store, const struct analysis *analysis, enum store_history history);

/* Behind that: finds how many steps were before the first one that is held. */
void store_number_steps(struct store *store, const struct job *job);

/* The job's own number of a step that is held; -1 of none. */
int64_t store_step(const struct store *store, int32_t step);
void store_set_first_step(struct store *store, int64_t number);

/*
 * Behind that: takes away what is past no longer, since an agent sent its detail again; adds what the limit leaves out;
 * folds.
 */
void store_drop_past(struct store *store, const struct analysis *analysis, unsigned halvings);

/* Makes sums of all past steps but the last 2^-halvings; with 0 of half of them, when they take too much. */
void store_fold_past(struct store *store, unsigned halvings);

/* What is left out. */
const struct limit *store_limit(const struct store *store);

/* The number that a query gives; 0 of none, or after an error. */
int64_t store_number(struct store *store, const char *sql);

/* How much of the job is written already, as it is: these rows of long and step tables are not to be put. */
struct extent store_same(const struct store *store);

/* The first rows of a long table, that are written already. */
void store_pass(struct store *store, enum store_table table, size_t rows);

/* Adds a row. After the first error further rows are ignored; store_write reports it. */
void store_put(struct store *store, enum store_table table, const char *format, ...);

/* The rows of analysis->counted (store_counted.c). */
void store_counted(struct store *store, const struct analysis *analysis);

/* The rows of analysis->hosted (store_hosted.c). */
void store_hosted(struct store *store, const struct analysis *analysis);

/* What happened to each flow, and what its receiver answered (store_evidence.c). */
void store_evidence_rows(struct store *store, const struct naming *naming);

/* The first signs of failures (store_failure.c). */
void store_failure_rows(struct store *store, const struct naming *naming);

/* How each queue pair was set up (store_setting.c). */
void store_setting_rows(struct store *store, const struct naming *naming);

/* What the NIC sides keep (store_evidence.c). */
void store_pins(struct store *store, const struct analysis *analysis);

/* Verdicts with their numbers, and what cannot be told (store_verdict.c). */
void store_verdicts(struct store *store, const struct analysis *analysis);

/* "3, 4", or NULL when a verdict names one rank or none. */
const char *store_candidates(const struct verdict *verdict, char *text, size_t bytes);

/* What a port leaves out: "edges only, one queue", or "all". */
const char *store_port_sees(const struct port *port, char text[64]);

void store_rows(struct store *store, const struct analysis *analysis);
