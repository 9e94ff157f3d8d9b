/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of jobs and its threads. Invariant: `first`, `last` and `stop` are read and written under the lock alone.
 */
#include "wire/http/http_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "wire/log.h"

#define THREADS_MAX 16

struct http_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct http_job *first;
    struct http_job **last; /* where the next one goes */
    bool stop;
    pthread_t threads[THREADS_MAX];
    unsigned threads_count;
};

/* Under the lock; NULL: there is none. */
static struct http_job *take(struct http_pool *pool)
{
    struct http_job *job = pool->first;

    if (job != NULL) {
        pool->first = job->next;
        if (pool->first == NULL)
            pool->last = &pool->first;
    }
    return job;
}

static void *work(void *context)
{
    struct http_pool *pool = context;

    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        struct http_job *job = take(pool);
        if (job == NULL) {
            pthread_cond_wait(&pool->wake, &pool->lock);
            continue;
        }
        pthread_mutex_unlock(&pool->lock);
        job->run(job, false);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int http_pool_open(struct http_pool **result, unsigned threads)
{
    struct http_pool *pool = calloc(1, sizeof *pool);
    int error = 0;

    if (pool == NULL)
        return log_error_return(-ENOMEM, "no memory for HTTP");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->last = &pool->first;
    for (; pool->threads_count < threads && pool->threads_count < THREADS_MAX && error == 0;
         pool->threads_count += error == 0)
        error = -pthread_create(&pool->threads[pool->threads_count], NULL, work, pool);
    if (error != 0) {
        http_pool_close(&pool);
        return log_error_return(error, "no thread for HTTP: %s", strerror(-error));
    }
    *result = pool;
    return 0;
}

void http_pool_put(struct http_pool *pool, struct http_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&pool->lock);
    *pool->last = job;
    pool->last = &job->next;
    pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

void http_pool_close(struct http_pool **pool)
{
    struct http_job *job;

    if (*pool == NULL)
        return;
    pthread_mutex_lock(&(*pool)->lock);
    (*pool)->stop = true;
    pthread_cond_broadcast(&(*pool)->wake);
    pthread_mutex_unlock(&(*pool)->lock);
    for (unsigned i = 0; i < (*pool)->threads_count; i++)
        pthread_join((*pool)->threads[i], NULL);
    while ((job = take(*pool)) != NULL)
        job->run(job, true);
    pthread_cond_destroy(&(*pool)->wake);
    pthread_mutex_destroy(&(*pool)->lock);
    free(*pool);
    *pool = NULL;
}
