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
#include "wire/record.h"

#define PROCESSES_MAX 1024
#define DEVICES_MAX   4096

/* A device of a process whose functions are known; one without a name is no device. */
struct known_device {
    pid_t pid;
    char name[DEVICE_NAME_BYTES];
};

/* What one request has learned and done. */
struct learned {
    struct provider_table places;
    pid_t processes[PROCESSES_MAX];
    size_t processes_count;
    struct known_device devices[DEVICES_MAX];
    size_t devices_count;
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

static bool has_device(const struct learned *learned, pid_t pid, const char *name)
{
    for (size_t i = name[0] == '\0' ? 0 : learned->devices_count; i-- > 0;)
        if (learned->devices[i].pid == pid && strncmp(learned->devices[i].name, name, DEVICE_NAME_BYTES) == 0)
            return true;
    return false;
}

void work_learn(void *context, pid_t pid, const char *device, uint64_t queue_pair)
{
    struct learned *learned = &((struct work *)context)->learned;
    if (has_device(learned, pid, device))
        return;
    if (!has_process(learned, pid) && learned->processes_count < PROCESSES_MAX)
        learned->processes[learned->processes_count++] = pid;
    if (provider_learn(&learned->places, pid, queue_pair) != 0) {
        learned->unread_count++;
        return;
    }
    if (learned->devices_count == DEVICES_MAX)
        return;
    struct known_device *known = &learned->devices[learned->devices_count++];
    known->pid = pid;
    strncpy(known->name, device, sizeof known->name - 1);
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
