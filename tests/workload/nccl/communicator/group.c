/* SPDX-License-Identifier: BSD-2-Clause */
/* A group's jobs run before its tasks: the tasks may be for communicators of the group. */
#include "communicator/group.h"

#include "communicator/plan.h"
#include "communicator/wiring.h"
#include "cuda.h"

#include "setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct group {
    int depth;
    ncclResult_t result;
    struct job *jobs;
    struct ncclComm *comms; /* those with tasks, in the order of their first one */
    int cuda_device;
};

struct connecting { /* makes the connections that a communicator's tasks need */
    struct job job;
    struct ncclComm *comm;
};

static __thread struct group current;

bool group_is_open(void)
{
    return current.depth > 0;
}

void group_open(void)
{
    current.depth++;
}

ncclResult_t group_fail(ncclResult_t result)
{
    if (result != ncclSuccess && current.result == ncclSuccess)
        current.result = result;
    return result;
}

void group_add_job(struct job *job)
{
    struct job **end = &current.jobs;

    while (*end)
        end = &(*end)->next;
    cudaGetDevice(&job->cuda_device);
    if (job->comm)
        job->comm->async_result = ncclInProgress;
    *end = job;
}

void group_add_task(struct ncclComm *comm, const struct task *task, cudaStream_t stream)
{
    struct ncclComm **end = &current.comms;

    tasks_add(&comm->tasks, task, stream);
    if (comm->is_in_group)
        return;
    while (*end)
        end = &(*end)->next_in_group;
    comm->is_in_group = true;
    comm->next_in_group = NULL;
    *end = comm;
}

static void *job_run(void *argument)
{
    struct job *job = argument;

    cudaSetDevice(job->cuda_device);
    job->result = communicator_result(job->run(job));
    return NULL;
}

static ncclResult_t jobs_end(struct job *jobs)
{
    ncclResult_t first = ncclSuccess;

    while (jobs) {
        struct job *job = jobs;
        jobs = job->next;
        if (first == ncclSuccess)
            first = job->result;
        if (job->comm)
            job->comm->async_result = job->result;
        if (job->finish)
            job->finish(job, job->result);
        free(job);
    }
    return first;
}

static ncclResult_t jobs_run(struct job *jobs)
{
    int device;

    cudaGetDevice(&device);
    if (jobs && !jobs->next && setting_read("STANDIN_INLINE", 1)) {
        job_run(jobs);
        cudaSetDevice(device);
        return jobs_end(jobs);
    }
    for (struct job *job = jobs; job; job = job->next)
        if (pthread_create(&job->thread, NULL, job_run, job))
            abort();
    for (struct job *job = jobs; job; job = job->next)
        pthread_join(job->thread, NULL);
    return jobs_end(jobs);
}

static int connecting_run(struct job *job)
{
    struct ncclComm *comm = ((struct connecting *)job)->comm;
    bool *sends = calloc((size_t)comm->ranks, sizeof *sends), *receives = calloc((size_t)comm->ranks, sizeof *receives);
    bool needs_rings = false, needs_peers = false;
    int error = 0;

    for (int i = 0; i < comm->tasks.count; i++) {
        const struct task *task = &comm->tasks.items[i];
        needs_rings = needs_rings || task->kind < NCOLLS;
        needs_peers = needs_peers || task->kind >= NCOLLS;
        if (task->kind >= NCOLLS)
            (task->kind == TASK_SEND ? sends : receives)[task->peer] = true;
    }
    if (needs_rings)
        error = wiring_connect_rings(comm);
    if (!error && needs_peers)
        error = wiring_connect_peers(comm, sends, receives);
    free(sends);
    free(receives);
    return error;
}

static bool is_connected(const struct ncclComm *comm)
{
    bool is_whole = true;

    for (int i = 0; i < comm->tasks.count; i++) {
        const struct task *task = &comm->tasks.items[i];
        if (task->kind < NCOLLS)
            is_whole = is_whole && (comm->rings_connected || comm->ranks == 1);
        else if (task->peer != comm->rank)
            is_whole =
                is_whole && communicator_wire(comm, 0, task->peer, P2P_CONN, task->kind == TASK_SEND)->connection;
    }
    return is_whole;
}

static struct job *connecting_jobs(const struct group *group)
{
    struct job *jobs = NULL, **end = &jobs;

    for (struct ncclComm *comm = group->comms; comm; comm = comm->next_in_group) {
        if (is_connected(comm))
            continue;
        struct connecting *connecting = calloc(1, sizeof *connecting);
        connecting->job = (struct job){.run = connecting_run, .cuda_device = comm->cuda_device};
        connecting->comm = comm;
        *end = &connecting->job;
        end = &connecting->job.next;
    }
    return jobs;
}

static ncclResult_t group_run(struct group *group)
{
    ncclResult_t result = jobs_run(group->jobs);

    if (result == ncclSuccess)
        result = jobs_run(connecting_jobs(group));
    while (group->comms) {
        struct ncclComm *comm = group->comms;
        group->comms = comm->next_in_group;
        comm->is_in_group = false;
        ncclResult_t launched = ncclSuccess;
        if (result == ncclSuccess)
            launched = plan_launch(comm);
        else
            tasks_clear(&comm->tasks);
        comm->async_result = result == ncclSuccess ? launched : result;
        result = result == ncclSuccess ? launched : result;
    }
    return result;
}

static void *group_thread(void *argument)
{
    struct group *group = argument;

    cudaSetDevice(group->cuda_device);
    group_run(group);
    free(group);
    return NULL;
}

/* Whether one of the group's communicators does not block; marks all of them as being in progress then. */
static bool group_is_asynchronous(const struct group *group)
{
    bool is_asynchronous = false;

    for (const struct job *job = group->jobs; job; job = job->next)
        is_asynchronous = is_asynchronous || (job->comm && !job->comm->blocking);
    for (const struct ncclComm *comm = group->comms; comm; comm = comm->next_in_group)
        is_asynchronous = is_asynchronous || !comm->blocking;
    for (struct ncclComm *comm = group->comms; comm && is_asynchronous; comm = comm->next_in_group)
        comm->async_result = ncclInProgress;
    return is_asynchronous;
}

static void group_drop(struct group *group)
{
    for (struct job *job = group->jobs; job; job = job->next)
        job->result = group->result;
    jobs_end(group->jobs);
    for (struct ncclComm *comm = group->comms; comm; comm = comm->next_in_group) {
        tasks_clear(&comm->tasks);
        comm->is_in_group = false;
    }
}

ncclResult_t group_abandon(void)
{
    struct group group = current;

    if (current.depth == 0)
        return ncclInvalidUsage;
    if (--current.depth > 0)
        return ncclSuccess;
    current = (struct group){.depth = 0};
    group_drop(&group);
    return group.result;
}

ncclResult_t group_close(void)
{
    struct group *copy, group = current;
    pthread_t thread;

    if (current.depth == 0)
        return ncclInvalidUsage;
    if (--current.depth > 0)
        return ncclSuccess;
    current = (struct group){.depth = 0};
    if (group.result != ncclSuccess) {
        group_drop(&group);
        return group.result;
    }
    if (!group_is_asynchronous(&group))
        return group_run(&group);
    copy = malloc(sizeof *copy);
    *copy = group;
    cudaGetDevice(&copy->cuda_device);
    if (pthread_create(&thread, NULL, group_thread, copy))
        abort();
    pthread_detach(thread);
    return ncclInProgress;
}
