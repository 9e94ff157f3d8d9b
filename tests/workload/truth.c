/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the truth file. A line is one write() to a file opened for appending, so lines of several writers stay whole.
 */
#include "truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int truth_fd = -1;
static pthread_once_t truth_once = PTHREAD_ONCE_INIT;

static uint64_t clock_read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t truth_now_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

static void truth_open(void)
{
    const char *path = getenv("LAB_TRUTH");

    if (!path || !*path)
        return;
    truth_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (truth_fd < 0)
        perror("LAB_TRUTH");
}

bool truth_wanted(void)
{
    pthread_once(&truth_once, truth_open);
    return truth_fd >= 0;
}

void truth_raw(struct truth_line *line, const char *format, ...)
{
    size_t room_bytes = sizeof line->text - line->length_bytes;
    va_list arguments;

    va_start(arguments, format);
    int written = vsnprintf(line->text + line->length_bytes, room_bytes, format, arguments);
    va_end(arguments);
    line->length_bytes =
        written < 0 || (size_t)written >= room_bytes ? sizeof line->text : line->length_bytes + (size_t)written;
}

void truth_begin(struct truth_line *line, const char *kind)
{
    line->length_bytes = 0;
    truth_raw(line, "{\"kind\":\"%s\",\"pid\":%d,\"tid\":%d", kind, getpid(), gettid());
}

void truth_number(struct truth_line *line, const char *name, uint64_t value)
{
    truth_raw(line, ",\"%s\":%lu", name, value);
}

void truth_signed(struct truth_line *line, const char *name, int64_t value)
{
    truth_raw(line, ",\"%s\":%ld", name, value);
}

void truth_text(struct truth_line *line, const char *name, const char *value)
{
    truth_raw(line, ",\"%s\":\"%s\"", name, value);
}

void truth_pointer(struct truth_line *line, const char *name, const void *value)
{
    truth_raw(line, ",\"%s\":\"%p\"", name, value);
}

void truth_hex(struct truth_line *line, const char *name, const void *bytes, size_t length_bytes)
{
    const unsigned char *from = bytes;

    truth_raw(line, ",\"%s\":\"", name);
    for (size_t i = 0; i < length_bytes; i++)
        truth_raw(line, "%02x", from[i]);
    truth_raw(line, "\"");
}

void truth_put(struct truth_line *line)
{
    truth_raw(line, "}\n");
    if (!truth_wanted())
        return;
    if (line->length_bytes >= sizeof line->text)
        fprintf(stderr, "truth: a line of more than %d bytes is left out: %.100s\n", TRUTH_LINE_BYTES, line->text);
    else if (write(truth_fd, line->text, line->length_bytes) != (ssize_t)line->length_bytes)
        perror("LAB_TRUTH");
}

void truth_clock(void)
{
    struct truth_line line;
    uint64_t before_ns = truth_now_ns(), realtime_ns = clock_read_ns(CLOCK_REALTIME), after_ns = truth_now_ns();

    truth_begin(&line, "clock");
    truth_number(&line, "monotonic_ns", before_ns + (after_ns - before_ns) / 2);
    truth_number(&line, "realtime_ns", realtime_ns);
    truth_number(&line, "error_ns", (after_ns - before_ns + 1) / 2);
    truth_put(&line);
}
