/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators: made, bound to their ncclComm_t, ended; and which threads serve them. Invariant: a communicator that
 * is in the table has been published, and its last record has its end.
 */
#include "host/tracker/tracker_private.h"

#include <string.h>

#include "host/tracker/communicator.h"
#include "host/tracker/lineage.h"

#define COMMUNICATORS_MAX  16384
#define THREADS_MAX        65536
#define RESULT_IN_PROGRESS 7 /* ncclInProgress */

static void publish_communicator(struct tracker *tracker, struct communicator *communicator)
{
    const struct job_process *process = job_by_number(tracker->jobs, communicator->record.process);
    if (process != NULL)
        communicator->record.library_version = process->version;
    tracker_publish(tracker, RECORD_COMMUNICATOR, &communicator->record, sizeof communicator->record);
}

/* ---- making ---- */

/* What tells a child from the others that the same call makes of its parent. */
static void identify_child(struct communicator *communicator, const struct communicator *parent,
                           const struct event_init *event)
{
    static const char grow[8] = "grow";
    const uint32_t excluded = event->ranks_count > 0 ? (uint32_t)event->ranks_count : 0;
    switch (event->creator) {
    case CREATOR_SPLIT:
        communicator_identify_child(communicator, parent, &event->color, sizeof event->color);
        break;
    case CREATOR_SHRINK:
        if (excluded <= EVENT_EXCLUDED_MAX)
            communicator_identify_child(communicator, parent, event->id, sizeof event->id);
        break;
    default:
        communicator_identify_child(communicator, parent, grow, sizeof grow);
    }
}

/* Ranks of a shrunk communicator keep their order. */
static void rank_shrunk(struct communicator *communicator, const struct communicator *parent,
                        const struct event_init *event)
{
    int32_t excluded[EVENT_EXCLUDED_MAX];
    const int32_t count = event->ranks_count;
    if (count < 0 || count > EVENT_EXCLUDED_MAX || parent->record.rank < 0 || parent->record.ranks_count <= count)
        return;
    memcpy(excluded, event->id, sizeof excluded);
    int32_t rank = parent->record.rank;
    for (int32_t i = 0; i < count; i++)
        rank -= excluded[i] < parent->record.rank;
    communicator->record.rank = rank;
    communicator->record.ranks_count = parent->record.ranks_count - count;
}

static void describe_child(struct tracker *tracker, struct communicator *communicator, const struct event_init *event)
{
    struct communicator *parent =
        communicator_by_pointer(tracker->communicators, communicator->record.process, event->parent);
    communicator->record.color = event->color;
    communicator->record.key = event->key;
    if (parent == NULL)
        return;
    communicator->record.parent = parent->record.communicator;
    communicator->record.child = parent->children++;
    identify_child(communicator, parent, event);
    if (event->creator == CREATOR_SHRINK)
        rank_shrunk(communicator, parent, event);
}

/* All ranks of ncclCommInitAll are in this process: what names it is the call. */
static void describe_all(struct communicator *communicator, const struct event_init *event, uint32_t index,
                         uint64_t unique)
{
    const uint64_t name[3] = {unique, event->header.at_ns, (uint64_t)event->header.tgid << 32 | event->header.tid};
    communicator_identify(communicator, IDENTITY_OF_CALL, name, sizeof name);
    communicator->record.rank = (int32_t)index;
    communicator->record.ranks_count = event->ranks_count;
}

static void describe_named(struct communicator *communicator, const struct event_init *event)
{
    if (event->has_id)
        communicator_identify(communicator, IDENTITY_OF_ID, event->id, sizeof event->id);
    communicator->record.rank = event->rank;
    communicator->record.ranks_count = event->ranks_count;
}

static void describe(struct tracker *tracker, struct communicator *communicator, const struct event_init *event,
                     uint32_t index)
{
    communicator->record.created_ns = event->header.at_ns;
    communicator->record.creator = event->creator;
    switch (event->creator) {
    case CREATOR_INIT_ALL:
        describe_all(communicator, event, index, tracker->unique);
        break;
    case CREATOR_SPLIT:
    case CREATOR_SHRINK:
        describe_child(tracker, communicator, event);
        break;
    case CREATOR_GROW: /* ranks that join have the id and no parent, the others a parent and mostly no id */
        if (event->parent != 0)
            describe_child(tracker, communicator, event);
        describe_named(communicator, event);
        break;
    default:
        describe_named(communicator, event);
    }
}

static void add_communicator(struct tracker *tracker, const struct job_process *process, const struct event_init *event,
                             uint32_t index)
{
    const struct communicator_call call = {event->header.tid, index, event->header.at_ns};
    struct communicator *communicator;
    if (communicator_add(tracker->communicators, process->record.process, &call, &communicator) != 0) {
        tracker_refuse(tracker, COUNT_COMMUNICATORS_REFUSED);
        return;
    }
    tracker_count(tracker, COUNT_COMMUNICATORS);
    describe(tracker, communicator, event, index);
    publish_communicator(tracker, communicator);
    if (lineage_expect(tracker->lineage, process->record.process, event->header.tid,
                       communicator->record.communicator) != 0)
        tracker_refuse(tracker, COUNT_THREADS_REFUSED);
}

void tracker_on_init(struct tracker *tracker, const void *bytes)
{
    const struct event_init *event = bytes;
    const struct job_process *process = tracker_process(tracker, &event->header);
    if (process == NULL)
        return;
    const uint32_t wanted = event->creator == CREATOR_INIT_ALL ? (uint32_t)event->ranks_count : 1;
    for (uint32_t i = 0; i < wanted && i < EVENT_PENDING_MAX; i++)
        add_communicator(tracker, process, event, i);
    if (!event->grouped)
        lineage_open(tracker->lineage, event->header.tid, event->nonblocking);
    if (event->creator == CREATOR_INIT_ALL)
        lineage_skip(tracker->lineage, event->header.tid);
}

/* It is the communicator's end, or it never came to be. */
static void drop_communicator(struct tracker *tracker, struct communicator *communicator, uint64_t at_ns,
                              enum communicator_ending ending)
{
    communicator->record.destroyed_ns = at_ns;
    communicator->record.ending = (uint8_t)ending;
    publish_communicator(tracker, communicator);
    communicator_remove(tracker->communicators, communicator);
}

void tracker_on_pointer(struct tracker *tracker, const void *bytes)
{
    const struct event_pointer *event = bytes;
    const struct communicator_call call = {event->header.tid, event->index, event->entered_ns};
    struct communicator *communicator = communicator_by_call(tracker->communicators, &call);
    if (communicator == NULL || event->pointer == 0)
        return;
    struct communicator *older = communicator_bind(tracker->communicators, communicator, event->pointer);
    if (older != NULL)
        drop_communicator(tracker, older, communicator->record.created_ns, COMMUNICATOR_REPLACED);
    if (!communicator->is_awaited)
        return;
    communicator->is_awaited = false;
    communicator->record.ready_ns = event->header.at_ns;
    publish_communicator(tracker, communicator);
}

/* The call that makes it has returned. */
static void finish_communicator(struct tracker *tracker, struct communicator *communicator, int32_t result,
                                uint64_t at_ns)
{
    const struct record_communicator *record = &communicator->record;
    if (result != 0 && result != RESULT_IN_PROGRESS) {
        drop_communicator(tracker, communicator, at_ns, COMMUNICATOR_REFUSED);
    } else if (record->pointer != 0) {
        communicator->record.ready_ns = at_ns;
        publish_communicator(tracker, communicator);
    } else if (record->creator == COMMUNICATOR_BY_SPLIT && record->color == COLOR_NONE) {
        drop_communicator(tracker, communicator, at_ns, COMMUNICATOR_NO_PART);
    } else if (result == RESULT_IN_PROGRESS) {
        communicator->is_awaited = true;
    } else {
        drop_communicator(tracker, communicator, at_ns, COMMUNICATOR_REFUSED);
    }
}

/* The calls of the thread's window have returned: its communicators are ready, or were not made. */
static void finish_window(struct tracker *tracker, const struct event_header *header, int32_t result)
{
    const uint32_t *numbers = NULL;
    const size_t numbers_count = lineage_expected(tracker->lineage, header->tid, &numbers);
    for (size_t i = 0; i < numbers_count; i++) {
        struct communicator *communicator = communicator_by_number(tracker->communicators, numbers[i]);
        if (communicator != NULL)
            finish_communicator(tracker, communicator, result, header->at_ns);
    }
    lineage_close(tracker->lineage, header->tid);
}

void tracker_on_init_return(struct tracker *tracker, const void *bytes)
{
    const struct event_init_return *event = bytes;
    if (!event->grouped) {
        finish_window(tracker, &event->header, event->result);
        return;
    }
    if (event->result == 0 || event->result == RESULT_IN_PROGRESS)
        return;
    const struct communicator_call call = {event->header.tid, 0, event->entered_ns};
    struct communicator *communicator = communicator_by_call(tracker->communicators, &call);
    if (communicator == NULL)
        return;
    lineage_unexpect(tracker->lineage, event->header.tid);
    drop_communicator(tracker, communicator, event->header.at_ns, COMMUNICATOR_REFUSED);
}

void tracker_on_group_return(struct tracker *tracker, const void *bytes)
{
    const struct event_group *event = bytes;
    tracker_calls_return(tracker, event);
    finish_window(tracker, &event->header, event->result);
}

void tracker_communicators_begin(struct tracker *tracker, const struct event_group *event)
{
    if (event->inits != 0)
        lineage_open(tracker->lineage, event->header.tid, event->nonblocking);
}

static void fail(struct tracker *tracker, const struct communicator *communicator, const struct event_destroy *event)
{
    struct job_process *process = job_by_number(tracker->jobs, communicator->record.process);
    struct record_failure failure = {
        .at_ns = event->header.at_ns,
        .communicator = communicator->record.communicator,
        .cause = event->farewell == FAREWELL_ABORT ? FAILURE_ABORTED : FAILURE_REVOKED,
        .tid = event->header.tid,
    };
    if (process != NULL)
        tracker_fail(tracker, process, &failure);
}

static void say_farewell(struct tracker *tracker, struct communicator *communicator, const struct event_destroy *event)
{
    if (event->farewell == FAREWELL_ABORT || event->farewell == FAREWELL_REVOKE)
        fail(tracker, communicator, event);
    switch (event->farewell) {
    case FAREWELL_FINALIZE:
    case FAREWELL_REVOKE:
        communicator->record.flags |=
            event->farewell == FAREWELL_REVOKE ? COMMUNICATOR_REVOKED : COMMUNICATOR_FINALIZED;
        publish_communicator(tracker, communicator);
        break;
    default:
        drop_communicator(tracker, communicator, event->header.at_ns,
                          event->farewell == FAREWELL_ABORT ? COMMUNICATOR_ABORTED : COMMUNICATOR_DESTROYED);
    }
}

void tracker_on_destroy(struct tracker *tracker, const void *bytes)
{
    const struct event_destroy *event = bytes;
    const struct job_process *process = tracker_process(tracker, &event->header);
    struct communicator *communicator =
        process == NULL ? NULL
                        : communicator_by_pointer(tracker->communicators, process->record.process, event->communicator);
    if (communicator != NULL)
        say_farewell(tracker, communicator, event);
}

/* ---- first seen in a call ---- */

/* First seen in a call: who serves it is not known, so no queue pair of this process can be called foreign. */
static struct communicator *add_late(struct tracker *tracker, struct job_process *process, uint64_t pointer)
{
    struct communicator *communicator;
    if (communicator_add(tracker->communicators, process->record.process, NULL, &communicator) != 0) {
        tracker_refuse(tracker, COUNT_COMMUNICATORS_REFUSED);
        return NULL;
    }
    tracker_count(tracker, COUNT_COMMUNICATORS);
    tracker_count(tracker, COUNT_COMMUNICATORS_LATE);
    communicator->record.flags = COMMUNICATOR_LATE;
    communicator->calls_missed = true;
    communicator_bind(tracker->communicators, communicator, pointer);
    publish_communicator(tracker, communicator);
    process->lineage_complete = false;
    tracker_queue_pairs_disown(tracker, process->record.process);
    return communicator;
}

struct communicator *tracker_communicator(struct tracker *tracker, struct job_process *process, uint64_t pointer)
{
    struct communicator *communicator =
        communicator_by_pointer(tracker->communicators, process->record.process, pointer);
    return communicator != NULL ? communicator : add_late(tracker, process, pointer);
}

/* ---- what the library itself notes ---- */

static bool contradicts(const struct record_communicator *record, const struct event_communicator *event)
{
    return (record->rank >= 0 && record->rank != event->rank) ||
           (record->ranks_count != 0 && record->ranks_count != event->ranks_count);
}

static void take_note(struct communicator *communicator, const struct event_communicator *event)
{
    struct record_communicator *record = &communicator->record;
    record->hash = event->hash;
    record->rank = event->rank;
    record->ranks_count = event->ranks_count;
    record->cuda_device = event->cuda_device;
    if (record->identity_kind == IDENTITY_UNKNOWN && record->hash != 0)
        communicator_identify_by_hash(communicator);
}

/* The communicator that the note is of: another hash in the same place is another one, and the older's end was lost. */
static struct communicator *noted_communicator(struct tracker *tracker, struct job_process *process,
                                               const struct event_communicator *event)
{
    struct communicator *communicator =
        communicator_by_pointer(tracker->communicators, process->record.process, event->pointer);
    if (communicator != NULL && communicator->record.hash != 0 && communicator->record.hash != event->hash) {
        drop_communicator(tracker, communicator, event->header.at_ns, COMMUNICATOR_REPLACED);
        communicator = NULL;
    }
    return communicator != NULL ? communicator : add_late(tracker, process, event->pointer);
}

void tracker_on_communicator(struct tracker *tracker, const void *bytes)
{
    const struct event_communicator *event = bytes;
    struct job_process *process = tracker_process(tracker, &event->header);
    struct communicator *communicator = process == NULL ? NULL : noted_communicator(tracker, process, event);
    if (communicator == NULL || communicator->record.hash != 0)
        return;
    if (contradicts(&communicator->record, event)) {
        tracker_count(tracker, COUNT_NOTES_CONTRADICTED);
        return;
    }
    take_note(communicator, event);
    publish_communicator(tracker, communicator);
}

/* ---- threads ---- */

void tracker_on_thread_fork(struct tracker *tracker, const void *bytes)
{
    const struct event_fork *event = bytes;
    const struct job_process *process = job_find(tracker->jobs, event->header.tgid);
    if (process != NULL &&
        lineage_fork(tracker->lineage, process->record.process, event->header.tid, event->child) != 0)
        tracker_refuse(tracker, COUNT_THREADS_REFUSED);
}

/* ---- the subject ---- */

static int create(struct tracker *tracker)
{
    const int error = communicator_table_create(&tracker->communicators, COMMUNICATORS_MAX);
    return error != 0 ? error : lineage_create(&tracker->lineage, THREADS_MAX);
}

static void destroy(struct tracker *tracker)
{
    lineage_destroy(&tracker->lineage);
    communicator_table_destroy(&tracker->communicators);
}

static void mark_calls_missed(void *context, struct communicator *communicator)
{
    (void)context;
    communicator->calls_missed = true;
}

static void lose(struct tracker *tracker)
{
    communicator_each(tracker->communicators, mark_calls_missed, NULL);
    lineage_break(tracker->lineage);
}

static void end_thread(struct tracker *tracker, uint32_t tid)
{
    lineage_exit(tracker->lineage, tid);
}

struct ending {
    struct tracker *tracker;
    uint32_t process;
    uint64_t at_ns;
};

static void end_communicator(void *context, struct communicator *communicator)
{
    const struct ending *ending = context;
    if (communicator->record.process == ending->process)
        drop_communicator(ending->tracker, communicator, ending->at_ns, COMMUNICATOR_PROCESS);
}

static void end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    struct ending ending = {.tracker = tracker, .process = process->record.process, .at_ns = at_ns};
    communicator_each(tracker->communicators, end_communicator, &ending);
    lineage_forget_process(tracker->lineage, ending.process);
}

static void describe_communicator(void *context, struct communicator *communicator)
{
    publish_communicator(context, communicator);
}

static void describe_again(struct tracker *tracker)
{
    communicator_each(tracker->communicators, describe_communicator, tracker);
}

static size_t size(const struct tracker *tracker)
{
    return communicator_count(tracker->communicators) + lineage_count(tracker->lineage);
}

const struct tracker_subject tracker_subject_communicator = {
    .create = create,
    .destroy = destroy,
    .lose = lose,
    .end_thread = end_thread,
    .end_process = end_process,
    .describe = describe_again,
    .size = size,
};
