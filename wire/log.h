/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Diagnostics on stderr: one line each, "PROGRAM: LEVEL: text", or with journald's "<N>" prefix when stderr is the
 * journal. The one who first decides that something is an error logs it; callers forward. Any thread.
 */
#pragma once

enum log_level {
    LOG_NONE = 0, /* shows nothing: for fuzzing */
    LOG_ERROR = 3,
    LOG_WARNING = 4,
    LOG_INFO = 6,
    LOG_DEBUG = 7,
};

/* Names the program and sets the most detailed level that is shown. Call once, before other threads start. */
void log_init(const char *program, enum log_level level);

/* Another most detailed level from now on. Any thread. */
void log_set_level(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_DEBUG, __VA_ARGS__)

/* Logs an error and returns `error` (negative errno), so that deciding and returning is one statement. */
int log_error_return(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
