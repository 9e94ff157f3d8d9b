/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grouped calls wait here for the entry of their outermost group end, which is when the library is given them. Pure
 * logic; one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

struct call_groups;

int call_groups_create(struct call_groups **groups);
void call_groups_destroy(struct call_groups **groups);

typedef void call_emit(void *context, struct record_call *call);

/* Which group: a thread's, counted by its probes. */
struct call_group {
    uint32_t process;
    uint32_t tid;
    uint32_t number; /* counts the groups of the thread */
};

/*
 * Keeps a copy of the call; call->group is given by this module: counts the groups of all threads that held something.
 * Calls of an earlier group of this thread, whose end was lost, are emitted first with enqueued_ns 0 and
 * CALL_AFTER_LOSS. -ENOSPC when a group is larger than anything sensible, -ENOMEM: emit the call as it is.
 */
int call_hold(struct call_groups *groups, const struct call_group *group, struct record_call *call, call_emit *emit,
              void *context);

/* The group's end: emits its calls in their order with this time. */
void call_release(struct call_groups *groups, const struct call_group *group, uint64_t enqueued_ns, call_emit *emit,
                  void *context);

/* The thread or process is gone: its calls that still wait were never given to the library. Returns how many. */
size_t call_forget_thread(struct call_groups *groups, uint32_t tid);
size_t call_forget_process(struct call_groups *groups, uint32_t process);

/* Groups that wait, for tests of leaks. */
size_t call_groups_count(const struct call_groups *groups);
