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
#define STORE_SCHEMA_VERSION 3

/*
 * Opens or makes the database; one whose schema is older is emptied and made anew, since rows follow from batches alone
 * and are all replaced. -EINVAL when the file is something else, -EPROTO when its schema is newer, another -errno (all
 * logged with the path).
 */
int store_open(struct store **store, const char *path);

/* Replaces all rows. -ENOSPC and others after logging once until it works again; nothing is changed then. */
int store_write(struct store *store, const struct analysis *analysis);

/* A no-op on NULL. */
void store_close(struct store **store);
