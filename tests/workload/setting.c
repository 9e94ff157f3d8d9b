/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads settings from the environment each time: they are few, and asked for rarely. */
#include "setting.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int setting_read(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text && *text ? (int)strtol(text, NULL, 0) : otherwise;
}

void setting_say(int level, const char *format, ...)
{
    char text[500];
    va_list arguments;

    if (setting_read("STANDIN_LOG", 0) < level)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "standin[%d/%d] %s\n", getpid(), gettid(), text);
}
