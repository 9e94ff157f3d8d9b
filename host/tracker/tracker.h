/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the probes' events into records: who owns each queue pair, what each rank asked for. Knows no system call: what
 * it needs of the running system it asks through `struct tracker_system`, and its records go to a sink. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/event.h"
#include "host/identity/identity.h"
#include "wire/record.h"

struct tracker;

struct tracker_system {
    /* Whether the collective library defines ncclCommSplit. */
    bool (*library_splits)(void *context, uint64_t library);
    /* What its ncclGetVersion gives; 0 = not known. */
    uint32_t (*library_version)(void *context, uint64_t library);
    /* The collective library's file as the process sees it; NUL-terminated, "" = unknown. */
    void (*library_path)(void *context, uint32_t pid, uint64_t library, char *path, size_t path_bytes);
    /* A device's own GID as the process sees it: 0 or -errno. */
    int (*read_gid)(void *context, uint32_t pid, const char *device, unsigned port, unsigned index,
                    uint8_t gid[ADDRESS_BYTES]);
    /* Tells all that can be read of who a process is. */
    void (*identify)(void *context, uint32_t pid, identity_visit *visit, void *visitor);
    bool (*is_running)(void *context, uint32_t pid);
    /* Sees to it that the process's end is told, though it has called nothing that is probed. */
    void (*follow)(void *context, uint32_t pid);
    /* Takes a record (all but its header's kind and length is filled). */
    void (*publish)(void *context, enum record_kind kind, void *record);
    void *context;
};

struct tracker_options {
    struct tracker_system system;
    uint64_t *counters; /* HOST_COUNTERS of them, the caller's */
    uint64_t started_ns;
    uint64_t unique; /* a number that no other tracker of the cluster has: part of identities made here */
};

int tracker_create(struct tracker **tracker, const struct tracker_options *options);
void tracker_destroy(struct tracker **tracker);

/* One event of the ring buffer, in its order. An unknown kind or a short event is ignored. */
void tracker_event(struct tracker *tracker, const void *event, size_t length_bytes);

/* The probes have lost so many events up to now: for losses that no later event tells. */
void tracker_lost(struct tracker *tracker, uint32_t lost, uint64_t at_ns);

/* All events that waited have been given: after a loss, ends the processes whose end was lost. */
void tracker_settle(struct tracker *tracker);

/* Call at least every 100 ms, with the probes' clock, after the events that wait. */
void tracker_tick(struct tracker *tracker, uint64_t now_ns);

/*
 * The queue pairs that the kernel has, all of them, every now and then. Those that no probe saw being made were there
 * before the probes: they become records with QUEUE_PAIR_LATE. Those that are gone since, end.
 */
struct tracker_resident {
    uint32_t pid;
    uint32_t tid; /* who made it, where the kernel says; else 0 */
    uint32_t qpn;
    uint32_t remote_qpn;
    uint8_t port;
    uint8_t state; /* enum queue_pair_state */
    uint8_t type;
    char device[DEVICE_NAME_BYTES];
};
void tracker_residents(struct tracker *tracker, const struct tracker_resident *residents, size_t count, uint64_t at_ns);

/* Calls of the GPU's runtime are not told any more: what launches of graphs do is missed from now on. */
void tracker_markers_end(struct tracker *tracker);

/* Publishes again everything that is followed, for a receiver that may lack it. */
void tracker_describe(struct tracker *tracker);

/* The processes among what is followed. */
size_t tracker_processes(const struct tracker *tracker);

/* Everything that is followed: processes, communicators, queue pairs, threads, groups; 0 when nothing is left. */
size_t tracker_size(const struct tracker *tracker);

/* Every queue pair whose making was seen: its process, device, and its ibv_qp there. */
typedef void tracker_queue_pair_visit(void *context, pid_t pid, const char *device, uint64_t queue_pair);
void tracker_each_queue_pair(const struct tracker *tracker, tracker_queue_pair_visit *visit, void *context);
