/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which communicator a thread serves, by descent. A thread that makes communicators (within their init call, or within
 * the outermost group end for those of a group) has a window open; threads born in it belong to the communicators of
 * the window, and so do all their descendants. How the library divides the work:
 *  - one communicator: it runs in the calling thread or in any descendant: all belong to it;
 *  - several: one thread each, made in the order of the calls;
 *  - several without blocking: one thread first, which makes those.
 * Threads that serve none are not kept. Pure logic; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINEAGE_WINDOW_MAX 64

struct lineage;

/* At most `threads_max` threads are kept; -ENOMEM. */
int lineage_create(struct lineage **lineage, size_t threads_max);
void lineage_destroy(struct lineage **lineage);

/* The thread has asked for a communicator, which its next window will make. -ENOSPC: table or window full. */
int lineage_expect(struct lineage *lineage, uint32_t process, uint32_t tid, uint32_t communicator);

/* What was asked for last is not made after all. */
void lineage_unexpect(struct lineage *lineage, uint32_t tid);

/* The thread begins to make what it has asked for. `nonblocking`: through one thread first. */
void lineage_open(struct lineage *lineage, uint32_t tid, bool nonblocking);
void lineage_close(struct lineage *lineage, uint32_t tid);

/* The first thread that the open window makes serves none: ncclCommInitAll begins with the root of its own id. */
void lineage_skip(struct lineage *lineage, uint32_t tid);

/* The communicators expected by or in the window of a thread, in order; valid until the next change. */
size_t lineage_expected(const struct lineage *lineage, uint32_t tid, const uint32_t **communicators);

/* -ENOSPC when the table is full (the child will serve none). */
int lineage_fork(struct lineage *lineage, uint32_t process, uint32_t creator, uint32_t child);
void lineage_exit(struct lineage *lineage, uint32_t tid);
void lineage_forget_process(struct lineage *lineage, uint32_t process);

/*
 * Events were lost: births may be missing, so no window can be counted in any more. Who serves whom by now stays;
 * threads that are born later to make communicators serve none that is known.
 */
void lineage_break(struct lineage *lineage);

/* 0 = none that is known. */
uint32_t lineage_communicator(const struct lineage *lineage, uint32_t process, uint32_t tid);

/* Threads that are kept, for tests of leaks. */
size_t lineage_count(const struct lineage *lineage);
