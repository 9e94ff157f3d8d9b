/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which communicator and which rank a thread of the job works for. RCCL's unique id is the address of the
 * communicator's own bootstrap server; the thread that initialises a communicator connects there, and threads made from
 * then on descend from it. Any thread; each sees its own mark.
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

enum { MARK_ID_BYTES = 128, MARK_NONE = -1 };

/* A communicator that will be made. */
void mark_expect(const void *id, size_t length_bytes);

/* The calling thread connects to an address: if a communicator has it, the thread works for that one now. */
void mark_connect(const struct sockaddr *address);

struct mark {
    int communicator; /* its place among the expected ones, or MARK_NONE */
    int rank;         /* the job's rank that the thread works for, or MARK_NONE */
};

struct mark mark_get(void);
void mark_set(struct mark mark);

/* The id (MARK_ID_BYTES) of the communicator, NULL without one. */
const void *mark_id(struct mark mark);
