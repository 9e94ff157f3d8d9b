/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From events to records. Invariant: what a record claims was seen: a queue pair has the communicator that its maker's
 * descent gives, and it is called foreign only when every birth of a serving thread in its process has been seen.
 */
#include "host/tracker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "host/call.h"
#include "host/communicator.h"
#include "host/counter.h"
#include "host/job.h"
#include "host/lineage.h"
#include "host/queue_pair.h"
#include "wire/log.h"
#include "wire/seal.h"

#define COMMUNICATORS_MAX  16384
#define QUEUE_PAIRS_MAX    262144
#define THREADS_MAX        65536
#define RESULT_IN_PROGRESS 7 /* ncclInProgress */

struct tracker {
    struct tracker_system system;
    uint64_t *counters;
    uint64_t unique;
    uint64_t last_ns; /* of the latest event */
    uint32_t lost;    /* events, as far as it has been told */
    bool unsettled;   /* the end of a process may have been lost */
    struct job_table *jobs;
    struct communicator_table *communicators;
    struct queue_pair_table *queue_pairs;
    struct lineage *lineage;
    struct call_groups *groups;
};

static void count(struct tracker *tracker, enum host_counter counter)
{
    counter_add(tracker->counters, counter, 1);
}

/* What has been published is the table's; the sink gets a copy to put its header on. */
static void publish(struct tracker *tracker, enum record_kind kind, const void *record, size_t record_bytes)
{
    uint8_t copy[512] __attribute__((aligned(8)));
    memcpy(copy, record, record_bytes);
    tracker->system.publish(tracker->system.context, kind, copy);
}

static void publish_process(struct tracker *tracker, const struct job_process *process)
{
    publish(tracker, RECORD_PROCESS, &process->record, sizeof process->record);
}

static void publish_communicator(struct tracker *tracker, const struct communicator *communicator)
{
    publish(tracker, RECORD_COMMUNICATOR, &communicator->record, sizeof communicator->record);
}

static void publish_queue_pair(struct tracker *tracker, const struct record_queue_pair *queue_pair)
{
    publish(tracker, RECORD_QUEUE_PAIR, queue_pair, sizeof *queue_pair);
}

static void publish_loss(struct tracker *tracker, enum loss_cause cause, uint64_t from_ns, uint64_t to_ns,
                         uint64_t lost)
{
    const struct record_loss loss = {.from_ns = from_ns, .to_ns = to_ns, .lost = lost, .cause = cause};
    publish(tracker, RECORD_LOSS, &loss, sizeof loss);
}

/* A table is full: said where it happens, and by name. */
static void refuse(struct tracker *tracker, enum host_counter counter)
{
    count(tracker, counter);
    publish_loss(tracker, LOSS_TABLE_FULL, tracker->last_ns, tracker->last_ns, 1);
}

static struct job_process *process_of(struct tracker *tracker, const struct event_header *header)
{
    struct job_process *process = job_find(tracker->jobs, header->tgid);
    if (process != NULL)
        return process;
    process = job_process(tracker->jobs, header->tgid);
    if (process != NULL)
        publish_process(tracker, process);
    return process;
}

/* ---- losses ---- */

static void mark_calls_missed(void *context, struct communicator *communicator)
{
    (void)context;
    communicator->calls_missed = true;
}

static void mark_lineage_broken(void *context, struct job_process *process)
{
    (void)context;
    process->lineage_complete = false;
}

void tracker_lost(struct tracker *tracker, uint32_t lost, uint64_t at_ns)
{
    const int32_t more = (int32_t)(lost - tracker->lost);
    if (more <= 0)
        return;
    tracker->lost = lost;
    counter_add(tracker->counters, COUNT_EVENTS_LOST, (uint64_t)more);
    publish_loss(tracker, LOSS_RING_FULL, tracker->last_ns, at_ns, (uint64_t)more);
    communicator_each(tracker->communicators, mark_calls_missed, NULL);
    job_each(tracker->jobs, mark_lineage_broken, NULL);
    lineage_break(tracker->lineage);
    tracker->unsettled = true;
}

/* ---- processes and threads ---- */

static void on_fork(struct tracker *tracker, const void *bytes)
{
    const struct event_fork *event = bytes;
    const struct job_process *process = job_find(tracker->jobs, event->header.tgid);
    if (process != NULL &&
        lineage_fork(tracker->lineage, process->record.process, event->header.tid, event->child) != 0)
        refuse(tracker, COUNT_THREADS_REFUSED);
}

static void on_thread_exit(struct tracker *tracker, const void *bytes)
{
    const struct event_header *header = bytes;
    lineage_exit(tracker->lineage, header->tid);
    counter_add(tracker->counters, COUNT_CALLS_UNFINISHED, call_forget_thread(tracker->groups, header->tid));
}

struct ending {
    struct tracker *tracker;
    uint32_t process;
    uint64_t at_ns;
};

static void end_communicator(void *context, struct communicator *communicator)
{
    const struct ending *ending = context;
    if (communicator->record.process != ending->process)
        return;
    communicator->record.destroyed_ns = ending->at_ns;
    publish_communicator(ending->tracker, communicator);
    communicator_remove(ending->tracker->communicators, communicator);
}

static void end_queue_pair(void *context, struct record_queue_pair *queue_pair)
{
    const struct ending *ending = context;
    if (queue_pair->process != ending->process)
        return;
    queue_pair->destroyed_ns = ending->at_ns;
    publish_queue_pair(ending->tracker, queue_pair);
    queue_pair_remove(ending->tracker->queue_pairs, queue_pair);
}

static void end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    struct ending ending = {.tracker = tracker, .process = process->record.process, .at_ns = at_ns};
    queue_pair_each(tracker->queue_pairs, end_queue_pair, &ending);
    communicator_each(tracker->communicators, end_communicator, &ending);
    lineage_forget_process(tracker->lineage, ending.process);
    counter_add(tracker->counters, COUNT_CALLS_UNFINISHED, call_forget_process(tracker->groups, ending.process));
    process->record.ended_ns = at_ns;
    publish_process(tracker, process);
    job_remove(tracker->jobs, process);
}

static void on_process_exit(struct tracker *tracker, const void *bytes)
{
    const struct event_header *header = bytes;
    struct job_process *process = job_find(tracker->jobs, header->tgid);
    if (process != NULL)
        end_process(tracker, process, header->at_ns);
}

static void end_if_gone(void *context, struct job_process *process)
{
    struct tracker *tracker = context;
    if (!tracker->system.is_running(tracker->system.context, process->record.pid))
        end_process(tracker, process, tracker->last_ns);
}

void tracker_settle(struct tracker *tracker)
{
    if (tracker->unsettled)
        job_each(tracker->jobs, end_if_gone, tracker);
    tracker->unsettled = false;
}

/* The process of this event: a new one where the older one's end was lost and its number is used again. */
static struct job_process *process_that_started(struct tracker *tracker, const struct event_process *event)
{
    struct job_process *process = job_find(tracker->jobs, event->header.tgid);
    if (process != NULL && process->record.started_ns != 0 && process->record.started_ns != event->started_ns)
        end_process(tracker, process, event->started_ns);
    return job_process(tracker->jobs, event->header.tgid);
}

static void on_process(struct tracker *tracker, const void *bytes)
{
    const struct event_process *event = bytes;
    struct job_process *process = process_that_started(tracker, event);
    if (process == NULL || process->flags == event->flags)
        return;
    process->flags = event->flags;
    process->record.started_ns = event->started_ns;
    _Static_assert(sizeof process->record.command == sizeof event->command, "command");
    memcpy(process->record.command, event->command, sizeof event->command);
    char path[sizeof process->record.library + 1] = "";
    if ((event->flags & PROCESS_COLLECTIVE) != 0 && process->record.library[0] == '\0')
        tracker->system.library_path(tracker->system.context, event->header.tgid, event->library, path, sizeof path);
    if (path[0] != '\0')
        memcpy(process->record.library, path, sizeof process->record.library);
    publish_process(tracker, process);
}

/* ---- communicators ---- */

static void describe_child(struct tracker *tracker, struct communicator *communicator, const struct event_init *event)
{
    struct communicator *parent =
        communicator_by_pointer(tracker->communicators, communicator->record.process, event->parent);
    communicator->record.color = event->color;
    communicator->record.key = event->key;
    if (parent == NULL)
        return;
    communicator->record.parent = parent->record.communicator;
    communicator_identify_child(communicator, parent, parent->children++, event->color);
}

/* All ranks of ncclCommInitAll are in this process: what names it is the call. */
static void describe_all(struct communicator *communicator, const struct event_init *event, uint32_t index,
                         uint64_t unique)
{
    const uint64_t name[3] = {unique, event->header.at_ns, (uint64_t)event->header.tgid << 32 | event->header.tid};
    communicator_identify(communicator, name, sizeof name);
    communicator->record.rank = (int32_t)index;
    communicator->record.ranks_count = event->ranks_count;
}

static void describe(struct tracker *tracker, struct communicator *communicator, const struct event_init *event,
                     uint32_t index)
{
    communicator->record.created_ns = event->header.at_ns;
    if (event->creator == CREATOR_SPLIT) {
        describe_child(tracker, communicator, event);
        return;
    }
    if (event->creator == CREATOR_INIT_ALL) {
        describe_all(communicator, event, index, tracker->unique);
        return;
    }
    communicator_identify(communicator, event->id, sizeof event->id);
    communicator->record.rank = event->rank;
    communicator->record.ranks_count = event->ranks_count;
}

static void add_communicator(struct tracker *tracker, const struct job_process *process, const struct event_init *event,
                             uint32_t index)
{
    const struct communicator_call call = {event->header.tid, index, event->header.at_ns};
    struct communicator *communicator;
    if (communicator_add(tracker->communicators, process->record.process, &call, &communicator) != 0) {
        refuse(tracker, COUNT_COMMUNICATORS_REFUSED);
        return;
    }
    count(tracker, COUNT_COMMUNICATORS);
    describe(tracker, communicator, event, index);
    publish_communicator(tracker, communicator);
    if (lineage_expect(tracker->lineage, process->record.process, event->header.tid,
                       communicator->record.communicator) != 0)
        refuse(tracker, COUNT_THREADS_REFUSED);
}

static void on_init(struct tracker *tracker, const void *bytes)
{
    const struct event_init *event = bytes;
    const struct job_process *process = process_of(tracker, &event->header);
    if (process == NULL)
        return;
    const uint32_t wanted = event->creator == CREATOR_INIT_ALL ? (uint32_t)event->ranks_count : 1;
    for (uint32_t i = 0; i < wanted && i < EVENT_PENDING_MAX; i++)
        add_communicator(tracker, process, event, i);
    if (!event->grouped)
        lineage_open(tracker->lineage, event->header.tid, event->nonblocking);
}

/* It is the communicator's end, or it never came to be. */
static void drop_communicator(struct tracker *tracker, struct communicator *communicator, uint64_t at_ns)
{
    communicator->record.destroyed_ns = at_ns;
    publish_communicator(tracker, communicator);
    communicator_remove(tracker->communicators, communicator);
}

static void on_pointer(struct tracker *tracker, const void *bytes)
{
    const struct event_pointer *event = bytes;
    const struct communicator_call call = {event->header.tid, event->index, event->entered_ns};
    struct communicator *communicator = communicator_by_call(tracker->communicators, &call);
    if (communicator == NULL || event->pointer == 0)
        return;
    struct communicator *older = communicator_bind(tracker->communicators, communicator, event->pointer);
    if (older != NULL)
        drop_communicator(tracker, older, communicator->record.created_ns);
}

/* The calls of the thread's window have returned: its communicators are ready, or were not made. */
static void finish_window(struct tracker *tracker, const struct event_header *header, int32_t result)
{
    const uint32_t *numbers = NULL;
    const size_t numbers_count = lineage_expected(tracker->lineage, header->tid, &numbers);
    for (size_t i = 0; i < numbers_count; i++) {
        struct communicator *communicator = communicator_by_number(tracker->communicators, numbers[i]);
        if (communicator == NULL)
            continue;
        if (communicator->record.pointer == 0 || (result != 0 && result != RESULT_IN_PROGRESS)) {
            drop_communicator(tracker, communicator, header->at_ns);
            continue;
        }
        communicator->record.ready_ns = header->at_ns;
        publish_communicator(tracker, communicator);
    }
    lineage_close(tracker->lineage, header->tid);
}

static void on_init_return(struct tracker *tracker, const void *bytes)
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
    drop_communicator(tracker, communicator, event->header.at_ns);
}

static void on_destroy(struct tracker *tracker, const void *bytes)
{
    const struct event_destroy *event = bytes;
    const struct job_process *process = process_of(tracker, &event->header);
    struct communicator *communicator =
        process == NULL ? NULL
                        : communicator_by_pointer(tracker->communicators, process->record.process, event->communicator);
    if (communicator != NULL)
        drop_communicator(tracker, communicator, event->header.at_ns);
}

/* ---- calls ---- */

static void publish_call(void *context, struct record_call *call)
{
    struct tracker *tracker = context;
    publish(tracker, RECORD_CALL, call, sizeof *call);
}

static void disown(void *context, struct record_queue_pair *queue_pair)
{
    const struct ending *late = context;
    if (queue_pair->process != late->process || (queue_pair->flags & QUEUE_PAIR_FOREIGN) == 0)
        return;
    queue_pair->flags &= ~(uint32_t)QUEUE_PAIR_FOREIGN;
    publish_queue_pair(late->tracker, queue_pair);
}

/* First seen in a call: who serves it is not known, so no queue pair of this process can be called foreign. */
static struct communicator *add_late(struct tracker *tracker, struct job_process *process, uint64_t pointer)
{
    struct communicator *communicator;
    if (communicator_add(tracker->communicators, process->record.process, NULL, &communicator) != 0) {
        refuse(tracker, COUNT_COMMUNICATORS_REFUSED);
        return NULL;
    }
    count(tracker, COUNT_COMMUNICATORS);
    count(tracker, COUNT_COMMUNICATORS_LATE);
    communicator->record.flags = COMMUNICATOR_LATE;
    communicator->calls_missed = true;
    communicator_bind(tracker->communicators, communicator, pointer);
    publish_communicator(tracker, communicator);
    process->lineage_complete = false;
    struct ending late = {.tracker = tracker, .process = process->record.process};
    queue_pair_each(tracker->queue_pairs, disown, &late);
    return communicator;
}

static struct communicator *called_communicator(struct tracker *tracker, struct job_process *process, uint64_t pointer)
{
    struct communicator *communicator =
        communicator_by_pointer(tracker->communicators, process->record.process, pointer);
    return communicator != NULL ? communicator : add_late(tracker, process, pointer);
}

static void on_call(struct tracker *tracker, const void *bytes)
{
    const struct event_call *event = bytes;
    count(tracker, COUNT_CALLS);
    struct job_process *process = process_of(tracker, &event->header);
    struct communicator *communicator =
        process == NULL || event->communicator == 0 ? NULL : called_communicator(tracker, process, event->communicator);
    uint64_t sequence;
    if (communicator == NULL || communicator_number_call(communicator, event->operation, event->peer, &sequence) != 0) {
        count(tracker, COUNT_CALLS_INVALID);
        return;
    }
    struct record_call call = {
        .header.source = communicator->record.communicator,
        .sequence = sequence,
        .count = event->count,
        .entered_ns = event->header.at_ns,
        .enqueued_ns = event->header.at_ns,
        .stream = event->stream,
        .peer = event->peer,
        .tid = event->header.tid,
        .operation = event->operation,
        .datatype = event->datatype,
        .reduction = event->reduction,
        .flags = (uint8_t)((event->group != 0 ? CALL_GROUPED : 0) | (communicator->calls_missed ? CALL_AFTER_LOSS : 0)),
    };
    const struct call_group group = {process->record.process, event->header.tid, event->group};
    if (event->group == 0 || call_hold(tracker->groups, &group, &call, publish_call, tracker) != 0)
        publish_call(tracker, &call);
}

static void on_group_end(struct tracker *tracker, const void *bytes)
{
    const struct event_group *event = bytes;
    const struct job_process *process = process_of(tracker, &event->header);
    if (process == NULL)
        return;
    const struct call_group group = {process->record.process, event->header.tid, event->group};
    call_release(tracker->groups, &group, event->header.at_ns, publish_call, tracker);
    if (event->inits != 0)
        lineage_open(tracker->lineage, event->header.tid, event->nonblocking);
}

static void on_group_return(struct tracker *tracker, const void *bytes)
{
    const struct event_group *event = bytes;
    finish_window(tracker, &event->header, event->result);
}

/* ---- queue pairs ---- */

static void own(struct tracker *tracker, const struct job_process *process, struct record_queue_pair *queue_pair)
{
    queue_pair->communicator = lineage_communicator(tracker->lineage, queue_pair->process, queue_pair->creator_tid);
    if (queue_pair->communicator != 0 || !process->lineage_complete)
        return;
    queue_pair->flags |= QUEUE_PAIR_FOREIGN;
    count(tracker, COUNT_QUEUE_PAIRS_FOREIGN);
}

static void on_queue_pair_create(struct tracker *tracker, const void *bytes)
{
    const struct event_queue_pair_create *event = bytes;
    const struct job_process *process = process_of(tracker, &event->header);
    if (process == NULL)
        return;
    struct record_queue_pair *queue_pair;
    struct record_queue_pair older;
    const int error = queue_pair_add(tracker->queue_pairs, process->record.process, event, &queue_pair, &older);
    if (older.queue_pair != 0) {
        older.destroyed_ns = event->header.at_ns;
        publish_queue_pair(tracker, &older);
    }
    if (error != 0) {
        refuse(tracker, COUNT_QUEUE_PAIRS_REFUSED);
        return;
    }
    count(tracker, COUNT_QUEUE_PAIRS);
    own(tracker, process, queue_pair);
    publish_queue_pair(tracker, queue_pair);
}

struct gid_question {
    const struct tracker *tracker;
    uint32_t pid;
};

static int read_gid(void *context, const char *device, unsigned port, unsigned index, uint8_t gid[ADDRESS_BYTES])
{
    const struct gid_question *question = context;
    const struct tracker_system *system = &question->tracker->system;
    return system->read_gid(system->context, question->pid, device, port, index, gid);
}

static struct record_queue_pair *known_queue_pair(struct tracker *tracker, const struct event_header *header,
                                                  uint64_t pointer)
{
    const struct job_process *process = job_find(tracker->jobs, header->tgid);
    struct record_queue_pair *queue_pair =
        process == NULL ? NULL : queue_pair_find(tracker->queue_pairs, process->record.process, pointer);
    if (queue_pair == NULL)
        count(tracker, COUNT_QUEUE_PAIRS_UNKNOWN);
    return queue_pair;
}

static void on_queue_pair_modify(struct tracker *tracker, const void *bytes)
{
    const struct event_queue_pair_modify *event = bytes;
    struct record_queue_pair *queue_pair = known_queue_pair(tracker, &event->header, event->pointer);
    if (queue_pair == NULL)
        return;
    struct gid_question question = {.tracker = tracker, .pid = event->header.tgid};
    if (queue_pair_modify(queue_pair, event, read_gid, &question) != 0)
        count(tracker, COUNT_GIDS_UNREADABLE);
    publish_queue_pair(tracker, queue_pair);
}

static void on_queue_pair_destroy(struct tracker *tracker, const void *bytes)
{
    const struct event_queue_pair_destroy *event = bytes;
    struct record_queue_pair *queue_pair = known_queue_pair(tracker, &event->header, event->pointer);
    if (queue_pair == NULL)
        return;
    queue_pair->destroyed_ns = event->header.at_ns;
    publish_queue_pair(tracker, queue_pair);
    queue_pair_remove(tracker->queue_pairs, queue_pair);
}

/* ---- all of it again ---- */

static void describe_process(void *context, struct job_process *process)
{
    publish_process(context, process);
}

static void describe_communicator(void *context, struct communicator *communicator)
{
    publish_communicator(context, communicator);
}

static void describe_queue_pair(void *context, struct record_queue_pair *queue_pair)
{
    publish_queue_pair(context, queue_pair);
}

void tracker_describe(struct tracker *tracker)
{
    job_each(tracker->jobs, describe_process, tracker);
    communicator_each(tracker->communicators, describe_communicator, tracker);
    queue_pair_each(tracker->queue_pairs, describe_queue_pair, tracker);
}

/* ---- the tracker ---- */

static const struct {
    size_t length_bytes;
    void (*handle)(struct tracker *tracker, const void *bytes);
} handlers[] = {
    [EVENT_PROCESS] = {sizeof(struct event_process), on_process},
    [EVENT_PROCESS_EXIT] = {sizeof(struct event_exit), on_process_exit},
    [EVENT_THREAD_FORK] = {sizeof(struct event_fork), on_fork},
    [EVENT_THREAD_EXIT] = {sizeof(struct event_exit), on_thread_exit},
    [EVENT_INIT] = {sizeof(struct event_init), on_init},
    [EVENT_POINTER] = {sizeof(struct event_pointer), on_pointer},
    [EVENT_INIT_RETURN] = {sizeof(struct event_init_return), on_init_return},
    [EVENT_GROUP_END] = {sizeof(struct event_group), on_group_end},
    [EVENT_GROUP_RETURN] = {sizeof(struct event_group), on_group_return},
    [EVENT_CALL] = {sizeof(struct event_call), on_call},
    [EVENT_DESTROY] = {sizeof(struct event_destroy), on_destroy},
    [EVENT_QUEUE_PAIR_CREATE] = {sizeof(struct event_queue_pair_create), on_queue_pair_create},
    [EVENT_QUEUE_PAIR_MODIFY] = {sizeof(struct event_queue_pair_modify), on_queue_pair_modify},
    [EVENT_QUEUE_PAIR_DESTROY] = {sizeof(struct event_queue_pair_destroy), on_queue_pair_destroy},
};

void tracker_event(struct tracker *tracker, const void *event, size_t length_bytes)
{
    const struct event_header *header = event;
    if (length_bytes < sizeof *header || header->kind >= sizeof handlers / sizeof handlers[0] ||
        handlers[header->kind].handle == NULL || length_bytes < handlers[header->kind].length_bytes)
        return;
    count(tracker, COUNT_EVENTS);
    tracker_lost(tracker, header->lost, header->at_ns);
    tracker->last_ns = header->at_ns;
    handlers[header->kind].handle(tracker, event);
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
    if (job_table_create(&fresh->jobs) != 0 ||
        communicator_table_create(&fresh->communicators, COMMUNICATORS_MAX) != 0 ||
        queue_pair_table_create(&fresh->queue_pairs, QUEUE_PAIRS_MAX) != 0 ||
        lineage_create(&fresh->lineage, THREADS_MAX) != 0 || call_groups_create(&fresh->groups) != 0) {
        tracker_destroy(&fresh);
        return log_error_return(-ENOMEM, "no memory for the tables of processes");
    }
    *tracker = fresh;
    return 0;
}

void tracker_destroy(struct tracker **tracker)
{
    if (*tracker == NULL)
        return;
    call_groups_destroy(&(*tracker)->groups);
    lineage_destroy(&(*tracker)->lineage);
    queue_pair_table_destroy(&(*tracker)->queue_pairs);
    communicator_table_destroy(&(*tracker)->communicators);
    job_table_destroy(&(*tracker)->jobs);
    free(*tracker);
    *tracker = NULL;
}

size_t tracker_size(const struct tracker *tracker)
{
    return job_count(tracker->jobs) + communicator_count(tracker->communicators) +
           queue_pair_count(tracker->queue_pairs) + lineage_count(tracker->lineage) +
           call_groups_count(tracker->groups);
}
