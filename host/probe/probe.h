/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The probes in the kernel (libbpf inside; nowhere else): loads them, sets them at places in library files, once a file
 * for all processes, and delivers their events. One thread; setting them and taking them away is left to another one
 * (attacher.h), so that no function but probe_open, probe_cost and probe_close waits for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "host/agent/cost.h"
#include "host/follow/provider.h"
#include "host/layout/layout.h"
#include "host/library/library.h"
#include "host/probe/placement.h"
#include "host/process/process.h"

struct probe;

typedef void probe_sink(void *context, const void *event, size_t length_bytes);

struct probe_options {
    uint64_t buffer_bytes; /* rounded up to a power of 2 of whole pages */
    probe_sink *sink;      /* takes each event, from probe_read */
    /* The first probes of a library are set, from probe_tick. */
    void (*attached)(void *context, const struct placement_attached *attached);
    void *context;
};

/* Loads all programs and starts to follow threads. -errno, logged with what to do. */
int probe_open(struct probe **probe, const struct probe_options *options);
void probe_close(struct probe **probe);

/* Polls readable when events wait that should be taken now; others may wait until the next call of probe_read. */
int probe_descriptor(const struct probe *probe);

/* Delivers all events that wait. -errno, logged. */
int probe_read(struct probe *probe);

/*
 * Has the probes of an open library file that are on duty set; events of theirs that carry a library carry `library`.
 * Each that cannot be is logged. 0 or -errno, logged.
 */
int probe_attach(struct probe *probe, uint64_t library, int descriptor, const struct library_places *places);

/* Hears what was set. Call often. */
void probe_tick(struct probe *probe);

/*
 * Has the probes of a duty set, or taken away, in all libraries; DUTY_ALWAYS stays. What is taken away says nothing any
 * more at once. At first all but DUTY_DETAIL and DUTY_DELAY are on.
 */
void probe_set_duty(struct probe *probe, enum probe_duty duty, bool on);
bool probe_duty(const struct probe *probe, enum probe_duty duty);
bool probe_is_being_set(const struct probe *probe, enum probe_duty duty);

void probe_count_places(const struct probe *probe, struct placement_counts *counts);

/* Where a library keeps what the probes read of communicators; before its probes are set. Without it nothing is read.
 */
void probe_set_layout(struct probe *probe, uint64_t library, const struct layout *layout);

/* Tells the end of a process also when it calls nothing that is probed. */
void probe_follow(struct probe *probe, uint32_t pid);

/*
 * Has followed what one process posts or takes at one place of a file that it has mapped, as long as hits are left;
 * -errno, logged.
 */
int probe_follow_work(struct probe *probe, pid_t pid, int descriptor, const struct provider_place *place);
void probe_end_work(struct probe *probe);

/* 1: not all is set yet; 0: it is; -errno: none could be. */
int probe_work_is_being_set(struct probe *probe);

/* Lets so many hits of those be from now on; how many still may be, below 1: none. */
void probe_allow_work(struct probe *probe, int64_t hits);
int64_t probe_work_left(const struct probe *probe);

/*
 * The file that really holds the code of an open file, which is where a probe sits: below an overlay file system it is
 * another one than stat and /proc show. -errno: it cannot be mapped to be executed.
 */
int probe_file_key(struct probe *probe, int descriptor, struct file_key *file);

/* What a hit costs here. */
void probe_cost(struct probe *probe, struct cost *cost);

/* What is told only when asked for: so many events from now on, of one process (0 = all); 0 events: no more. */
void probe_allow_detail(struct probe *probe, enum detail_kind kind, pid_t pid, int64_t events);
int64_t probe_detail_left(const struct probe *probe, enum detail_kind kind);

/* What the kernel's side could not do, since the start. */
struct probe_losses {
    uint64_t events;
    uint64_t events_at_ns; /* the latest */
    uint64_t reads;
    uint64_t processes;
    uint64_t implausible;  /* queue pairs at private entries */
    uint64_t socket_calls; /* of all processes, that the probes at the kernel's returns did not see */
};
void probe_losses(const struct probe *probe, struct probe_losses *losses);

/* The probes' clock minus this process's CLOCK_MONOTONIC (a time namespace makes them differ), within *bound_ns. */
int probe_clock_offset(struct probe *probe, int64_t *offset_ns, uint64_t *bound_ns);
