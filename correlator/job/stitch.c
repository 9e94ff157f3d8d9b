/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows put together. Invariant: what the job has before stays as it is; indices in what is added are the job's own.
 */
#include "correlator/job/stitch.h"

#include <stdlib.h>
#include <string.h>

struct extent extent_of(const struct job *job)
{
    return (struct extent){job->operations.count, job->rank_operations.count, job->steps.count, job->rank_steps.count,
                           job->path.count,       job->verdicts.count};
}

void extent_cut(struct job *job, const struct extent *extent)
{
    for (size_t i = extent->verdicts; i < job->verdicts.count; i++)
        verdict_fini(&job->verdicts.items[i]);
    job->operations.count = extent->operations;
    job->rank_operations.count = extent->rank_operations;
    job->steps.count = extent->steps;
    job->rank_steps.count = extent->rank_steps;
    job->path.count = extent->path;
    job->verdicts.count = extent->verdicts;
}

static bool has_step(const struct stitch *stitch, int32_t step)
{
    return step >= 0 && (size_t)step >= stitch->first_step && (size_t)step < stitch->last_step;
}

/* Groups count on behind those of their communicator before. */
static uint64_t next_group(const struct job *job, const struct operation *operation)
{
    for (size_t i = job->operations.count; i-- > 0;) {
        const struct operation *before = &job->operations.items[i];
        if (before->kind == OPERATION_GROUP &&
            memcmp(before->communicator, operation->communicator, IDENTITY_BYTES) == 0)
            return before->sequence + 1;
    }
    return 0;
}

static int32_t add_operation(struct stitch *stitch, const struct operation *of, int32_t step)
{
    struct job *job = stitch->job;
    uint64_t sequence = of->kind == OPERATION_GROUP ? next_group(job, of) : of->sequence;
    int32_t index = (int32_t)job->operations.count;
    struct operation *operation = array_add(&job->operations);

    *operation = *of;
    operation->sequence = sequence;
    operation->first_rank = job->rank_operations.count;
    operation->step = step;
    operation->place = step < 0 ? -1 : of->place;
    for (size_t i = of->first_rank; i < of->first_rank + of->ranks; i++) {
        stitch->rank_operation[i] = (int32_t)job->rank_operations.count;
        struct rank_operation *rank = array_add(&job->rank_operations);
        *rank = stitch->window->rank_operations.items[i];
        rank->operation = index;
    }
    return index;
}

/* By the window's operations: where each one went, -1 = nowhere. To be freed. */
static int32_t *add_operations(struct stitch *stitch, int32_t base)
{
    const struct job *window = stitch->window;
    int32_t *moved = array_zeroed((window->operations.count + 1) * sizeof *moved);

    for (size_t i = 0; i < window->rank_operations.count; i++)
        stitch->rank_operation[i] = -1;
    for (size_t i = 0; i < window->operations.count; i++) {
        const struct operation *of = &window->operations.items[i];
        int32_t step = has_step(stitch, of->step) ? of->step - (int32_t)stitch->first_step + base : -1;
        moved[i] = stitch->leaves[i] != 0 ? -1 : add_operation(stitch, of, step);
    }
    return moved;
}

static void add_steps(struct stitch *stitch, const int32_t *moved, int32_t base)
{
    struct job *job = stitch->job;
    const struct job *window = stitch->window;

    for (size_t i = stitch->first_step; i < stitch->last_step; i++) {
        const struct step *of = &window->steps.items[i];
        struct step *step = array_add(&job->steps);
        *step = *of;
        step->first_rank = job->rank_steps.count;
        step->late_operation = of->late_operation < 0 ? -1 : moved[of->late_operation];
        for (size_t j = of->first_rank; j < of->first_rank + of->ranks; j++) {
            struct rank_step *rank = array_add(&job->rank_steps);
            *rank = window->rank_steps.items[j];
            rank->step += base - (int32_t)stitch->first_step;
        }
    }
    for (size_t i = 0; i < window->path.count; i++) {
        struct path_part part = window->path.items[i];
        if (!has_step(stitch, part.step) || moved[part.operation] < 0)
            continue;
        part.step += base - (int32_t)stitch->first_step;
        part.operation = moved[part.operation];
        *(struct path_part *)array_add(&job->path) = part;
    }
}

static void add_verdicts(struct stitch *stitch, const int32_t *moved, int32_t base)
{
    struct job *job = stitch->job;

    for (size_t i = 0; i < stitch->window->verdicts.count; i++) {
        struct verdict *of = &stitch->window->verdicts.items[i];
        bool is_kept = has_step(stitch, of->step) || (of->step < 0 && stitch->is_open);
        if (!is_kept || of->operation < 0 || moved[of->operation] < 0)
            continue;
        struct verdict *verdict = array_add(&job->verdicts);
        *verdict = *of;
        memset(of, 0, sizeof *of);
        verdict->operation = moved[verdict->operation];
        verdict->step += verdict->step < 0 ? 0 : base - (int32_t)stitch->first_step;
    }
}

void stitch_window(struct stitch *stitch)
{
    int32_t base = (int32_t)stitch->job->steps.count;
    int32_t *moved = add_operations(stitch, base);

    add_steps(stitch, moved, base);
    add_verdicts(stitch, moved, base);
    free(moved);
}
