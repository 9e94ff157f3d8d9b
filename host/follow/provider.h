/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where RDMA devices' providers keep the functions that ibv_post_send and ibv_poll_cq jump to. They have no symbols:
 * they are read from the queue pairs' own memory, in the processes that made them. Reads memory and maps of other
 * processes (CAP_SYS_PTRACE); one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/process/process.h"

enum provider_call { PROVIDER_POST_SEND, PROVIDER_POLL_CQ, PROVIDER_CALLS };

struct provider_place {
    struct file_key file; /* as the maps of processes show it */
    uint64_t file_offset;
    enum provider_call call;
};

#define PROVIDER_PLACES_MAX 64
struct provider_table {
    struct provider_place places[PROVIDER_PLACES_MAX]; /* each once */
    size_t count;
    pid_t last_pid; /* of the queue pair before: most have the same functions */
    uint64_t last_calls[PROVIDER_CALLS];
};

/*
 * Adds the functions of a process's queue pair, an ibv_qp there. -errno: it cannot be read, its functions lie in no
 * mapped file (-ENOENT), or the table is full (-ENOSPC). Not logged.
 */
int provider_learn(struct provider_table *table, pid_t pid, uint64_t queue_pair);

/* `descriptor`: the file, open to be read while the visit lasts. */
typedef void provider_visit(void *context, pid_t pid, int descriptor, const struct provider_place *place);

/* Every place that a process has mapped, whoever showed it. */
void provider_each(const struct provider_table *table, pid_t pid, provider_visit *visit, void *context);
