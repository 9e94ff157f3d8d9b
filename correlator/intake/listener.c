/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The intake link. Invariant: what is in the queue, and all that was ever taken from it, is in the journal or has been
 * counted as not written; the journal is flushed whenever the link has nothing more, so that a kill loses what was
 * being received at most.
 */
#include "correlator/intake/listener.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "correlator/array.h"
#include "wire/capture.h"
#include "wire/link.h"
#include "wire/log.h"

#define FULL_WAIT_MS 20

struct parcel {
    void *bytes;
    size_t length_bytes;
};
typedef ARRAY(struct parcel) parcel_list;

struct listener {
    struct link *link;
    struct capture_writer *journal;
    size_t queue_bytes_max;
    pthread_t thread;
    pthread_mutex_t lock;
    parcel_list queue;  /* under lock */
    size_t queue_bytes; /* under lock */
    int ready;          /* readable: the queue has something */
    int stop;           /* readable: the thread ends */
    uint8_t message[LINK_MESSAGE_BYTES_MAX];
};

static void raise_event(int descriptor)
{
    const uint64_t one = 1;
    ssize_t written = write(descriptor, &one, sizeof one);

    (void)written;
}

static void clear_event(int descriptor)
{
    uint64_t count;
    ssize_t got = read(descriptor, &count, sizeof count);

    (void)got;
}

static bool queue_full(struct listener *listener)
{
    pthread_mutex_lock(&listener->lock);
    bool full = listener->queue_bytes >= listener->queue_bytes_max;
    pthread_mutex_unlock(&listener->lock);
    return full;
}

static void queue_add(struct listener *listener, size_t length_bytes)
{
    struct parcel parcel = {.bytes = array_zeroed(length_bytes), .length_bytes = length_bytes};

    memcpy(parcel.bytes, listener->message, length_bytes);
    pthread_mutex_lock(&listener->lock);
    *(struct parcel *)array_add(&listener->queue) = parcel;
    listener->queue_bytes += length_bytes;
    pthread_mutex_unlock(&listener->lock);
    raise_event(listener->ready);
}

static void receive_all(struct listener *listener)
{
    size_t length_bytes;
    bool any = false;
    int result = 0;

    while (!queue_full(listener)) {
        result = link_receive(listener->link, listener->message, sizeof listener->message, &length_bytes);
        if (result == -EMSGSIZE)
            continue;
        if (result != 0)
            break;
        if (listener->journal != NULL)
            capture_write(listener->journal, listener->message, length_bytes);
        queue_add(listener, length_bytes);
        any = true;
    }
    if (any && listener->journal != NULL)
        capture_flush(listener->journal);
}

static void *listen_on(void *argument)
{
    struct listener *listener = argument;
    struct pollfd pollers[] = {{.fd = listener->stop, .events = POLLIN},
                               {.fd = link_descriptor(listener->link), .events = POLLIN}};

    for (;;) {
        bool full = queue_full(listener);
        poll(pollers, full ? 1 : 2, full ? FULL_WAIT_MS : -1);
        if (pollers[0].revents != 0)
            return NULL;
        receive_all(listener);
    }
}

static int start_thread(struct listener *listener)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&listener->thread, NULL, listen_on, listener);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

int listener_open(struct listener **result, const struct listener_options *options)
{
    const struct link_options link = {
        .role = LINK_RECEIVE, .url = options->url, .key_file = options->key_file, .boot_id = options->boot_id};
    struct listener *listener = array_zeroed(sizeof *listener);
    int error = link_open(&listener->link, &link);

    if (error != 0) {
        free(listener);
        return error;
    }
    listener->journal = options->journal;
    listener->queue_bytes_max = options->queue_bytes;
    listener->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listener->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&listener->lock, NULL);
    error = listener->ready < 0 || listener->stop < 0 ? -errno : start_thread(listener);
    if (error != 0) {
        link_close(&listener->link, 0);
        free(listener);
        return log_error_return(error, "intake %s: no thread for it: %s", options->url, strerror(-error));
    }
    *result = listener;
    return 0;
}

int listener_descriptor(const struct listener *listener)
{
    return listener->ready;
}

size_t listener_take(struct listener *listener, void (*take)(void *context, const void *bytes, size_t length_bytes),
                     void *context)
{
    parcel_list taken;

    clear_event(listener->ready);
    pthread_mutex_lock(&listener->lock);
    taken = listener->queue;
    memset(&listener->queue, 0, sizeof listener->queue);
    listener->queue_bytes = 0;
    pthread_mutex_unlock(&listener->lock);
    size_t count = taken.count;
    for (size_t i = 0; i < count; i++) {
        take(context, taken.items[i].bytes, taken.items[i].length_bytes);
        free(taken.items[i].bytes);
    }
    array_fini(&taken);
    return count;
}

static void drop(void *context, const void *bytes, size_t length_bytes)
{
    (void)context;
    (void)bytes;
    (void)length_bytes;
}

void listener_close(struct listener **listener)
{
    if (*listener == NULL)
        return;
    raise_event((*listener)->stop);
    pthread_join((*listener)->thread, NULL);
    listener_take(*listener, drop, NULL);
    link_close(&(*listener)->link, 0);
    close((*listener)->ready);
    close((*listener)->stop);
    pthread_mutex_destroy(&(*listener)->lock);
    free(*listener);
    *listener = NULL;
}
