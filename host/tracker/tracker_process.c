/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes: who they are, and their end, which ends all that is theirs. Invariant: a process is in the table from its
 * first event to its end, seen or found.
 */
#include "host/tracker/tracker_private.h"

#include <string.h>

static void publish_process(struct tracker *tracker, const struct job_process *process)
{
    tracker_publish(tracker, RECORD_PROCESS, &process->record, sizeof process->record);
}

struct telling {
    struct tracker *tracker;
    uint32_t process;
};

static void publish_fact(void *context, enum process_fact fact, unsigned index, struct text text)
{
    const struct telling *telling = context;
    struct record_process_fact record = {
        .process = telling->process,
        .fact = (uint16_t)fact,
        .index = (uint16_t)index,
        .text_bytes = (uint32_t)text.length,
    };
    memcpy(record.text, text.at, text.length < sizeof record.text ? text.length : sizeof record.text);
    tracker_publish(telling->tracker, RECORD_PROCESS_FACT, &record, sizeof record);
}

/* Read anew each time: kept here, the facts of many processes would take megabytes. */
static void publish_facts(struct tracker *tracker, const struct job_process *process)
{
    struct telling telling = {.tracker = tracker, .process = process->record.process};
    tracker->system.identify(tracker->system.context, process->record.pid, publish_fact, &telling);
}

struct job_process *tracker_process(struct tracker *tracker, const struct event_header *header)
{
    struct job_process *process = job_find(tracker->jobs, header->tgid);
    if (process != NULL)
        return process;
    process = job_process(tracker->jobs, header->tgid);
    if (process != NULL)
        publish_process(tracker, process);
    return process;
}

struct job_process *tracker_process_found(struct tracker *tracker, uint32_t pid)
{
    struct job_process *process = job_find(tracker->jobs, pid);
    if (process != NULL)
        return process;
    process = job_process(tracker->jobs, pid);
    if (process == NULL)
        return NULL;
    process->lineage_complete = false;
    tracker->system.follow(tracker->system.context, pid);
    publish_process(tracker, process);
    publish_facts(tracker, process);
    return process;
}

/* The process of this event: a new one where the older one's end was lost and its number is used again. */
static struct job_process *process_that_started(struct tracker *tracker, const struct event_process *event)
{
    struct job_process *process = job_find(tracker->jobs, event->header.tgid);
    if (process != NULL && process->record.started_ns != 0 && process->record.started_ns != event->started_ns)
        tracker_end_process(tracker, process, event->started_ns);
    return job_process(tracker->jobs, event->header.tgid);
}

void tracker_on_process(struct tracker *tracker, const void *bytes)
{
    const struct event_process *event = bytes;
    struct job_process *process = process_that_started(tracker, event);
    if (process == NULL || process->flags == event->flags)
        return;
    const bool known = process->flags != 0;
    process->flags = event->flags;
    process->record.started_ns = event->started_ns;
    _Static_assert(sizeof process->record.command == sizeof event->command, "command");
    memcpy(process->record.command, event->command, sizeof event->command);
    char path[sizeof process->record.library + 1] = "";
    if ((event->flags & PROCESS_COLLECTIVE) != 0 && process->record.library[0] == '\0') {
        const struct tracker_system *system = &tracker->system;
        process->splits = system->library_splits(system->context, event->library);
        process->version = system->library_version(system->context, event->library);
        system->library_path(system->context, event->header.tgid, event->library, path, sizeof path);
    }
    if (path[0] != '\0')
        memcpy(process->record.library, path, sizeof process->record.library);
    publish_process(tracker, process);
    if (!known)
        publish_facts(tracker, process);
}

void tracker_on_thread_exit(struct tracker *tracker, const void *bytes)
{
    const struct event_header *header = bytes;
    tracker_end_thread(tracker, header->tid);
}

void tracker_on_process_exit(struct tracker *tracker, const void *bytes)
{
    const struct event_header *header = bytes;
    struct job_process *process = job_find(tracker->jobs, header->tgid);
    if (process != NULL)
        tracker_end_process(tracker, process, header->at_ns);
}

static void end_if_gone(void *context, struct job_process *process)
{
    struct tracker *tracker = context;
    if (!tracker->system.is_running(tracker->system.context, process->record.pid))
        tracker_end_process(tracker, process, tracker->last_ns);
}

void tracker_settle(struct tracker *tracker)
{
    if (tracker->unsettled)
        job_each(tracker->jobs, end_if_gone, tracker);
    tracker->unsettled = false;
}

static void mark_lineage_broken(void *context, struct job_process *process)
{
    (void)context;
    process->lineage_complete = false;
}

static void describe_process(void *context, struct job_process *process)
{
    publish_process(context, process);
    publish_facts(context, process);
}

static int create(struct tracker *tracker)
{
    return job_table_create(&tracker->jobs);
}

static void destroy(struct tracker *tracker)
{
    job_table_destroy(&tracker->jobs);
}

static void lose(struct tracker *tracker)
{
    job_each(tracker->jobs, mark_lineage_broken, NULL);
    tracker->unsettled = true;
}

static void end(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    process->record.ended_ns = at_ns;
    publish_process(tracker, process);
    job_remove(tracker->jobs, process);
}

static void describe(struct tracker *tracker)
{
    job_each(tracker->jobs, describe_process, tracker);
}

static size_t size(const struct tracker *tracker)
{
    return job_count(tracker->jobs);
}

size_t tracker_processes(const struct tracker *tracker)
{
    return job_count(tracker->jobs);
}

const struct tracker_subject tracker_subject_process = {
    .create = create,
    .destroy = destroy,
    .lose = lose,
    .end_process = end,
    .describe = describe,
    .size = size,
};
