/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of calls; a call outside of groups is a group of its own with number 0, given to the library from the start.
 * Invariant: a thread has at most one group waiting, and it is not empty.
 */
#include "host/tracker/call.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <uthash.h>

#define GROUP_CALLS_MAX 65536

struct waiting {
    uint32_t tid;
    uint32_t process;
    uint32_t thread_number; /* call_group.number */
    uint32_t number;        /* record_call.group */
    uint64_t given_ns;      /* to the library; 0 = not yet */
    bool told;              /* emitted before it returned */
    struct record_call *calls;
    size_t count;
    size_t capacity;
    UT_hash_handle hh;
};

struct call_groups {
    struct waiting *threads;
    uint32_t last_number;
};

int call_groups_create(struct call_groups **groups)
{
    *groups = calloc(1, sizeof **groups);
    return *groups == NULL ? -ENOMEM : 0;
}

static void waiting_remove(struct call_groups *groups, struct waiting *waiting)
{
    HASH_DEL(groups->threads, waiting);
    free(waiting->calls);
    free(waiting);
}

void call_groups_destroy(struct call_groups **groups)
{
    if (*groups == NULL)
        return;
    struct waiting *waiting;
    struct waiting *next;
    HASH_ITER(hh, (*groups)->threads, waiting, next)
    {
        waiting_remove(*groups, waiting);
    }
    free(*groups);
    *groups = NULL;
}

static struct waiting *waiting_find(const struct call_groups *groups, uint32_t tid)
{
    struct waiting *waiting;
    HASH_FIND(hh, groups->threads, &tid, sizeof tid, waiting);
    return waiting;
}

static struct waiting *waiting_add(struct call_groups *groups, const struct call_group *group)
{
    struct waiting *waiting = calloc(1, sizeof *waiting);
    if (waiting == NULL)
        return NULL;
    waiting->tid = group->tid;
    waiting->process = group->process;
    waiting->thread_number = group->number;
    waiting->number = group->number == 0 ? 0 : ++groups->last_number;
    HASH_ADD(hh, groups->threads, tid, sizeof waiting->tid, waiting);
    return waiting;
}

static int waiting_reserve(struct waiting *waiting)
{
    if (waiting->count < waiting->capacity)
        return 0;
    if (waiting->count >= GROUP_CALLS_MAX)
        return -ENOSPC;
    const size_t capacity = waiting->capacity == 0 ? 4 : 2 * waiting->capacity;
    struct record_call *calls = realloc(waiting->calls, capacity * sizeof *calls);
    if (calls == NULL)
        return -ENOMEM;
    waiting->calls = calls;
    waiting->capacity = capacity;
    return 0;
}

static void waiting_emit(struct waiting *waiting, call_emit *emit, void *context)
{
    for (size_t i = 0; i < waiting->count; i++) {
        struct record_call call = waiting->calls[i]; /* the receiver may write to it */
        emit(context, &call);
    }
    waiting->told = true;
}

/* What it waits for was lost, or will not be told. */
static void waiting_give_up(struct call_groups *groups, struct waiting *waiting, call_emit *emit, void *context)
{
    for (size_t i = 0; i < waiting->count && waiting->given_ns == 0; i++) {
        waiting->calls[i].enqueued_ns = 0;
        waiting->calls[i].flags |= CALL_AFTER_LOSS;
    }
    if (!waiting->told)
        waiting_emit(waiting, emit, context);
    waiting_remove(groups, waiting);
}

/* The thread's waiting group when it is this one; another one is given up. */
static struct waiting *waiting_of(struct call_groups *groups, const struct call_group *group, call_emit *emit,
                                  void *context)
{
    struct waiting *waiting = waiting_find(groups, group->tid);
    if (waiting == NULL)
        return NULL;
    if (waiting->thread_number == group->number && waiting->process == group->process &&
        (group->number != 0 || group->same))
        return waiting;
    waiting_give_up(groups, waiting, emit, context);
    return NULL;
}

int call_hold(struct call_groups *groups, const struct call_group *group, struct record_call *call, call_emit *emit,
              void *context)
{
    struct waiting *waiting = waiting_of(groups, group, emit, context);
    if (waiting == NULL)
        waiting = waiting_add(groups, group);
    if (waiting == NULL)
        return -ENOMEM;
    call->group = waiting->number;
    const int error = waiting_reserve(waiting);
    if (error != 0)
        return error;
    waiting->given_ns = group->number == 0 ? call->enqueued_ns : 0;
    waiting->calls[waiting->count++] = *call;
    return 0;
}

void call_release(struct call_groups *groups, const struct call_group *group, uint64_t enqueued_ns, call_emit *emit,
                  void *context)
{
    struct waiting *waiting = waiting_of(groups, group, emit, context);
    if (waiting == NULL)
        return;
    waiting->given_ns = enqueued_ns;
    for (size_t i = 0; i < waiting->count; i++)
        waiting->calls[i].enqueued_ns = enqueued_ns;
}

static uint32_t saturated(uint64_t from_ns, uint64_t to_ns)
{
    const uint64_t difference_ns = to_ns > from_ns ? to_ns - from_ns : 1;
    return difference_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)difference_ns;
}

/* 15 stands for all that is larger. */
static uint8_t result_bits(int32_t result)
{
    return (uint8_t)((result < 0 || result > 14 ? 15 : result + 1) << CALL_RESULT_SHIFT);
}

void call_return(struct call_groups *groups, const struct call_group *group, uint64_t returned_ns, int32_t result,
                 call_emit *emit, void *context)
{
    struct waiting *waiting = waiting_of(groups, group, emit, context);
    if (waiting == NULL || waiting->given_ns == 0)
        return;
    for (size_t i = 0; i < waiting->count; i++) {
        struct record_call *call = &waiting->calls[i];
        call->returned_after_ns = saturated(call->entered_ns, returned_ns);
        call->flags |= result_bits(result);
    }
    waiting_emit(waiting, emit, context);
    waiting_remove(groups, waiting);
}

void call_expire(struct call_groups *groups, uint64_t before_ns, call_emit *emit, void *context)
{
    struct waiting *waiting;
    struct waiting *next;
    HASH_ITER(hh, groups->threads, waiting, next)
    {
        if (!waiting->told && waiting->given_ns != 0 && waiting->given_ns < before_ns)
            waiting_emit(waiting, emit, context);
    }
}

uint32_t call_groups_number(struct call_groups *groups)
{
    return ++groups->last_number;
}

/* Returns how many were never given to the library. */
static size_t forget(struct call_groups *groups, struct waiting *waiting, call_emit *emit, void *context)
{
    const size_t count = waiting->given_ns == 0 ? waiting->count : 0;
    if (waiting->given_ns != 0 && !waiting->told)
        waiting_emit(waiting, emit, context);
    waiting_remove(groups, waiting);
    return count;
}

size_t call_forget_thread(struct call_groups *groups, uint32_t tid, call_emit *emit, void *context)
{
    struct waiting *waiting = waiting_find(groups, tid);
    return waiting == NULL ? 0 : forget(groups, waiting, emit, context);
}

size_t call_forget_process(struct call_groups *groups, uint32_t process, call_emit *emit, void *context)
{
    size_t count = 0;
    struct waiting *waiting;
    struct waiting *next;
    HASH_ITER(hh, groups->threads, waiting, next)
    {
        if (waiting->process == process)
            count += forget(groups, waiting, emit, context);
    }
    return count;
}

size_t call_groups_count(const struct call_groups *groups)
{
    return HASH_COUNT(groups->threads);
}
