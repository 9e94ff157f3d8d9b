/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths as URIs. */
#include "report/read/store_uri.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_BYTE 3 /* "%3f" */

char *store_uri(const char *path, const char *query)
{
    char *uri = malloc(strlen(path) * BYTES_PER_BYTE + strlen(query) + sizeof("file://?"));
    if (uri == NULL) {
        return NULL;
    }
    /* "//host" would name another machine: an empty one comes before a path from the root. */
    char *end = stpcpy(uri, *path == '/' ? "file://" : "file:");
    for (const char *c = path; *c != '\0'; c++) {
        end += sprintf(end, strchr("%?#", *c) != NULL ? "%%%02x" : "%c", (unsigned char)*c);
    }
    end = stpcpy(end, "?");
    strcpy(end, query);
    return uri;
}
