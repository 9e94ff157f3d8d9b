/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue under a lock; `busy` covers the task that has left the queue but is not done. */
#include "stream.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum { DEVICES_MAX = 16 };

struct task {
    stream_work *work;
    void *argument;
    struct task *next;
};

struct stream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct task *head, **tail;
    bool started, busy, stop;
    int device;
};

static struct stream defaults[DEVICES_MAX];

static struct task *task_take(struct stream *stream)
{
    while (!stream->head && !stream->stop)
        pthread_cond_wait(&stream->changed, &stream->lock);
    struct task *task = stream->head;
    if (!task)
        return NULL;
    stream->head = task->next;
    if (!stream->head)
        stream->tail = &stream->head;
    return task;
}

static void *stream_main(void *argument)
{
    struct stream *stream = argument;
    struct task *task;

    pthread_mutex_lock(&stream->lock);
    while ((task = task_take(stream))) {
        stream->busy = true;
        pthread_mutex_unlock(&stream->lock);
        task->work(task->argument);
        free(task);
        pthread_mutex_lock(&stream->lock);
        stream->busy = false;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static void stream_init(struct stream *stream, int device)
{
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    stream->tail = &stream->head;
    stream->device = device;
}

struct stream *stream_create(int device)
{
    struct stream *stream = calloc(1, sizeof *stream);

    stream_init(stream, device);
    return stream;
}

static void defaults_init(void)
{
    for (int device = 0; device < DEVICES_MAX; device++)
        stream_init(&defaults[device], device);
}

struct stream *stream_default(int device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, defaults_init);
    return &defaults[device];
}

static void stream_start(struct stream *stream)
{
    stream->started = true;
    if (pthread_create(&stream->thread, NULL, stream_main, stream))
        abort();
    pthread_setname_np(stream->thread, "standin-stream");
}

void stream_push(struct stream *stream, stream_work *work, void *argument)
{
    struct task *task = malloc(sizeof *task);

    *task = (struct task){work, argument, NULL};
    pthread_mutex_lock(&stream->lock);
    if (!stream->started)
        stream_start(stream);
    *stream->tail = task;
    stream->tail = &task->next;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

void stream_drain(struct stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->head || stream->busy)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

void stream_destroy(struct stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->stop = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    if (stream->started)
        pthread_join(stream->thread, NULL);
    free(stream);
}
