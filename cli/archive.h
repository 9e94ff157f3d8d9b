/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a tar archive (POSIX ustar) of plain files, one behind the other. One thread. */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct archive {
    FILE *out;
    int error; /* the first one, a negative errno */
};

/* `out` stays the caller's. */
void archive_begin(struct archive *archive, FILE *out);

/* Names of at most 99 bytes, sizes below 8 GiB; else -EINVAL, kept in `error`. */
void archive_add_bytes(struct archive *archive, const char *name, const void *bytes, size_t length);
void archive_add_file(struct archive *archive, const char *name, const char *path);

/* The first error of all, logged; 0 when the archive is whole. */
int archive_end(struct archive *archive);
