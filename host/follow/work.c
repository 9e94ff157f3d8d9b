/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: nothing is learned between two requests. A place that one process shows is set in every process that has
 * the file mapped, also where a queue pair was made before anybody saw it.
 */
#include "host/follow/work.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "wire/log.h"

#define PROCESSES_MAX 1024

/* What one request has learned and done. */
struct learned {
    struct provider_table places;
    pid_t processes[PROCESSES_MAX];
    size_t processes_count;
    size_t unread_count; /* queue pairs whose provider could not be found */
    size_t set_count;
    int set_error;
};

struct work {
    struct work_options options;
    struct learned learned;
};

int work_create(struct work **work, const struct work_options *options)
{
    struct work *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory to follow what is posted");
    fresh->options = *options;
    *work = fresh;
    return 0;
}

void work_destroy(struct work **work)
{
    free(*work);
    *work = NULL;
}

static bool has_process(const struct learned *learned, pid_t pid)
{
    for (size_t i = learned->processes_count; i-- > 0;)
        if (learned->processes[i] == pid)
            return true;
    return false;
}

void work_learn(void *context, pid_t pid, uint64_t queue_pair)
{
    struct learned *learned = &((struct work *)context)->learned;
    learned->unread_count += provider_learn(&learned->places, pid, queue_pair) != 0;
    if (!has_process(learned, pid) && learned->processes_count < PROCESSES_MAX)
        learned->processes[learned->processes_count++] = pid;
}

static void set_place(void *context, pid_t pid, int descriptor, const struct provider_place *place)
{
    struct work *work = context;
    const int error = work->options.set(work->options.context, pid, descriptor, place);
    work->learned.set_count += error == 0;
    if (error != 0)
        work->learned.set_error = error;
}

static int judge(const struct learned *learned)
{
    if (learned->set_count != 0)
        return 0;
    if (learned->set_error != 0)
        return learned->set_error;
    return log_error_return(-ENOENT,
                            "cannot follow what is posted: of %zu processes with queue pairs that were seen being made "
                            "none is wanted and shows its provider (%zu queue pairs could not be read)",
                            learned->processes_count, learned->unread_count);
}

int work_set(struct work *work, pid_t pid)
{
    struct learned *learned = &work->learned;
    for (size_t i = 0; i < learned->processes_count; i++)
        if (pid == 0 || pid == learned->processes[i])
            provider_each(&learned->places, learned->processes[i], set_place, work);
    const int result = judge(learned);
    memset(learned, 0, sizeof *learned);
    return result;
}
