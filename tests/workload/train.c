/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rank, or several as threads of one process, of a training job: communicators, then steps of computing and
 * communicating, with one fault if asked for. It does not know that it is watched and waits for nobody but its ranks.
 */
#include "communicator.h"
#include "fault.h"
#include "hip.h"
#include "job.h"
#include "library.h"
#include "meet.h"
#include "pattern.h"
#include "truth.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { STREAM_NON_BLOCKING = 1 };

struct trainer {
    const struct job *job;
    int world_rank;
    int device;
    struct communicators communicators;
    struct pattern *pattern;
    struct fault fault;
    void *stream;
    uint64_t wrong;
};

static void compute(const struct job *job, uint64_t duration_us)
{
    uint64_t until_ns = truth_now_ns() + duration_us * 1000;

    if (!job->spin)
        nanosleep(&(struct timespec){(time_t)(duration_us / 1000000), (long)(duration_us % 1000000) * 1000}, NULL);
    while (truth_now_ns() < until_ns)
        ;
}

static void step_note(const struct trainer *trainer, int64_t step, const uint64_t *times_ns)
{
    static const char *const names[] = {"begun_ns", "first_enqueue_ns", "last_enqueue_ns", "ended_ns"};
    struct truth_line line;

    truth_begin(&line, "step");
    truth_signed(&line, "rank", trainer->world_rank);
    truth_signed(&line, "step", step);
    for (int i = 0; i < 4; i++)
        truth_number(&line, names[i], times_ns[i]);
    truth_put(&line);
}

static void step_run(struct trainer *trainer, int64_t step)
{
    const struct job *job = trainer->job;
    bool checked = step == 0 || step == job->steps - 1;
    uint64_t begun_ns = truth_now_ns(), times_ns[4] = {begun_ns, begun_ns};

    fault_step_begin(&trainer->fault, step);
    if (checked)
        pattern_fill(trainer->pattern, step);
    for (int i = 0; i < pattern_length(trainer->pattern); i++) {
        compute(job, (uint64_t)(job->compute_us * pattern_compute_percent(trainer->pattern, i) / 100));
        if (i == 0) {
            fault_before_enqueue(&trainer->fault, step);
            times_ns[1] = truth_now_ns();
        }
        pattern_enqueue(trainer->pattern, i, trainer->stream);
    }
    times_ns[2] = truth_now_ns();
    library_check(hipStreamSynchronize(trainer->stream), "hipStreamSynchronize");
    times_ns[3] = truth_now_ns();
    fault_step_end(&trainer->fault, step, times_ns[3] - times_ns[1]);
    pattern_note(trainer->pattern, step);
    step_note(trainer, step, times_ns);
    if (checked)
        trainer->wrong += pattern_check(trainer->pattern, step);
}

static void *trainer_run(void *argument)
{
    struct trainer *trainer = argument;
    const struct job *job = trainer->job;
    uint64_t begun_ns = truth_now_ns();

    library_check(hipSetDevice(trainer->device), "hipSetDevice");
    library_check(hipStreamCreateWithFlags(&trainer->stream, STREAM_NON_BLOCKING), "hipStreamCreateWithFlags");
    communicators_create(&trainer->communicators, job, trainer->world_rank);
    trainer->pattern = pattern_create(job, &trainer->communicators);
    trainer->fault = (struct fault){.job = job, .world_rank = trainer->world_rank};
    trainer->fault.sent_bytes = pattern_sent_bytes(trainer->pattern);
    fprintf(stderr, "train: rank %d ready after %.3f s, sends %lu bytes a step\n", trainer->world_rank,
            (double)(truth_now_ns() - begun_ns) / 1e9, trainer->fault.sent_bytes);
    meet_mark(job, "ready", trainer->world_rank);
    for (int64_t step = 0; step < job->steps; step++)
        step_run(trainer, step);
    /* A communicator's threads end with it, even while a neighbour still needs its last bytes: so all wait for all. */
    meet_all(job, "done", trainer->world_rank);
    if (job->wait_release)
        meet_await(job, "release");
    communicators_destroy(&trainer->communicators, job);
    pattern_destroy(trainer->pattern);
    library_check(hipStreamDestroy(trainer->stream), "hipStreamDestroy");
    return NULL;
}

static void job_note(const struct job *job)
{
    struct truth_line line;

    truth_begin(&line, "job");
    truth_signed(&line, "rank", job->rank);
    truth_signed(&line, "ranks_here", job->ranks_here);
    truth_signed(&line, "ranks", job->ranks);
    truth_signed(&line, "steps", job->steps);
    truth_number(&line, "seed", job->seed);
    truth_text(&line, "library", job->library);
    truth_put(&line);
}

static uint64_t ranks_run(const struct job *job)
{
    struct trainer *trainers = calloc((size_t)job->ranks_here, sizeof *trainers);
    pthread_t *threads = calloc((size_t)job->ranks_here, sizeof *threads);
    uint64_t wrong = 0;

    for (int i = 0; i < job->ranks_here; i++) {
        trainers[i] = (struct trainer){.job = job, .world_rank = (int)job->rank + i, .device = i};
        if (i > 0 && pthread_create(&threads[i], NULL, trainer_run, &trainers[i]))
            abort();
    }
    trainer_run(&trainers[0]);
    for (int i = 0; i < job->ranks_here; i++) {
        if (i > 0)
            pthread_join(threads[i], NULL);
        wrong += trainers[i].wrong;
    }
    free(threads);
    free(trainers);
    return wrong;
}

int main(int argc, char **argv)
{
    struct job job = {.ranks_here = 1,
                      .ranks = 1,
                      .steps = 12,
                      .worlds = 3,
                      .compute_us = 60000,
                      .elements = 16384,
                      .fault_last_step = INT64_MAX,
                      .fault_every = 1,
                      .seed = 1,
                      .library = "librccl.so.1",
                      .meet = "."};
    int parsed = job_parse(&job, argc, argv);

    if (parsed)
        return parsed < 0 ? 2 : 0;
    truth_clock();
    job_note(&job);
    library_open(job.library);
    nanosleep(&(struct timespec){job.settle_ms / 1000, job.settle_ms % 1000 * 1000000}, NULL);
    if (job.rank == 0)
        communicators_publish(&job);
    uint64_t wrong = ranks_run(&job);
    truth_clock();
    if (wrong)
        fprintf(stderr, "train: %lu values were wrong\n", wrong);
    return wrong ? 1 : 0;
}
