/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SQLite store (schema.sql; nothing else here touches SQLite). All rows are brought up to date in one transaction,
 * in WAL mode, so that readers see the old rows or the new ones; what an open store wrote before and did not change is
 * not written again. One thread.
 */
#pragma once

#include <stdint.h>

struct analysis;
struct store;

#define STORE_APPLICATION_ID 0x51505343 /* "QPSC" */
#define STORE_SCHEMA_VERSION 10

/*
 * Opens or makes the database; one whose schema is older is emptied and made anew, since rows follow from batches alone
 * and are all replaced. -EINVAL when the file is something else or was merged, -EPROTO when its schema is newer,
 * another -errno (all logged with the path).
 */
int store_open(struct store **store, const char *path);

/* What the file holds is of another job: nothing of it is to be kept by the first write. */
void store_begin_anew(struct store *store);

/*
 * The file and its log take at most size_bytes from now on (0: no limit, as it is after opening); one that is larger is
 * made smaller. What then is left out is in limit.h. -errno after logging.
 */
int store_set_limit(struct store *store, uint64_t size_bytes);

/*
 * Replaces all rows; steps that are no longer held by the analysis stay as past_step and past_verdict. -ENOSPC and
 * others after logging once until it works again; nothing is changed then. -EBUSY also when a reader holds back so much
 * that the log would outgrow the limit.
 */
int store_write(struct store *store, const struct analysis *analysis);

/* A no-op on NULL. */
void store_close(struct store **store);
