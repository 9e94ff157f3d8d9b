/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is waited for when operations do not end: from a rank to the first of its operations that is open, to the one
 * that alone is silent there, to the first that is open of that one, and so on, until a rank is silent in its own
 * first. Invariant: ends, since no rank is come to twice.
 */
#include <stdlib.h>

#include "correlator/verdict/verdict_private.h"

struct search {
    const struct job *job;
    turn_list turns;
    ARRAY(int32_t) been; /* ranks */
};

/* A rank that held credit, or was given none, while others sent: part of it may also be what nobody saw. */
bool judge_sent_nothing(const struct record_rank_operation *record)
{
    return (record->flags & (RANK_OPERATION_EXPECTED_UNKNOWN | RANK_OPERATION_NO_WIRE)) == 0 &&
           record->observed_bytes == 0 && record->expected_bytes != 0;
}

/* Who sends over the wire sends a part of its own first, whatever its neighbours in the machine do. */
static bool sends_own_first(const struct operation *operation)
{
    return operation->algorithm == ALGORITHM_RING &&
           (operation->kind == OPERATION_ALL_REDUCE || operation->kind == OPERATION_ALL_GATHER ||
            operation->kind == OPERATION_REDUCE_SCATTER);
}

/* Whoever is next to it is there: data came to the rank, or credit. */
static bool could_send(const struct record_rank_operation *record)
{
    return record->received_bytes != 0 || record->held_ns != 0 || (record->flags & RANK_OPERATION_HOLDS_CREDIT) != 0;
}

int32_t judge_only_silent(const struct job *job, const struct operation *operation)
{
    bool is_for_all = operation->kind != OPERATION_GROUP;
    bool may_not_send = !is_for_all || sends_own_first(operation);
    int32_t found = -1;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        bool sends_nothing = may_not_send && of->record.expected_bytes == 0;
        if (of->record.observed_bytes != 0 || sends_nothing)
            continue;
        if (found >= 0 || !judge_sent_nothing(&of->record) || !could_send(&of->record))
            return -1;
        found = of->rank;
    }
    return !is_for_all || operation->ranks == (size_t)operation->ranks_count ? found : -1;
}

static bool is_open(const struct record_rank_operation *record)
{
    bool only_receives = record->group != 0 && record->expected_bytes == 0;

    return only_receives ? record->received_bytes == 0 : judge_sent_nothing(record);
}

/* The first of a rank's last operations that are all open, or -1; those without a wire say nothing. */
static int32_t first_open(const struct search *search, int32_t rank)
{
    int32_t found = -1;

    for (size_t i = search->turns.count; i-- > 0;) {
        const struct rank_operation *of = &search->job->rank_operations.items[search->turns.items[i].index];
        if (of->rank != rank || (of->record.flags & RANK_OPERATION_NO_WIRE) != 0)
            continue;
        if (!is_open(&of->record))
            return found;
        found = of->operation;
    }
    return found;
}

/* It has offered buffers in an operation that it gave later, so its host is none that waits. */
static bool offered_later(const struct search *search, const struct rank_operation *of)
{
    for (size_t i = 0; i < search->job->rank_operations.count; i++) {
        const struct rank_operation *other = &search->job->rank_operations.items[i];
        if (other->rank == of->rank && other->record.enqueued_ns > of->record.enqueued_ns &&
            other->record.host_ready_ns != 0)
            return true;
    }
    return false;
}

/*
 * Of a pair of which nothing is seen: who sends, if who receives has since offered buffers elsewhere. Nothing says that
 * the credit for this operation was not given.
 */
static int32_t silent_sender(const struct search *search, const struct operation *operation)
{
    const struct rank_operation *ranks = &search->job->rank_operations.items[operation->first_rank];

    if (operation->kind != OPERATION_GROUP || operation->ranks != 2)
        return -1;
    for (int i = 0; i < 2; i++)
        if (judge_sent_nothing(&ranks[i].record) && ranks[1 - i].record.expected_bytes == 0 &&
            offered_later(search, &ranks[1 - i]))
            return ranks[i].rank;
    return -1;
}

static int32_t silent_in(const struct search *search, int32_t operation)
{
    const struct operation *of = &search->job->operations.items[operation];
    int32_t silent = judge_only_silent(search->job, of);

    return silent >= 0 ? silent : silent_sender(search, of);
}

static bool was_there(struct search *search, int32_t rank)
{
    for (size_t i = 0; i < search->been.count; i++)
        if (search->been.items[i] == rank)
            return true;
    *(int32_t *)array_add(&search->been) = rank;
    return false;
}

bool judge_find_silent(const struct job *job, int32_t operation, struct silence *silence)
{
    struct search search = {.job = job};
    bool found = false;
    int32_t rank = judge_only_silent(job, &job->operations.items[operation]);

    turn_list_all(&search.turns, job);
    while (rank >= 0 && !found && !was_there(&search, rank)) {
        int32_t first = first_open(&search, rank);
        int32_t silent = first < 0 ? -1 : silent_in(&search, first);
        found = silent == rank;
        *silence = (struct silence){first, rank};
        rank = silent;
    }
    array_fini(&search.turns);
    array_fini(&search.been);
    return found;
}
