/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that a subcommand writes; "-" is standard output. A file that did not become whole is removed. What cannot be
 * written is said once, with what to do. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* -errno after logging. */
int output_open(FILE **out, const char *path);

/* 0, or the -errno of what could not be written, after logging. The file stays only when that is 0 and it is `whole`.
 */
int output_close(FILE **out, const char *path, bool whole);

/*
 * Says that `path` cannot be written, for the reason `error` (of errno), and returns -error. What standard output still
 * holds is dropped: who ends the program later finds it in order, and says nothing more.
 */
int output_fail(const char *path, int error);

bool output_is_stdout(const char *path);

/* For the end of the program: whether standard output took all of it. -errno after logging. */
int output_end(void);

/* Never a device or a pipe. */
void output_remove(const char *path);
