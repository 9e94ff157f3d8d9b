/* SPDX-License-Identifier: BSD-2-Clause */
/* A line as the real library writes it. */
#include "net/warning.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) void warning_log(int level, unsigned long subsystems, const char *function, int line,
                                           const char *format, ...)
{
    char text[500];
    va_list arguments;

    (void)level, (void)subsystems;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%d:%d NCCL WARN %s:%d %s\n", getpid(), gettid(), function, line, text);
}
