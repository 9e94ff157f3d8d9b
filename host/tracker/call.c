/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of calls. Invariant: a thread has at most one group waiting, and it is not empty.
 */
#include "host/tracker/call.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

#define GROUP_CALLS_MAX 65536

struct waiting {
    uint32_t tid;
    uint32_t process;
    uint32_t thread_number; /* call_group.number */
    uint32_t number;        /* record_call.group */
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
    waiting->number = ++groups->last_number;
    HASH_ADD(hh, groups->threads, tid, sizeof waiting->tid, waiting);
    return waiting;
}

static int waiting_reserve(struct waiting *waiting)
{
    if (waiting->count < waiting->capacity)
        return 0;
    if (waiting->count >= GROUP_CALLS_MAX)
        return -ENOSPC;
    const size_t capacity = waiting->capacity == 0 ? 16 : 2 * waiting->capacity;
    struct record_call *calls = realloc(waiting->calls, capacity * sizeof *calls);
    if (calls == NULL)
        return -ENOMEM;
    waiting->calls = calls;
    waiting->capacity = capacity;
    return 0;
}

static void waiting_emit(struct call_groups *groups, struct waiting *waiting, uint64_t enqueued_ns, uint8_t flags,
                         call_emit *emit, void *context)
{
    for (size_t i = 0; i < waiting->count; i++) {
        waiting->calls[i].enqueued_ns = enqueued_ns;
        waiting->calls[i].flags |= flags;
        emit(context, &waiting->calls[i]);
    }
    waiting_remove(groups, waiting);
}

int call_hold(struct call_groups *groups, const struct call_group *group, struct record_call *call, call_emit *emit,
              void *context)
{
    struct waiting *waiting = waiting_find(groups, group->tid);
    if (waiting != NULL && (waiting->thread_number != group->number || waiting->process != group->process)) {
        waiting_emit(groups, waiting, 0, CALL_AFTER_LOSS, emit, context);
        waiting = NULL;
    }
    if (waiting == NULL)
        waiting = waiting_add(groups, group);
    if (waiting == NULL)
        return -ENOMEM;
    call->group = waiting->number;
    const int error = waiting_reserve(waiting);
    if (error != 0)
        return error;
    waiting->calls[waiting->count++] = *call;
    return 0;
}

void call_release(struct call_groups *groups, const struct call_group *group, uint64_t enqueued_ns, call_emit *emit,
                  void *context)
{
    struct waiting *waiting = waiting_find(groups, group->tid);
    if (waiting == NULL || waiting->process != group->process)
        return;
    if (waiting->thread_number == group->number)
        waiting_emit(groups, waiting, enqueued_ns, 0, emit, context);
    else
        waiting_emit(groups, waiting, 0, CALL_AFTER_LOSS, emit, context);
}

size_t call_forget_thread(struct call_groups *groups, uint32_t tid)
{
    struct waiting *waiting = waiting_find(groups, tid);
    if (waiting == NULL)
        return 0;
    const size_t count = waiting->count;
    waiting_remove(groups, waiting);
    return count;
}

size_t call_forget_process(struct call_groups *groups, uint32_t process)
{
    size_t count = 0;
    struct waiting *waiting;
    struct waiting *next;
    HASH_ITER(hh, groups->threads, waiting, next)
    {
        if (waiting->process != process)
            continue;
        count += waiting->count;
        waiting_remove(groups, waiting);
    }
    return count;
}

size_t call_groups_count(const struct call_groups *groups)
{
    return HASH_COUNT(groups->threads);
}
