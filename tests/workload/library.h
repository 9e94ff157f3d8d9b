/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collective library (RCCL or NCCL), found at run time so that nothing of it is needed to build the job. Opened
 * once, before any thread is made; the functions may then be called as the library's own manual says.
 */
#pragma once

#include <stddef.h>

enum { UNIQUE_ID_BYTES = 128 };
enum { LIBRARY_FLOAT = 7, LIBRARY_SUM = 0 };

struct unique_id {
    unsigned char bytes[UNIQUE_ID_BYTES];
};

struct library {
#define FUNCTION(name, arguments) int(*name) arguments;
#include "library.def"
#undef FUNCTION
};

extern struct library library;

/* Loads `name` (a soname or a path). Ends the process with a message when that fails: a job cannot go on without. */
void library_open(const char *name);

/* Ends the process with a message when `result` is an error of the library or the runtime. */
void library_check(int result, const char *what);
