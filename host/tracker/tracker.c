/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From events to records: gives each event to the subject that takes it (event.def), and tells all subjects
 * (subject.def) what concerns all. Invariant: what a record claims was seen.
 */
#include "host/tracker/tracker_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/log.h"

static const struct tracker_subject *const subjects[] = {
#define SUBJECT(name) &tracker_subject_##name,
#include "host/tracker/subject.def"
#undef SUBJECT
};
#define SUBJECTS (sizeof subjects / sizeof subjects[0])

static const struct {
    size_t length_bytes;
    void (*take)(struct tracker *tracker, const void *event);
} handlers[] = {
#define EVENT(kind, structure, function) [EVENT_##kind] = {sizeof(struct structure), tracker_##function},
#include "host/tracker/event.def"
#undef EVENT
};

void tracker_count(struct tracker *tracker, enum host_counter counter)
{
    counter_add(tracker->counters, counter, 1);
}

void tracker_publish(struct tracker *tracker, enum record_kind kind, const void *record, size_t record_bytes)
{
    uint8_t copy[512] __attribute__((aligned(8)));
    memcpy(copy, record, record_bytes);
    tracker->system.publish(tracker->system.context, kind, copy);
}

void tracker_event(struct tracker *tracker, const void *event, size_t length_bytes)
{
    const struct event_header *header = event;
    if (length_bytes < sizeof *header || header->kind >= sizeof handlers / sizeof handlers[0] ||
        handlers[header->kind].take == NULL || length_bytes < handlers[header->kind].length_bytes)
        return;
    tracker_count(tracker, COUNT_EVENTS);
    tracker_lost(tracker, header->lost, header->at_ns);
    tracker->last_ns = header->at_ns;
    handlers[header->kind].take(tracker, event);
}

/* ---- what happens to all subjects ---- */

void tracker_lose(struct tracker *tracker)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        if (subjects[i]->lose != NULL)
            subjects[i]->lose(tracker);
}

void tracker_end_thread(struct tracker *tracker, uint32_t tid)
{
    for (size_t i = SUBJECTS; i-- > 0;)
        if (subjects[i]->end_thread != NULL)
            subjects[i]->end_thread(tracker, tid);
}

void tracker_end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    for (size_t i = SUBJECTS; i-- > 0;)
        if (subjects[i]->end_process != NULL)
            subjects[i]->end_process(tracker, process, at_ns);
}

void tracker_tick(struct tracker *tracker, uint64_t now_ns)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        if (subjects[i]->tick != NULL)
            subjects[i]->tick(tracker, now_ns);
}

void tracker_describe(struct tracker *tracker)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        if (subjects[i]->describe != NULL)
            subjects[i]->describe(tracker);
}

size_t tracker_size(const struct tracker *tracker)
{
    size_t size = 0;
    for (size_t i = 0; i < SUBJECTS; i++)
        if (subjects[i]->size != NULL)
            size += subjects[i]->size(tracker);
    return size;
}

/* ---- the tracker ---- */

static int create_subjects(struct tracker *tracker)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        const int error = subjects[i]->create == NULL ? 0 : subjects[i]->create(tracker);
        if (error != 0)
            return error;
    }
    return 0;
}

int tracker_create(struct tracker **tracker, const struct tracker_options *options)
{
    struct tracker *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the tables of processes");
    fresh->system = options->system;
    fresh->counters = options->counters;
    fresh->unique = options->unique;
    fresh->last_ns = options->started_ns;
    const int error = create_subjects(fresh);
    if (error != 0) {
        tracker_destroy(&fresh);
        return log_error_return(error, "no memory for the tables of processes");
    }
    *tracker = fresh;
    return 0;
}

void tracker_destroy(struct tracker **tracker)
{
    if (*tracker == NULL)
        return;
    for (size_t i = SUBJECTS; i-- > 0;)
        if (subjects[i]->destroy != NULL)
            subjects[i]->destroy(*tracker);
    free(*tracker);
    *tracker = NULL;
}
