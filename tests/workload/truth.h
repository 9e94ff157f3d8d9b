/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The truth file: what really happened in the job, as JSON lines that qpscope never reads. The job (train), the
 * stand-in runtime and the tracer each compile this in and append to the file that LAB_TRUTH names, one write a line;
 * without LAB_TRUTH nothing is written. Times are nanoseconds of CLOCK_MONOTONIC. Any thread.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRUTH_LINE_BYTES = 4096 };

/* A line under construction; text beyond the room is cut, and truth_put then refuses the line. */
struct truth_line {
    size_t length_bytes;
    char text[TRUTH_LINE_BYTES];
};

uint64_t truth_now_ns(void);

/* Whether a truth file was asked for and could be opened. */
bool truth_wanted(void);

/* Starts a line with its kind and the calling process and thread. */
void truth_begin(struct truth_line *line, const char *kind);

/* Adds ,"name":value. */
void truth_number(struct truth_line *line, const char *name, uint64_t value);
void truth_signed(struct truth_line *line, const char *name, int64_t value);
void truth_text(struct truth_line *line, const char *name, const char *value);
void truth_pointer(struct truth_line *line, const char *name, const void *value);
void truth_hex(struct truth_line *line, const char *name, const void *bytes, size_t length_bytes);

/* Adds text as it is. */
void truth_raw(struct truth_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Closes the line and appends it to the file. */
void truth_put(struct truth_line *line);

/* Writes a line that pairs CLOCK_MONOTONIC with CLOCK_REALTIME. */
void truth_clock(void);
