/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a configuration file. Checked: what is handed out is text of one line, without blanks at its ends, and
 * its line is named; a file with a zero byte gives nothing.
 */
#include "wire/option_file.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check_text(const char *text)
{
    size_t length = strlen(text);

    if (strchr(text, '\n') != NULL)
        abort();
    if (length > 0 && (isspace((unsigned char)text[0]) || isspace((unsigned char)text[length - 1])))
        abort();
}

static int take(void *context, unsigned file, const char *where, const char *key, const char *value)
{
    const char *line = strrchr(where, ':');

    check_text(key);
    check_text(value);
    if (strchr(key, '=') != NULL || file != 0 || line == NULL || atoi(line + 1) < 1)
        abort();
    ++*(size_t *)context;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    char path[64];
    size_t keys = 0;
    int file = memfd_create("configuration", MFD_CLOEXEC);

    if (file < 0 || write(file, bytes, length_bytes) != (ssize_t)length_bytes)
        abort();
    log_init("fuzz", LOG_NONE);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int error = option_file_read(path, "qpscope-try", take, &keys);
    if (memchr(bytes, '\0', length_bytes) != NULL && (error == 0 || keys != 0))
        abort();
    close(file);
    return 0;
}
