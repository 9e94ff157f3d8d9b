/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which probes are to sit where: those of each library's places and of the kernel's own by duty, and those at what
 * followed processes post and take. Orders them of an attacher, which does it in its own time, and hears what became of
 * them. What names a job comes first. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/library/library.h"
#include "host/probe/attacher.h"

struct placement;

/* What became of a library's first probes. */
struct placement_attached {
    uint64_t library;
    size_t probes; /* are set, or wait for their duty */
    size_t failed;
    uint64_t at_ns; /* when the last was set: clock_now_ns; 0 = none was */
};

struct placement_options {
    struct attacher_options attacher;
    const int *programs; /* descriptors, by row of probe_specs; the caller's, for as long as the placement lives */
    void (*attached)(void *context, const struct placement_attached *attached);
    void *context;
};

/* At first all duties but DUTY_DETAIL and DUTY_DELAY are on. -errno, logged. */
int placement_create(struct placement **placement, const struct placement_options *options);

/* Takes all probes away, and waits for it. */
void placement_destroy(struct placement **placement);

/* Orders the probes of an open library file that are on duty; each that could not be set is logged. 0 or -errno,
 * logged. */
int placement_attach(struct placement *placement, uint64_t library, int descriptor,
                     const struct library_places *places);

/* A program that names its place in the kernel itself goes with DUTY_DELAY. Before that is on. 0 or -errno, logged. */
int placement_add_own(struct placement *placement, int program);

/* Orders, or has taken away, the probes of a duty; DUTY_ALWAYS stays. */
void placement_set_duty(struct placement *placement, enum probe_duty duty, bool on);
bool placement_duty(const struct placement *placement, enum probe_duty duty);

/* A duty is on, and so far has all its probes, and some. */
bool placement_is_complete(const struct placement *placement, enum probe_duty duty);

/* At one place of a file in one process: `order` without group, urgency and number. 0 or -errno, not logged. */
int placement_follow(struct placement *placement, const struct attachment *attachment);
void placement_end_following(struct placement *placement);

/* How many of a duty are still to be set. */
size_t placement_waiting(const struct placement *placement, enum probe_duty duty);

/* 1: not all that is to be followed is set yet; 0: it is, or some of it; -errno: none of it could be. */
int placement_followed(struct placement *placement);

/* Hears what became of orders. Call often. */
void placement_tick(struct placement *placement);

struct placement_counts {
    uint64_t failed;  /* places, since the start */
    uint64_t waiting; /* to be set, at present */
    uint64_t leaving; /* to be taken away, at present */
};
void placement_count(const struct placement *placement, struct placement_counts *counts);
