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

#include "correlator/naming/naming.h"
#include "correlator/store/store.h"

enum store_table {
#define TABLE(name, columns) STORE_##name,
#define LONG_TABLE           TABLE
#include "correlator/store/store_table.def"
#undef TABLE
#undef LONG_TABLE
    STORE_TABLES
};

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

/* What a port leaves out: "edges only, one queue", or "all". */
const char *store_port_sees(const struct port *port, char text[64]);

void store_rows(struct store *store, const struct analysis *analysis);
