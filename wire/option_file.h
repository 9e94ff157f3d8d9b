/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's options in a file, in INI form: lines "key = value"; "#" and ";" begin a comment line; "[qpscope-nic]"
 * begins what is for that program only. Files of FILE.d that end in .conf are read behind it, by name. One thread.
 */
#pragma once

/*
 * One key, in order. `file` counts the files from 0; `where` is "FILE:LINE". It says what is wrong itself, and returns
 * -errno then. `value` stays as long as the process.
 */
typedef int option_file_take(void *context, unsigned file, const char *where, const char *key, const char *value);

/*
 * What is before any section, and in that of `program`; sections of qpscope's other programs are left out. All lines
 * are read, whatever is wrong with some: -errno of the first, after logging each. -errno after logging when a file
 * cannot be read.
 */
int option_file_read(const char *path, const char *program, option_file_take *take, void *context);
