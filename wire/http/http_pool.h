/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A few threads for work that takes long, in the order in which it came. Jobs are put by one thread; each is run once,
 * on a thread of the pool, or told that it is not: what becomes of it is its own affair.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_pool;

struct http_job {
    struct http_job *next; /* the pool's, until `run` is called */
    void (*run)(struct http_job *job, bool cancelled);
};

/* The threads have the signal mask of who calls. -ENOMEM, -EAGAIN, logged. */
int http_pool_open(struct http_pool **pool, unsigned threads);

/* Does not wait. The job is the pool's until `run` is called. */
void http_pool_put(struct http_pool *pool, struct http_job *job);

/* Waits for jobs that run, and cancels those that do not yet, on this thread. A no-op on NULL. */
void http_pool_close(struct http_pool **pool);
