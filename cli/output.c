/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of subcommands that write one. */
#include "cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/log.h"

bool output_is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

void output_remove(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
        unlink(path);
    }
}

int output_open(FILE **out, const char *path)
{
    *out = output_is_stdout(path) ? stdout : fopen(path, "we");
    return *out != NULL ? 0 : log_error_return(-errno, "cannot write %s: %s", path, strerror(errno));
}

int output_close(FILE **out, const char *path, bool whole)
{
    bool broken = fflush(*out) != 0 || ferror(*out) != 0;
    int error = broken ? errno : 0;
    if (*out != stdout && fclose(*out) != 0 && error == 0) {
        error = errno;
    }
    *out = NULL;
    if ((error != 0 || !whole) && !output_is_stdout(path)) {
        output_remove(path);
    }
    return error == 0 ? 0 : log_error_return(-error, "cannot write %s: %s", path, strerror(error));
}
