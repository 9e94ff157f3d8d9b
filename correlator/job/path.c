/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Critical paths. Invariant: the parts of a step lie one behind the other, from the start of the step to the end of its
 * last operation; each part's end is what the one behind began with.
 */
#include "correlator/job/path.h"

#include <stdlib.h>

#include "correlator/turn.h"

struct walk { /* through one step, backwards */
    struct job *job;
    const turn_list *turns;
    const size_t *turn_of; /* by rank operation */
    int32_t step;
    uint64_t start_ns;
    uint64_t at_ns;
    ARRAY(struct path_part) parts; /* the last one first */
};

static uint64_t over_ns(const struct rank_operation *of)
{
    return of->record.received_ns != 0 ? of->record.received_ns : of->record.end_ns;
}

/* Adds what lies between `from_ns` and where the walk is, and goes there. */
static void step_back(struct walk *walk, bool is_transfer, const struct rank_operation *of, uint64_t from_ns)
{
    if (from_ns < walk->start_ns)
        from_ns = walk->start_ns;
    if (from_ns >= walk->at_ns)
        return;
    *(struct path_part *)array_add(&walk->parts) = (struct path_part){
        .step = walk->step,
        .is_transfer = is_transfer,
        .rank = of->rank,
        .operation = of->operation,
        .from_ns = from_ns,
        .to_ns = walk->at_ns,
    };
    walk->at_ns = from_ns;
}

/* Without a host's word the first data is all that tells of an arrival. */
static uint64_t came_ns(const struct rank_operation *of)
{
    return of->arrival_ns != 0 ? of->arrival_ns : of->record.first_data_ns;
}

/* The rank that came last; `of` where nothing of that is known. */
static const struct rank_operation *last_to_arrive(const struct job *job, const struct rank_operation *of)
{
    const struct operation *operation = &job->operations.items[of->operation];
    const struct rank_operation *last = of;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++)
        if (came_ns(&job->rank_operations.items[i]) > came_ns(last))
            last = &job->rank_operations.items[i];
    return last;
}

/* The operation before this one of its rank, in the same step; NULL: there is none. */
static const struct rank_operation *before(const struct walk *walk, const struct rank_operation *of)
{
    const struct job *job = walk->job;
    size_t turn = walk->turn_of[of - job->rank_operations.items];

    while (turn > 0 && walk->turns->items[turn - 1].rank == of->rank) {
        const struct rank_operation *other = &job->rank_operations.items[walk->turns->items[--turn].index];
        if (job->operations.items[other->operation].step != walk->step)
            return NULL;
        if (over_ns(other) != 0)
            return other;
    }
    return NULL;
}

/* From the end of `of` back to the start of the step: each round goes to an operation before, of which there are
 * `rounds`. */
static void walk_back(struct walk *walk, const struct rank_operation *of, size_t rounds)
{
    walk->at_ns = over_ns(of);
    for (; of != NULL && walk->at_ns > walk->start_ns && rounds > 0; rounds--) {
        const struct rank_operation *last = last_to_arrive(walk->job, of);
        step_back(walk, true, of, came_ns(last) != 0 ? came_ns(last) : last->record.enqueued_ns);
        const struct rank_operation *earlier = before(walk, last);
        step_back(walk, false, last, earlier == NULL ? walk->start_ns : over_ns(earlier));
        of = earlier;
    }
}

static void keep_parts(struct walk *walk)
{
    for (size_t i = walk->parts.count; i-- > 0;)
        *(struct path_part *)array_add(&walk->job->path) = walk->parts.items[i];
    walk->parts.count = 0;
}

void path_find(struct job *job)
{
    size_t count = job->rank_operations.count;
    size_t *turn_of = array_zeroed((count + 1) * sizeof *turn_of);
    size_t *last = array_zeroed((job->steps.count + 1) * sizeof *last); /* of each step, plus 1 */
    turn_list turns = {0};

    turn_list_all(&turns, job);
    for (size_t i = 0; i < turns.count; i++)
        turn_of[turns.items[i].index] = i;
    for (size_t i = 0; i < count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        int32_t step = job->operations.items[of->operation].step;
        if (step >= 0 && (last[step] == 0 || over_ns(of) > over_ns(&job->rank_operations.items[last[step] - 1])))
            last[step] = i + 1;
    }
    struct walk walk = {.job = job, .turns = &turns, .turn_of = turn_of};
    for (size_t i = 0; i < job->steps.count; i++) {
        walk.step = (int32_t)i;
        walk.start_ns = job->steps.items[i].start_ns;
        if (last[i] != 0)
            walk_back(&walk, &job->rank_operations.items[last[i] - 1], job->steps.items[i].operations);
        keep_parts(&walk);
    }
    array_fini(&walk.parts);
    array_fini(&turns);
    free(last);
    free(turn_of);
}
