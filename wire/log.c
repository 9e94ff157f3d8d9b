/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Diagnostics. Invariant: one call is one write(2) of one line, whatever the text holds, so that lines of several
 * threads and processes do not mix and nothing that came from outside can forge a second line.
 */
#include "wire/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES_MAX 2048

static const char *program_name = "qpscope";
static _Atomic enum log_level level_max = LOG_INFO;
static bool is_journal;

/* systemd sets JOURNAL_STREAM to "device:inode" of the stream that it gave to the service. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat status;

    if (stream == NULL || sscanf(stream, "%llu:%llu", &device, &inode) != 2)
        return false;
    return fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

void log_init(const char *program, enum log_level level)
{
    program_name = program;
    level_max = level;
    is_journal = stderr_is_journal();
}

void log_set_level(enum log_level level)
{
    level_max = level;
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_NONE:
    case LOG_ERROR:
        return "error";
    case LOG_WARNING:
        return "warning";
    case LOG_INFO:
        return "info";
    case LOG_DEBUG:
        return "debug";
    }
    return "error";
}

static size_t format_head(char *line, size_t capacity_bytes, enum log_level level)
{
    int length = is_journal ? snprintf(line, capacity_bytes, "<%d>", (int)level)
                            : snprintf(line, capacity_bytes, "%s: %s: ", program_name, level_name(level));

    return length < 0 ? 0 : (size_t)length < capacity_bytes ? (size_t)length : capacity_bytes - 1;
}

static void write_line(enum log_level level, const char *format, va_list arguments)
{
    char line[LINE_BYTES_MAX];
    size_t head = format_head(line, sizeof line - 1, level);
    size_t room = sizeof line - 1 - head;
    int length = vsnprintf(line + head, room, format, arguments);
    size_t end = head + (length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1);

    for (size_t i = head; i < end; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    line[end++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, end);
    (void)written;
}

void log_write(enum log_level level, const char *format, ...)
{
    int saved_errno = errno;
    va_list arguments;

    if (level > level_max)
        return;
    va_start(arguments, format);
    write_line(level, format, arguments);
    va_end(arguments);
    errno = saved_errno;
}

int log_error_return(int error, const char *format, ...)
{
    va_list arguments;

    if (LOG_ERROR > level_max)
        return error;
    va_start(arguments, format);
    write_line(LOG_ERROR, format, arguments);
    va_end(arguments);
    return error;
}
