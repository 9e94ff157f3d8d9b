/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls wait here for what is still to be known of them: grouped ones for the entry of their outermost group end, which
 * is when the library is given them, and all for their return (of the group end, where they are grouped). Pure logic;
 * one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

struct call_groups;

int call_groups_create(struct call_groups **groups);
void call_groups_destroy(struct call_groups **groups);

typedef void call_emit(void *context, struct record_call *call);

/* Which group: a thread's, counted by its probes; number 0: a call outside of groups. */
struct call_group {
    uint32_t process;
    uint32_t tid;
    uint32_t number; /* counts the groups of the thread */
    bool same;       /* outside of groups: the same call as before, with another peer */
};

/*
 * Keeps a copy of the call until its return; of a grouped one call->group is given by this module: counts the groups of
 * all threads that held something. What the thread had waiting of another group is emitted first, with enqueued_ns 0
 * and CALL_AFTER_LOSS where that group's end was lost. -ENOSPC when a group is larger than anything sensible, -ENOMEM:
 * emit the call as it is.
 */
int call_hold(struct call_groups *groups, const struct call_group *group, struct record_call *call, call_emit *emit,
              void *context);

/* The group's end: its calls are given to the library at this time. */
void call_release(struct call_groups *groups, const struct call_group *group, uint64_t enqueued_ns, call_emit *emit,
                  void *context);

/* The call, or the group's end, has returned: emits what has waited for it. */
void call_return(struct call_groups *groups, const struct call_group *group, uint64_t returned_ns, int32_t result,
                 call_emit *emit, void *context);

/*
 * Emits, once, the calls that the library was given before `before_ns` and that have not returned. They are emitted
 * again when they do.
 */
void call_expire(struct call_groups *groups, uint64_t before_ns, call_emit *emit, void *context);

/* A number for a group that is made elsewhere. */
uint32_t call_groups_number(struct call_groups *groups);

/* The thread or process is gone: its calls that wait for their group's end were never given to the library; returns how
 * many. What the library was given and has not returned is emitted, unless it has been. */
size_t call_forget_thread(struct call_groups *groups, uint32_t tid, call_emit *emit, void *context);
size_t call_forget_process(struct call_groups *groups, uint32_t process, call_emit *emit, void *context);

/* Groups that wait, for tests of leaks. */
size_t call_groups_count(const struct call_groups *groups);
