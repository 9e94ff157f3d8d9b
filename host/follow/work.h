/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds where to follow what processes post to their queue pairs and what completes, and has the probes set there, in
 * the wanted processes only. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/follow/provider.h"

struct work;

struct work_options {
    /* Sets the probes of one place in one process: 0 or -errno, logged. */
    int (*set)(void *context, pid_t pid, int descriptor, const struct provider_place *place);
    void *context;
};

int work_create(struct work **work, const struct work_options *options);
void work_destroy(struct work **work);

/*
 * A process has this queue pair of this device (an ibv_qp there): `context` is the work. Before work_set, for each
 * queue pair; one of each process and device is read, since a device's functions are the same for all.
 */
void work_learn(void *context, pid_t pid, const char *device, uint64_t queue_pair);

/*
 * Sets all that was learned, in one process or (0) in all of them, and forgets it: processes end, and their numbers are
 * used again. 0 when at least one place was set; -ENOENT, logged: no provider was found; else the -errno of `set`.
 */
int work_set(struct work *work, pid_t pid);
