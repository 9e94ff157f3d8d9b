/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks that wait for each other where no NIC sees it (companion.h) are late together, whoever was first. Where the
 * host of one of them was late, the others are its victims; else it is one of those that were late alike. Invariant: of
 * such ranks no two have a verdict of a late GPU in one step.
 */
#include <stdlib.h>

#include "correlator/job/companion.h"
#include "correlator/verdict/verdict_private.h"

#define ALIKE_PARTS 2 /* a companion must be late by such a part of it */

struct sharing {
    struct judge *judge;
    struct companions *companions;
    bool *dropped; /* by verdict */
};

static bool is_late_host(const struct verdict *verdict)
{
    return verdict->peer_rank < 0 && verdict->class < VERDICT_HOST_PROXY; /* a proxy keeps nobody on NVLink waiting */
}

static bool is_late_gpu(const struct verdict *verdict)
{
    return verdict->peer_rank < 0 && verdict->class == VERDICT_GPU_LATE;
}

/* What the rank itself added there, as far as it was late for it. */
static int64_t late_ns(const struct judge *judge, size_t rank_operation)
{
    int64_t most_ns = 0;

    for (enum blame_part part = BLAME_HOST; rank_operation != COMPANION_NONE && part < BLAME_PARTS; part++) {
        const struct blame *blame = &judge->blames[rank_operation];
        int64_t own_ns = blame->own_ns[part] < blame->late_ns[part] ? blame->own_ns[part] : blame->late_ns[part];
        most_ns = blame->known && own_ns > most_ns ? own_ns : most_ns;
    }
    return most_ns;
}

/* The rank's verdict of a kind in a step, by so much at least, or NULL. */
static struct verdict *find_verdict(const struct sharing *sharing, int32_t step, int32_t rank,
                                    bool (*is)(const struct verdict *), uint64_t least_ns)
{
    const struct job *job = sharing->judge->job;

    for (size_t i = 0; i < job->verdicts.count; i++) {
        struct verdict *verdict = &job->verdicts.items[i];
        if (!sharing->dropped[i] && verdict->step == step && verdict->rank == rank && is(verdict) &&
            verdict->size_ns >= least_ns)
            return verdict;
    }
    return NULL;
}

static void drop(struct sharing *sharing, const struct verdict *verdict)
{
    sharing->dropped[verdict - sharing->judge->job->verdicts.items] = true;
}

/* True when a companion explains it: its host was late, or its GPU later by far. */
static bool is_victim(const struct sharing *sharing, const struct verdict *verdict, const companion_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        int32_t rank = list->items[i].rank;
        struct verdict *other =
            find_verdict(sharing, verdict->step, rank, is_late_host, verdict->size_ns / ALIKE_PARTS);
        if (other == NULL)
            other = find_verdict(sharing, verdict->step, rank, is_late_gpu, verdict->size_ns * ALIKE_PARTS);
        if (other == NULL)
            continue;
        judge_say(other, "; rank %d, which waits for it where no NIC sees it, was late with it", verdict->rank);
        return true;
    }
    return false;
}

/* Of companions that were late alike the first verdict stays. */
static void join(struct sharing *sharing, struct verdict *verdict, const companion_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct companion *companion = &list->items[i];
        if (late_ns(sharing->judge, companion->next) < (int64_t)verdict->size_ns / ALIKE_PARTS)
            continue;
        struct verdict *other = find_verdict(sharing, verdict->step, companion->rank, is_late_gpu, 0);
        if (other != NULL)
            drop(sharing, other);
        judge_add_candidate(verdict, companion->rank);
    }
}

static void share(struct sharing *sharing, size_t index)
{
    const struct job *job = sharing->judge->job;
    struct verdict *verdict = &job->verdicts.items[index];
    const struct rank_operation *of = judge_rank_in(job, verdict->operation, verdict->rank);
    companion_list list = {0};

    if (of == NULL)
        return;
    companions_find(sharing->companions, (size_t)(of - job->rank_operations.items), &list);
    if (is_victim(sharing, verdict, &list))
        drop(sharing, verdict);
    else
        join(sharing, verdict, &list);
    judge_say_candidates(verdict, "were late alike");
    array_fini(&list);
}

static void keep_others(struct job *job, const bool *dropped)
{
    size_t kept = 0;

    for (size_t i = 0; i < job->verdicts.count; i++) {
        if (dropped[i])
            verdict_fini(&job->verdicts.items[i]);
        else
            job->verdicts.items[kept++] = job->verdicts.items[i];
    }
    job->verdicts.count = kept;
}

static bool has_hidden(const struct job *job)
{
    for (size_t i = 0; i < job->operations.count; i++)
        if ((job->operations.items[i].flags & RANK_OPERATION_NO_WIRE) != 0)
            return true;
    return false;
}

void judge_shared(struct judge *judge)
{
    struct job *job = judge->job;

    if (job->verdicts.count == 0 || !has_hidden(job))
        return;
    struct sharing sharing = {.judge = judge, .companions = companions_create(job)};
    sharing.dropped = array_zeroed(job->verdicts.count * sizeof *sharing.dropped);
    for (size_t i = 0; i < job->verdicts.count; i++)
        if (!sharing.dropped[i] && is_late_gpu(&job->verdicts.items[i]))
            share(&sharing, i);
    keep_others(job, sharing.dropped);
    free(sharing.dropped);
    companions_destroy(sharing.companions);
}
