/* SPDX-License-Identifier: BSD-2-Clause */
/* Files appear whole, by rename; waiting is looking every few milliseconds, which costs the small guest little. */
#include "meet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 400, MARK_BYTES = 128, LOOK_MS = 10 };

static void meet_fail(const char *what, const char *path)
{
    fprintf(stderr, "train: cannot %s %s: %s\n", what, path, strerror(errno));
    _exit(1);
}

void meet_publish(const struct job *job, const char *name, const void *bytes, size_t length_bytes)
{
    char path[PATH_BYTES], fresh[PATH_BYTES + 8];

    snprintf(path, sizeof path, "%s/%s", job->meet, name);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "we");
    if (!file || fwrite(bytes, 1, length_bytes, file) != length_bytes || fclose(file) || rename(fresh, path))
        meet_fail("write", path);
}

void meet_await(const struct job *job, const char *name)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/%s", job->meet, name);
    while (access(path, F_OK))
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
}

void meet_read(const struct job *job, const char *name, void *bytes, size_t length_bytes)
{
    char path[PATH_BYTES];

    meet_await(job, name);
    snprintf(path, sizeof path, "%s/%s", job->meet, name);
    FILE *file = fopen(path, "re");
    if (!file || fread(bytes, 1, length_bytes, file) != length_bytes)
        meet_fail("read", path);
    fclose(file);
}

void meet_mark(const struct job *job, const char *name, int world_rank)
{
    char mark[MARK_BYTES];

    snprintf(mark, sizeof mark, "%s.%d", name, world_rank);
    meet_publish(job, mark, "", 0);
}

void meet_some(const struct job *job, const char *name, int world_rank, int ranks)
{
    char mark[MARK_BYTES];

    meet_mark(job, name, world_rank);
    for (int rank = 0; rank < ranks; rank++) {
        snprintf(mark, sizeof mark, "%s.%d", name, rank);
        meet_await(job, mark);
    }
}

void meet_all(const struct job *job, const char *name, int world_rank)
{
    meet_some(job, name, world_rank, (int)job->ranks);
}
