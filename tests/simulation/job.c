/* SPDX-License-Identifier: BSD-2-Clause */
/* A job that hangs is watched for some seconds more, as agents would, and then ends. */
#include "tests/simulation/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/simulation/chance.h"
#include "tests/simulation/rank.h"
#include "tests/simulation/truth.h"

#define BEGIN_NS 3000000000ULL /* of the first step: the clocks have had two seconds */
#define SKEW_NS  2000000.0     /* between ranks' first steps */
#define JOIN_NS  50000u
#define AFTER_NS 200000000ULL
#define STALL_NS 3000000000ULL

struct job {
    const struct setting *setting;
    struct world *world;
    struct program *program;
    struct truth *truth;
    struct rank **ranks;
    uint32_t count;
};

static void nothing(void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
}

/* True while ranks go on; a job that does nothing for long has ended too. */
static bool goes_on(const struct job *job, uint64_t *stepped_ns, uint64_t *steps)
{
    uint64_t done = 0, ended = 0;

    for (uint32_t rank = 0; rank < job->count; rank++) {
        done += rank_is_done(job->ranks[rank]) ? 1 : 0;
        ended += rank_steps(job->ranks[rank]);
    }
    if (ended != *steps) {
        *steps = ended;
        *stepped_ns = world_now_ns(job->world);
    }
    return done < job->count && world_now_ns(job->world) - *stepped_ns < STALL_NS;
}

static void play(struct job *job)
{
    uint64_t stepped_ns = world_now_ns(job->world), steps = 0;
    struct agenda *agenda = world_agenda(job->world);

    for (bool more = true; more; more = goes_on(job, &stepped_ns, &steps))
        for (uint64_t until = world_now_ns(job->world) + AFTER_NS / 10; world_now_ns(job->world) < until;)
            if (!agenda_step(agenda))
                return;
    for (uint64_t until = world_now_ns(job->world) + AFTER_NS; world_now_ns(job->world) < until;)
        agenda_step(agenda);
}

/* A rank that joins comes when the first one has come to its first step. */
static void join(void *subject, uint64_t number)
{
    struct job *job = subject;

    if (rank_steps(job->ranks[0]) >= rank_steps(job->ranks[number]))
        rank_begin(job->ranks[number], world_now_ns(job->world));
    else
        agenda_add(world_agenda(job->world), world_now_ns(job->world) + JOIN_NS, join, job, number);
}

static void init(struct job *job)
{
    world_begin(job->world);
    agenda_add(world_agenda(job->world), BEGIN_NS - AFTER_NS, nothing, NULL, 0);
    while (world_now_ns(job->world) < BEGIN_NS - AFTER_NS)
        agenda_step(world_agenda(job->world));
    job->count = world_ranks(job->world);
    job->program = program_create(job->world);
    job->truth = truth_create(job->setting, job->count, job->setting->steps);
    job->ranks = calloc(job->count, sizeof(struct rank *));
    if (job->ranks == NULL)
        abort();
    for (uint32_t rank = 0; rank < job->count; rank++) {
        double skew = chance_even(job->setting->seed, CHANCE_LENGTH, (1ULL << 60) + rank) * SKEW_NS;
        job->ranks[rank] = rank_create(job->world, job->program, job->truth, rank);
        if (rank_steps(job->ranks[rank]) == 0)
            rank_begin(job->ranks[rank], BEGIN_NS + (uint64_t)skew);
        else
            join(job, rank);
    }
}

static void fini(struct job *job)
{
    for (uint32_t rank = 0; rank < job->count; rank++)
        rank_destroy(job->ranks[rank]);
    free(job->ranks);
    program_destroy(job->program);
    truth_destroy(job->truth);
}

static int write_truth(const struct job *job, const struct job_outcome *outcome)
{
    struct truth_sum sum = {outcome->events, outcome->records, outcome->seconds};
    char path[4096];

    if (job->setting->folder == NULL)
        return 0;
    if (snprintf(path, sizeof path, "%s/operations.tsv", job->setting->folder) >= (int)sizeof path)
        return -ENAMETOOLONG;
    int error = job->setting->operations ? ledger_write(world_ledger(job->world), path) : 0;
    snprintf(path, sizeof path, "%s/truth.json", job->setting->folder);
    return error != 0 ? error : truth_write(job->truth, &sum, path);
}

int job_run(const struct setting *setting, struct job_outcome *outcome)
{
    struct job job = {.setting = setting, .world = world_create(setting)};
    clock_t began = clock();

    if (job.world == NULL)
        return -EIO;
    init(&job);
    play(&job);
    world_end(job.world);
    outcome->events = agenda_happened(world_agenda(job.world));
    outcome->records = world_records(job.world);
    outcome->step_ns = truth_step_ns(job.truth);
    outcome->seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    int error = write_truth(&job, outcome);
    fini(&job);
    int failed = world_destroy(job.world);
    return error != 0 ? error : failed;
}
