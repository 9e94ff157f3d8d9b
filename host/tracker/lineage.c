/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads and the communicators that they serve. Source: how NCCL 2.13 to 2.30 and RCCL start their threads, see
 * lineage.h. Invariant: a thread is in the table only while it serves a communicator or has a window.
 */
#include "host/tracker/lineage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* The communicators that one thread makes, and how many threads it has made for them. */
struct window {
    uint32_t communicators[LINEAGE_WINDOW_MAX];
    uint32_t count;
    uint32_t children;
    bool open;
    bool nonblocking;
    bool skip; /* the next child, which is counted among none */
};

struct thread {
    uint32_t tid;
    uint32_t process;
    uint32_t communicator;
    struct window *window; /* owned; NULL = none */
    UT_hash_handle hh;
};

struct lineage {
    struct thread *threads;
    size_t threads_max;
};

int lineage_create(struct lineage **lineage, size_t threads_max)
{
    struct lineage *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return -ENOMEM;
    fresh->threads_max = threads_max;
    *lineage = fresh;
    return 0;
}

static void thread_remove(struct lineage *lineage, struct thread *thread)
{
    HASH_DEL(lineage->threads, thread);
    free(thread->window);
    free(thread);
}

void lineage_destroy(struct lineage **lineage)
{
    if (*lineage == NULL)
        return;
    struct thread *thread;
    struct thread *next;
    HASH_ITER(hh, (*lineage)->threads, thread, next)
    {
        thread_remove(*lineage, thread);
    }
    free(*lineage);
    *lineage = NULL;
}

static struct thread *thread_find(const struct lineage *lineage, uint32_t tid)
{
    struct thread *thread;
    HASH_FIND(hh, lineage->threads, &tid, sizeof tid, thread);
    return thread;
}

static struct thread *thread_add(struct lineage *lineage, uint32_t process, uint32_t tid)
{
    if (lineage_count(lineage) >= lineage->threads_max)
        return NULL;
    struct thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    thread->tid = tid;
    thread->process = process;
    HASH_ADD(hh, lineage->threads, tid, sizeof tid, thread);
    return thread;
}

static void window_drop(struct lineage *lineage, struct thread *thread)
{
    free(thread->window);
    thread->window = NULL;
    if (thread->communicator == 0)
        thread_remove(lineage, thread);
}

int lineage_expect(struct lineage *lineage, uint32_t process, uint32_t tid, uint32_t communicator)
{
    struct thread *thread = thread_find(lineage, tid);
    if (thread == NULL)
        thread = thread_add(lineage, process, tid);
    if (thread == NULL)
        return -ENOSPC;
    if (thread->window == NULL)
        thread->window = calloc(1, sizeof *thread->window);
    if (thread->window == NULL || thread->window->count == LINEAGE_WINDOW_MAX)
        return -ENOSPC;
    thread->window->communicators[thread->window->count++] = communicator;
    return 0;
}

void lineage_unexpect(struct lineage *lineage, uint32_t tid)
{
    struct thread *thread = thread_find(lineage, tid);
    if (thread == NULL || thread->window == NULL || thread->window->open)
        return;
    thread->window->count--;
    if (thread->window->count == 0)
        window_drop(lineage, thread);
}

void lineage_open(struct lineage *lineage, uint32_t tid, bool nonblocking)
{
    struct thread *thread = thread_find(lineage, tid);
    if (thread == NULL || thread->window == NULL)
        return;
    thread->window->open = true;
    thread->window->nonblocking = nonblocking;
}

void lineage_skip(struct lineage *lineage, uint32_t tid)
{
    struct thread *thread = thread_find(lineage, tid);
    if (thread != NULL && thread->window != NULL && thread->window->open)
        thread->window->skip = true;
}

void lineage_close(struct lineage *lineage, uint32_t tid)
{
    struct thread *thread = thread_find(lineage, tid);
    if (thread != NULL && thread->window != NULL)
        window_drop(lineage, thread);
}

size_t lineage_expected(const struct lineage *lineage, uint32_t tid, const uint32_t **communicators)
{
    const struct thread *thread = thread_find(lineage, tid);
    if (thread == NULL || thread->window == NULL)
        return 0;
    *communicators = thread->window->communicators;
    return thread->window->count;
}

/* The thread that a non-blocking group hands its work to: it makes the communicators' threads for as long as it lives.
 */
static int hand_over(struct thread *child, const struct window *window)
{
    child->window = malloc(sizeof *child->window);
    if (child->window == NULL)
        return -ENOSPC;
    *child->window = *window;
    child->window->nonblocking = false;
    child->window->children = 0;
    return 0;
}

/* What the next child of a thread with an open window serves; 0 = nothing, or the work is handed over to it. */
static uint32_t window_next(struct window *window)
{
    const uint32_t number = window->children++;
    if (window->count == 1)
        return window->communicators[0];
    if (window->nonblocking)
        return 0;
    return number < window->count ? window->communicators[number] : 0;
}

int lineage_fork(struct lineage *lineage, uint32_t process, uint32_t creator, uint32_t child)
{
    lineage_exit(lineage, child); /* its number is used again, and its end was not seen */
    const struct thread *parent = thread_find(lineage, creator);
    if (parent == NULL)
        return 0;
    struct window *window = parent->window;
    const bool making = window != NULL && window->open;
    if (making && window->skip) {
        window->skip = false;
        return 0;
    }
    const uint32_t communicator = making ? window_next(window) : parent->communicator;
    const bool takes_over = making && window->nonblocking && window->count > 1 && window->children == 1;
    if (communicator == 0 && !takes_over)
        return 0;
    struct thread *thread = thread_add(lineage, process, child);
    if (thread == NULL)
        return -ENOSPC;
    thread->communicator = communicator;
    return takes_over ? hand_over(thread, window) : 0;
}

void lineage_exit(struct lineage *lineage, uint32_t tid)
{
    struct thread *thread = thread_find(lineage, tid);
    if (thread != NULL)
        thread_remove(lineage, thread);
}

void lineage_forget_process(struct lineage *lineage, uint32_t process)
{
    struct thread *thread;
    struct thread *next;
    HASH_ITER(hh, lineage->threads, thread, next)
    {
        if (thread->process == process)
            thread_remove(lineage, thread);
    }
}

void lineage_break(struct lineage *lineage)
{
    struct thread *thread;
    struct thread *next;
    HASH_ITER(hh, lineage->threads, thread, next)
    {
        if (thread->window != NULL)
            window_drop(lineage, thread);
    }
}

uint32_t lineage_communicator(const struct lineage *lineage, uint32_t process, uint32_t tid)
{
    const struct thread *thread = thread_find(lineage, tid);
    if (thread == NULL || thread->process != process)
        return 0;
    const struct window *window = thread->window;
    const bool inline_work = window != NULL && window->open && window->count == 1;
    return inline_work ? window->communicators[0] : thread->communicator;
}

size_t lineage_count(const struct lineage *lineage)
{
    return HASH_COUNT(lineage->threads);
}
