/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Costs. Invariant: a rank saves a step no less than what one of its operations waited for it alone beyond the usual,
 * and no more than the sum over them.
 */
#include "correlator/job/cost.h"

#include <stdlib.h>

/* A rank whose data came so soon behind the end of the operation before, as a part of the time since its data for that,
 * was ready before that end. */
#define AT_ONCE 64

/* Enough to tell two scatters apart; a job may have millions of rank operations. */
#define SAMPLES_MAX 100000

struct sample { /* of a rank's way to an operation */
    uint64_t place;
    int64_t since_arrival_ns; /* from the rank's own arrival at the operation before */
    int64_t since_end_ns;     /* from the end of that for the rank */
};

struct place {
    uint64_t place;
    bool waits; /* ranks begin to work for it when the operation before is over */
};

struct saving { /* of one rank, in the step that it is in */
    int32_t step;
    const struct rank_operation *earlier;
    int64_t closed_ns; /* of what work waited for the end of */
    int64_t open_ns;   /* since then: what it is late by at most */
};

struct costs {
    struct job *job;
    const struct blame *blames;
    struct saving *savings; /* by rank */
    size_t ranks;
    ARRAY(struct sample) samples;
    ARRAY(struct place) places; /* rising */
};

static size_t ranks_of(const struct job *job)
{
    int32_t last = -1;

    for (size_t i = 0; i < job->rank_operations.count; i++)
        if (job->rank_operations.items[i].rank > last)
            last = job->rank_operations.items[i].rank;
    return (size_t)(last + 1);
}

/* What its rank did before in the step; NULL: nothing. It becomes what was before. */
static struct saving *saving_of(struct costs *costs, const struct rank_operation *of, int32_t step)
{
    if (of->rank < 0)
        return NULL;
    struct saving *saving = &costs->savings[of->rank];
    if (saving->earlier == NULL || saving->step != step)
        *saving = (struct saving){.step = step};
    return saving;
}

/* ---- whether work waits for the operation before ---- */

static bool is_last(const struct job *job, const struct rank_operation *of)
{
    return of->arrival_ns == job->operations.items[of->operation].last_arrival_ns;
}

/* Who was waited for says nothing: its own delay scatters, wherever it is counted from. */
static void sample(struct costs *costs, const struct rank_operation *of, const struct rank_operation *earlier)
{
    const struct job *job = costs->job;

    if (of->before_ns == 0 || of->arrival_ns == 0 || earlier->arrival_ns == 0 || is_last(job, of) ||
        is_last(job, earlier))
        return;
    *(struct sample *)array_add(&costs->samples) = (struct sample){
        .place = costs->blames[of - job->rank_operations.items].place,
        .since_arrival_ns = (int64_t)(of->arrival_ns - earlier->arrival_ns),
        .since_end_ns = (int64_t)(of->arrival_ns - of->before_ns),
    };
}

static void sample_steps(struct costs *costs)
{
    const struct job *job = costs->job;
    int32_t every = (int32_t)(job->rank_operations.count / SAMPLES_MAX + 1);

    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        int32_t step = job->operations.items[of->operation].step;
        if (step < 0 || step % every != 0 || job->steps.items[step].kind != STEP_TRAINING)
            continue;
        struct saving *saving = saving_of(costs, of, step);
        if (saving == NULL)
            continue;
        if (saving->earlier != NULL)
            sample(costs, of, saving->earlier);
        saving->earlier = of;
    }
}

static int by_place(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;

    return (a->place > b->place) - (a->place < b->place);
}

/* From the 10th to the 90th percentile: what only some steps have counts too. */
static int64_t scatter(int64_t *values, size_t count)
{
    return array_select(values, count, 900) - array_select(values, count, 100);
}

/* Of ranks that were ready before the operation before was over nothing is known but that: they say nothing. */
static bool waits(const struct sample *samples, size_t count, int64_t *values)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (samples[i].since_end_ns > samples[i].since_arrival_ns / AT_ONCE)
            values[kept++] = samples[i].since_arrival_ns;
    int64_t beside_ns = scatter(values, kept);
    kept = 0;
    for (size_t i = 0; i < count; i++)
        if (samples[i].since_end_ns > samples[i].since_arrival_ns / AT_ONCE)
            values[kept++] = samples[i].since_end_ns;
    return scatter(values, kept) < beside_ns;
}

static void judge_places(struct costs *costs)
{
    const struct sample *samples = costs->samples.items;
    size_t count = costs->samples.count;
    int64_t *values = array_zeroed((count + 1) * sizeof *values);

    array_sort(&costs->samples, by_place);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && samples[end].place == samples[first].place;)
            end++;
        *(struct place *)array_add(&costs->places) =
            (struct place){samples[first].place, waits(&samples[first], end - first, values)};
    }
    free(values);
}

static bool place_waits(const struct costs *costs, uint64_t place)
{
    size_t low = 0, high = costs->places.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (costs->places.items[middle].place < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low < costs->places.count && costs->places.items[low].place == place && costs->places.items[low].waits;
}

/* ---- what would be saved ---- */

/* How long the operation waited for this rank alone; 0: it was not the last to arrive. */
static int64_t alone_ns(const struct job *job, const struct operation *operation, const struct rank_operation *of)
{
    uint64_t others_ns = 0;

    if (of->arrival_ns == 0 || of->arrival_ns != operation->last_arrival_ns)
        return 0;
    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        const struct rank_operation *other = &job->rank_operations.items[i];
        if (other != of && other->arrival_ns > others_ns)
            others_ns = other->arrival_ns;
    }
    return others_ns == 0 ? 0 : (int64_t)(of->arrival_ns - others_ns);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What the rank added by itself. */
static int64_t added_ns(const struct blame *blame)
{
    int64_t added = 0;

    for (unsigned part = 0; blame->known && part < BLAME_PARTS; part++) {
        int64_t own = blame->own_ns[part] < blame->late_ns[part] ? blame->own_ns[part] : blame->late_ns[part];
        added += own > 0 ? own : 0;
    }
    return added;
}

/*
 * Where work waits for the operation before, nothing of an earlier lateness is left, and what is added adds up. Where
 * it does not, a rank is later and later, and so is the end of the operation before, which others are seen to wait for:
 * what counts is by how much the rank's own step is longer since such work. Where nobody else sends in an operation, as
 * between the stages of a pipeline, nothing tells that; there a rank works on what others send it, and so waits.
 */
static void save(struct costs *costs, const struct rank_operation *of, struct saving *saving)
{
    const struct blame *blame = &costs->blames[of - costs->job->rank_operations.items];
    bool waits = place_waits(costs, blame->place) || blame->longer_ns == INT64_MAX;
    int64_t added = added_ns(blame);
    bool is_late = added > 0 || (!waits && saving->open_ns > 0);
    int64_t alone = is_late ? alone_ns(costs->job, &costs->job->operations.items[of->operation], of) : 0;

    if (waits) {
        saving->closed_ns += saving->open_ns;
        saving->open_ns = smaller(added, alone);
        return;
    }
    int64_t here =
        alone == 0 ? 0 : smaller(larger(added, blame->longer_ns - saving->closed_ns), alone + saving->open_ns);
    saving->open_ns = larger(saving->open_ns, here);
}

static int64_t saved_ns(const struct saving *saving)
{
    return saving->closed_ns + saving->open_ns;
}

static struct rank_step *rank_step_of(struct job *job, const struct step *step, int32_t rank)
{
    size_t low = step->first_rank, high = step->first_rank + step->ranks;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (job->rank_steps.items[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < step->first_rank + step->ranks && job->rank_steps.items[low].rank == rank;
    return found ? &job->rank_steps.items[low] : NULL;
}

static void save_steps(struct costs *costs)
{
    struct job *job = costs->job;

    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        int32_t step = job->operations.items[of->operation].step;
        struct saving *saving = step < 0 ? NULL : saving_of(costs, of, step);
        if (saving == NULL)
            continue;
        int64_t before_ns = saved_ns(saving);
        save(costs, of, saving);
        saving->earlier = of;
        struct rank_step *own =
            saved_ns(saving) == before_ns ? NULL : rank_step_of(job, &job->steps.items[step], of->rank);
        if (own != NULL)
            own->cost_ns = saved_ns(saving);
    }
    for (size_t i = 0; i < job->rank_steps.count; i++) {
        struct rank_step *own = &job->rank_steps.items[i];
        int64_t duration = (int64_t)job->steps.items[own->step].duration_ns;
        own->cost_ns = own->cost_ns < duration ? own->cost_ns : duration;
    }
}

void cost_find(struct job *job, const struct blame *blames)
{
    struct costs costs = {.job = job, .blames = blames, .ranks = ranks_of(job)};

    costs.savings = array_zeroed((costs.ranks + 1) * sizeof *costs.savings);
    sample_steps(&costs);
    judge_places(&costs);
    for (size_t i = 0; i < costs.ranks; i++)
        costs.savings[i] = (struct saving){0};
    save_steps(&costs);
    array_fini(&costs.samples);
    array_fini(&costs.places);
    free(costs.savings);
}
