/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * First signs of failures. Invariant: a cause is told once a communicator, and once a process where no communicator is
 * known; warnings so often as FAILURE_WARNINGS_MAX says.
 */
#include "host/tracker/tracker_private.h"

#include <string.h>

#include "host/tracker/communicator.h"
#include "host/tracker/lineage.h"

#define FAILURE_WARNINGS_MAX 8

/* Whether this is the first of its kind there. */
static bool is_first(struct job_process *process, struct communicator *communicator, uint32_t cause)
{
    uint32_t *seen = communicator != NULL ? &communicator->failures : &process->failures;
    const bool first = (*seen & 1u << cause) == 0;
    *seen |= 1u << cause;
    return first;
}

void tracker_fail(struct tracker *tracker, struct job_process *process, struct record_failure *failure)
{
    struct communicator *communicator = communicator_by_number(tracker->communicators, failure->communicator);
    if (failure->cause != FAILURE_WARNING && !is_first(process, communicator, failure->cause))
        return;
    failure->header.source = process->record.process;
    tracker_count(tracker, COUNT_FAILURES);
    tracker_publish(tracker, RECORD_FAILURE, failure, sizeof *failure);
}

static uint32_t communicator_of(const struct tracker *tracker, const struct job_process *process, uint64_t pointer)
{
    const struct communicator *communicator =
        communicator_by_pointer(tracker->communicators, process->record.process, pointer);
    return communicator == NULL ? 0 : communicator->record.communicator;
}

void tracker_on_failure(struct tracker *tracker, const void *bytes)
{
    const struct event_failure *event = bytes;
    struct job_process *process = tracker_process(tracker, &event->header);
    const bool warning = event->cause == EVENT_FAILURE_WARNING;
    if (process == NULL || (warning && process->warnings++ >= FAILURE_WARNINGS_MAX))
        return;
    struct record_failure failure = {
        .at_ns = event->header.at_ns,
        .communicator = warning ? lineage_communicator(tracker->lineage, process->record.process, event->header.tid)
                                : communicator_of(tracker, process, event->communicator),
        .cause = warning ? FAILURE_WARNING : FAILURE_ASYNC_ERROR,
        .result = event->result,
        .tid = event->header.tid,
    };
    _Static_assert(sizeof failure.text == sizeof event->text, "text");
    memcpy(failure.text, event->text, sizeof failure.text);
    tracker_fail(tracker, process, &failure);
}
