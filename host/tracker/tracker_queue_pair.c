/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: made, connected, ended, and whose they are. Invariant: a queue pair has the communicator that its
 * maker's descent gives, and it is called foreign only when every birth of a serving thread in its process has been
 * seen.
 */
#include "host/tracker/tracker_private.h"

#include "host/tracker/lineage.h"
#include "host/tracker/queue_pair.h"

#define QUEUE_PAIRS_MAX 262144

static void publish_queue_pair(struct tracker *tracker, const struct record_queue_pair *queue_pair)
{
    tracker_publish(tracker, RECORD_QUEUE_PAIR, queue_pair, sizeof *queue_pair);
}

static void own(struct tracker *tracker, const struct job_process *process, struct record_queue_pair *queue_pair)
{
    queue_pair->communicator = lineage_communicator(tracker->lineage, queue_pair->process, queue_pair->creator_tid);
    if (queue_pair->communicator != 0 || !process->lineage_complete)
        return;
    queue_pair->flags |= QUEUE_PAIR_FOREIGN;
    tracker_count(tracker, COUNT_QUEUE_PAIRS_FOREIGN);
}

void tracker_on_queue_pair_create(struct tracker *tracker, const void *bytes)
{
    const struct event_queue_pair_create *event = bytes;
    const struct job_process *process = tracker_process(tracker, &event->header);
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
        tracker_refuse(tracker, COUNT_QUEUE_PAIRS_REFUSED);
        return;
    }
    tracker_count(tracker, COUNT_QUEUE_PAIRS);
    own(tracker, process, queue_pair);
    tracker_connect(tracker, queue_pair, event->socket);
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
        tracker_count(tracker, COUNT_QUEUE_PAIRS_UNKNOWN);
    return queue_pair;
}

static void fail(struct tracker *tracker, const struct record_queue_pair *queue_pair, enum failure_cause cause,
                 uint64_t at_ns, uint32_t tid)
{
    struct job_process *process = job_by_number(tracker->jobs, queue_pair->process);
    struct record_failure failure = {
        .at_ns = at_ns,
        .communicator = queue_pair->communicator,
        .queue_pair = queue_pair->queue_pair,
        .cause = cause,
        .tid = tid,
    };
    if (process != NULL && (queue_pair->flags & QUEUE_PAIR_FOREIGN) == 0)
        tracker_fail(tracker, process, &failure);
}

void tracker_on_queue_pair_modify(struct tracker *tracker, const void *bytes)
{
    const struct event_queue_pair_modify *event = bytes;
    struct record_queue_pair *queue_pair = known_queue_pair(tracker, &event->header, event->pointer);
    if (queue_pair == NULL)
        return;
    const bool failed = queue_pair->error_ns != 0;
    struct gid_question question = {.tracker = tracker, .pid = event->header.tgid};
    if (queue_pair_modify(queue_pair, event, read_gid, &question) != 0)
        tracker_count(tracker, COUNT_GIDS_UNREADABLE);
    publish_queue_pair(tracker, queue_pair);
    if (!failed && queue_pair->error_ns != 0)
        fail(tracker, queue_pair, FAILURE_QUEUE_PAIR_ERROR, queue_pair->error_ns, event->header.tid);
}

void tracker_on_queue_pair_destroy(struct tracker *tracker, const void *bytes)
{
    const struct event_queue_pair_destroy *event = bytes;
    struct record_queue_pair *queue_pair = known_queue_pair(tracker, &event->header, event->pointer);
    if (queue_pair == NULL || queue_pair->created_ns > event->entered_ns)
        return;
    queue_pair->destroyed_ns = event->header.at_ns;
    publish_queue_pair(tracker, queue_pair);
    queue_pair_remove(tracker->queue_pairs, queue_pair);
}

/* The queue pairs of one process. */
struct of_process {
    struct tracker *tracker;
    uint32_t process;
    uint64_t at_ns;
};

static void disown(void *context, struct record_queue_pair *queue_pair)
{
    const struct of_process *mine = context;
    if (queue_pair->process != mine->process || (queue_pair->flags & QUEUE_PAIR_FOREIGN) == 0)
        return;
    queue_pair->flags &= ~(uint32_t)QUEUE_PAIR_FOREIGN;
    publish_queue_pair(mine->tracker, queue_pair);
}

void tracker_queue_pairs_disown(struct tracker *tracker, uint32_t process)
{
    struct of_process mine = {.tracker = tracker, .process = process};
    queue_pair_each(tracker->queue_pairs, disown, &mine);
}

struct tour {
    const struct tracker *tracker;
    tracker_queue_pair_visit *visit;
    void *context;
};

static void visit_queue_pair(void *context, struct record_queue_pair *queue_pair)
{
    const struct tour *tour = context;
    const struct job_process *process = job_by_number(tour->tracker->jobs, queue_pair->process);
    if (process != NULL)
        tour->visit(tour->context, (pid_t)process->record.pid, queue_pair->device, queue_pair_pointer(queue_pair));
}

void tracker_each_queue_pair(const struct tracker *tracker, tracker_queue_pair_visit *visit, void *context)
{
    struct tour tour = {tracker, visit, context};
    queue_pair_each(tracker->queue_pairs, visit_queue_pair, &tour);
}

/* ---- the subject ---- */

static int create(struct tracker *tracker)
{
    return queue_pair_table_create(&tracker->queue_pairs, QUEUE_PAIRS_MAX);
}

static void destroy(struct tracker *tracker)
{
    queue_pair_table_destroy(&tracker->queue_pairs);
}

static void end_queue_pair(void *context, struct record_queue_pair *queue_pair)
{
    const struct of_process *mine = context;
    if (queue_pair->process != mine->process)
        return;
    if (queue_pair->state == QUEUE_PAIR_RTS)
        fail(mine->tracker, queue_pair, FAILURE_PROCESS_ENDED, mine->at_ns, 0);
    queue_pair->destroyed_ns = mine->at_ns;
    publish_queue_pair(mine->tracker, queue_pair);
    queue_pair_remove(mine->tracker->queue_pairs, queue_pair);
}

static void end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    struct of_process mine = {.tracker = tracker, .process = process->record.process, .at_ns = at_ns};
    queue_pair_each(tracker->queue_pairs, end_queue_pair, &mine);
}

static void describe_queue_pair(void *context, struct record_queue_pair *queue_pair)
{
    publish_queue_pair(context, queue_pair);
}

static void describe(struct tracker *tracker)
{
    queue_pair_each(tracker->queue_pairs, describe_queue_pair, tracker);
}

static size_t size(const struct tracker *tracker)
{
    return queue_pair_count(tracker->queue_pairs);
}

const struct tracker_subject tracker_subject_queue_pair = {
    .create = create,
    .destroy = destroy,
    .end_process = end_process,
    .describe = describe,
    .size = size,
};
