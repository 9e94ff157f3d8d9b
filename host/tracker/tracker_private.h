/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tracker's subjects share. A subject is a file tracker_<name>.c: it owns one or two tables of `struct
 * tracker`, takes the events that event.def gives to it, and is told by a `struct tracker_subject` what all must know.
 * A subject asks another only through the functions below. A new kind of event: a line in event.def and a handler; a
 * new subject: a line in subject.def and its file.
 */
#pragma once

#include "host/counter.h"
#include "host/tracker/job.h"
#include "host/tracker/tracker.h"

struct tracker {
    struct tracker_system system;
    uint64_t *counters;
    uint64_t unique;
    uint64_t last_ns; /* of the latest event */
    uint32_t lost;    /* events, as far as it has been told */
    /* process */
    struct job_table *jobs;
    bool unsettled; /* the end of a process may have been lost */
    /* communicator */
    struct communicator_table *communicators;
    struct lineage *lineage;
    /* proxy */
    struct proxy_table *proxies;
    /* queue_pair */
    struct queue_pair_table *queue_pairs;
    /* resident */
    struct resident_table *residents;
    /* call */
    struct call_groups *groups;
    /* marker */
    struct graph_table *graphs;
};

/* What happens to all subjects; NULL where it does not concern one. */
struct tracker_subject {
    int (*create)(struct tracker *tracker); /* its tables: 0 or -ENOMEM */
    void (*destroy)(struct tracker *tracker);
    void (*lose)(struct tracker *tracker); /* events were lost: any of its may be missing */
    void (*end_thread)(struct tracker *tracker, uint32_t tid);
    void (*end_process)(struct tracker *tracker, struct job_process *process, uint64_t at_ns);
    void (*tick)(struct tracker *tracker, uint64_t now_ns);
    void (*describe)(struct tracker *tracker);     /* publishes again all that it follows */
    size_t (*size)(const struct tracker *tracker); /* things that it follows */
};

#define SUBJECT(name) extern const struct tracker_subject tracker_subject_##name;
#include "host/tracker/subject.def"
#undef SUBJECT

#define EVENT(kind, structure, function) void tracker_##function(struct tracker *tracker, const void *event);
#include "host/tracker/event.def"
#undef EVENT

/* ---- tracker.c ---- */

void tracker_count(struct tracker *tracker, enum host_counter counter);

/* What has been published is the table's; the sink gets a copy to put its header on. */
void tracker_publish(struct tracker *tracker, enum record_kind kind, const void *record, size_t record_bytes);

/* What happens to all subjects. */
void tracker_lose(struct tracker *tracker);
void tracker_end_thread(struct tracker *tracker, uint32_t tid);
void tracker_end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns);

/* ---- tracker_loss.c ---- */

/* A table is full: said where it happens, and by name. */
void tracker_refuse(struct tracker *tracker, enum host_counter counter);

/* ---- tracker_process.c ---- */

/* The process of an event, published when it is new; NULL without memory. */
struct job_process *tracker_process(struct tracker *tracker, const struct event_header *header);

/* The process with this number, which has called nothing yet that is probed; NULL without memory. */
struct job_process *tracker_process_found(struct tracker *tracker, uint32_t pid);

/* ---- tracker_communicator.c ---- */

struct communicator;

/* The communicator of this ncclComm_t, added as a late one when it is new; NULL when it cannot be kept. */
struct communicator *tracker_communicator(struct tracker *tracker, struct job_process *process, uint64_t pointer);

/* The thread's group begins to make the communicators that it was asked for. */
void tracker_communicators_begin(struct tracker *tracker, const struct event_group *event);

/* ---- tracker_failure.c ---- */

/* Tells of a failure when it is the first of its cause there; all but the header is filled in. */
void tracker_fail(struct tracker *tracker, struct job_process *process, struct record_failure *failure);

/* ---- tracker_proxy.c ---- */

/* What the proxy was told of the connection that its thread arranged over this socket. */
void tracker_connect(struct tracker *tracker, struct record_queue_pair *queue_pair, int32_t socket);

/* ---- tracker_queue_pair.c ---- */

/* It is not known any more who serves the process's communicators: none of its queue pairs can be called foreign. */
void tracker_queue_pairs_disown(struct tracker *tracker, uint32_t process);

/* ---- tracker_call.c ---- */

/* The thread's group end has returned. */
void tracker_calls_return(struct tracker *tracker, const struct event_group *event);

/* ---- tracker_marker.c ---- */

/* A data call that was made while its process captured a graph. */
void tracker_capture_call(struct tracker *tracker, uint32_t process, const struct record_call *call);
