/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that is queued on a stream holds a reference, since an event may be released before it is reached. */
#include "event.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct event {
    pthread_mutex_t lock;
    pthread_cond_t reached;
    uint64_t records, done;
    int references;
};

struct mark { /* "record number n of this event", queued on a stream */
    struct event *event;
    uint64_t number;
};

struct event *event_create(void)
{
    struct event *event = calloc(1, sizeof *event);

    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->reached, NULL);
    event->references = 1;
    return event;
}

void event_release(struct event *event)
{
    pthread_mutex_lock(&event->lock);
    bool last = --event->references == 0;
    pthread_mutex_unlock(&event->lock);
    if (last)
        free(event);
}

static struct mark *mark_create(struct event *event, bool is_record)
{
    struct mark *mark = malloc(sizeof *mark);

    pthread_mutex_lock(&event->lock);
    if (is_record)
        event->records++;
    *mark = (struct mark){event, event->records};
    event->references++;
    pthread_mutex_unlock(&event->lock);
    return mark;
}

static void mark_reach(void *argument)
{
    struct mark *mark = argument;

    pthread_mutex_lock(&mark->event->lock);
    if (mark->event->done < mark->number)
        mark->event->done = mark->number;
    pthread_cond_broadcast(&mark->event->reached);
    pthread_mutex_unlock(&mark->event->lock);
    event_release(mark->event);
    free(mark);
}

static void mark_await(void *argument)
{
    struct mark *mark = argument;

    pthread_mutex_lock(&mark->event->lock);
    while (mark->event->done < mark->number)
        pthread_cond_wait(&mark->event->reached, &mark->event->lock);
    pthread_mutex_unlock(&mark->event->lock);
    event_release(mark->event);
    free(mark);
}

void event_record(struct event *event, struct stream *stream)
{
    stream_push(stream, mark_reach, mark_create(event, true));
}

void event_stream_wait(struct event *event, struct stream *stream)
{
    stream_push(stream, mark_await, mark_create(event, false));
}

bool event_is_done(struct event *event)
{
    pthread_mutex_lock(&event->lock);
    bool done = event->done >= event->records;
    pthread_mutex_unlock(&event->lock);
    return done;
}
