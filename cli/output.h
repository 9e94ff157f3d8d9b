/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that a subcommand writes; "-" is standard output. A file that did not become whole is removed. One thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* -errno after logging. */
int output_open(FILE **out, const char *path);

/* 0, or the -errno of what could not be written, after logging. The file stays only when that is 0 and it is `whole`.
 */
int output_close(FILE **out, const char *path, bool whole);

bool output_is_stdout(const char *path);

/* Never a device or a pipe. */
void output_remove(const char *path);
