/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups and the jobs in them, on threads as NCCL has them: outside a group a job runs in the caller; the end of a
 * group makes a thread for each job in the order of the calls, or runs it itself when there is exactly one (2.28.3 and
 * later; STANDIN_INLINE=0: never). When a communicator does not block, a group thread does all that. A group belongs to
 * the thread that opened it.
 */
#pragma once

#include "communicator/communicator.h"

struct job {
    int (*run)(struct job *job); /* 0 or -errno; on a thread of its own or not */
    void (*finish)(struct job *job, ncclResult_t result);
    struct ncclComm *comm; /* whose state tells how far it is; or NULL */
    int cuda_device;
    ncclResult_t result;
    pthread_t thread;
    struct job *next;
};

void group_open(void);

/* Adds a job, which is freed when it is done. Only in a group. */
void group_add_job(struct job *job);

/* Adds a task; launched when the group ends. */
void group_add_task(struct ncclComm *comm, const struct task *task, cudaStream_t stream);

/* Ends the innermost group; the outermost does what was gathered. ncclInProgress when that goes on without the caller.
 */
ncclResult_t group_close(void);

/* Ends the innermost group; what the outermost has gathered is dropped. */
ncclResult_t group_abandon(void);

/* The first error of a call within the group is that of the group. */
ncclResult_t group_fail(ncclResult_t result);
bool group_is_open(void);
