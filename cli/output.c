/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of subcommands that write one. */
#include "cli/output.h"

#include <errno.h>
#include <stdio_ext.h>
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

static const char *remedy_of(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ": make room there, or write elsewhere";
    case ENOENT:
    case ENOTDIR:
        return ": make the folder first, or name another file";
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
        return ": name a file that you may write";
    default:
        return "";
    }
}

int output_fail(const char *path, int error)
{
    bool is_stdout = output_is_stdout(path);
    if (is_stdout) {
        __fpurge(stdout);
        clearerr(stdout);
    }
    const char *name = is_stdout ? "to standard output" : *path == '\0' ? "a file without a name" : path;
    return log_error_return(-error, "cannot write %s: %s%s", name, strerror(error), remedy_of(error));
}

int output_open(FILE **out, const char *path)
{
    *out = output_is_stdout(path) ? stdout : fopen(path, "we");
    return *out != NULL ? 0 : output_fail(path, errno);
}

/* Why a stream could not write all. The reason why an earlier part failed is not kept: it fails once more, and says. */
static int error_of(FILE *out)
{
    if (fflush(out) != 0) {
        return errno;
    }
    if (ferror(out) == 0) {
        return 0;
    }
    return putc('\n', out) == EOF || fflush(out) != 0 ? errno : EIO;
}

int output_close(FILE **out, const char *path, bool whole)
{
    int error = error_of(*out);
    if (*out != stdout && fclose(*out) != 0 && error == 0) {
        error = errno;
    }
    *out = NULL;
    if ((error != 0 || !whole) && !output_is_stdout(path)) {
        output_remove(path);
    }
    return error == 0 ? 0 : output_fail(path, error);
}

int output_end(void)
{
    int error = error_of(stdout);
    return error == 0 ? 0 : output_fail("-", error);
}
