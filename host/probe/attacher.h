/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue of probes to be set and to be taken away, and a thread of its own that works it off: a kernel that sets them
 * place by place (before Linux 6.6) takes tenths of a second for each, and events must be taken meanwhile. What is to
 * be set comes before what is to be taken away. All functions are for one thread, which never waits for the kernel in
 * them but in attacher_destroy; `set` and `let_go` run in the attacher's thread, one at a time, and share nothing with
 * the caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/probe/attachment.h"

#define ATTACHER_GROUPS 8

struct attacher_options {
    /* All places of an attachment: a link (>= 0) or -errno. */
    int (*set)(void *context, const struct attachment *attachment);
    /* Waits until the kernel is done with them. */
    void (*let_go)(void *context, const int *links, size_t count);
    void *context;
    bool multiple; /* an attachment may have several places, and several are let go at once */
};

struct attacher_order {
    unsigned group;   /* what is taken away together, below ATTACHER_GROUPS */
    unsigned urgency; /* the lowest is set first; of equals the one that was ordered first */
    uint64_t number;  /* the caller's, handed back */
    struct attachment attachment;
};

struct attacher_result {
    uint64_t number;
    size_t places;
    int error;      /* 0 set; -ECANCELED its group was cleared before; another -errno: could not be set */
    uint64_t at_ns; /* clock_now_ns */
};

struct attacher;

/* Starts the thread. -errno, logged. */
int attacher_create(struct attacher **attacher, const struct attacher_options *options);

/* Takes everything away and waits for it. */
void attacher_destroy(struct attacher **attacher);

/*
 * Has it set, and told by attacher_read; the file is held, and the offsets are copied. What is equal to one of the
 * group that has not been taken away yet is set at once, by leaving that. 0 or -errno, not logged; nothing is set then.
 */
int attacher_add(struct attacher *attacher, const struct attacher_order *order);

/* Has all of a group taken away, or not set any more. */
void attacher_clear(struct attacher *attacher, unsigned group);

typedef void attacher_visit(void *context, const struct attacher_result *result);

/* What became of orders since the last call. */
void attacher_read(struct attacher *attacher, attacher_visit *visit, void *context);

/* Places of a group that are still to be set. */
size_t attacher_waiting(struct attacher *attacher, unsigned group);

/* Places of all groups that are still to be taken away. */
size_t attacher_leaving(struct attacher *attacher);
