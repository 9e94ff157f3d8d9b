/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which communicator and which rank a thread of the job works for. RCCL's unique id is the address of the
 * communicator's own bootstrap server; the thread that initialises a communicator connects there, once for each rank,
 * and threads made from then on descend from it. The port may be another's afterwards, so a later connection to it says
 * nothing. Any thread; each sees its own mark.
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

enum { MARK_ID_BYTES = 128, MARK_NONE = -1 };

/* A communicator that the calling thread's rank will be a member of. */
void mark_expect(const void *id, size_t length_bytes);

/*
 * The calling thread connects to an address: if its rank expects a communicator there, and has not met it before, the
 * thread works for that one now.
 */
void mark_connect(const struct sockaddr *address);

struct mark {
    int communicator; /* its place among what is expected, or MARK_NONE */
    int rank;         /* the job's rank that the thread works for, or MARK_NONE */
};

struct mark mark_get(void);
void mark_set(struct mark mark);

/* The id (MARK_ID_BYTES) of the communicator, NULL without one. */
const void *mark_id(struct mark mark);
