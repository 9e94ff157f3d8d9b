/* SPDX-License-Identifier: BSD-2-Clause */
/* A store's path as SQLite's URI, whatever characters are in it (sqlite.org/uri.html). Any thread. */
#pragma once

/* "file:" with `path` and behind a '?' the query; to be freed, NULL when out of memory. */
char *store_uri(const char *path, const char *query);
