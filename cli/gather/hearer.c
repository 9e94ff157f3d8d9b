/* SPDX-License-Identifier: BSD-2-Clause */
/* Running agents. Invariant: a voice whose descriptor is -1 has ended; the epoll descriptor has all others. */
#include "cli/gather/hearer.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/log.h"
#include "wire/outlet.h"
#include "wire/record.h"

#define VOICES_MAX    64
#define TAKEN_AT_ONCE 256 /* batches of one agent, before the next one's turn */

struct voice {
    int descriptor;
    bool heard;
    uint64_t next_sequence;
};

struct hearer {
    int poll;
    size_t count;
    size_t ended;
    uint64_t missing;
    struct voice voices[VOICES_MAX];
    uint8_t batch[BATCH_BYTES_MAX];
};

int hearer_create(struct hearer **hearer)
{
    struct hearer *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return log_error_return(-ENOMEM, "out of memory to hear running agents");
    }
    made->poll = epoll_create1(EPOLL_CLOEXEC);
    if (made->poll < 0) {
        int error = -errno;
        free(made);
        return log_error_return(error, "cannot wait for running agents: %s", strerror(-error));
    }
    *hearer = made;
    return 0;
}

static void add(struct hearer *hearer, const char *path)
{
    int descriptor = hearer->count == VOICES_MAX ? -EUSERS : outlet_connect(path);
    if (descriptor < 0) {
        if (descriptor != -ECONNREFUSED) {
            log_warning("the agent at %s cannot be asked: %s", path, strerror(-descriptor));
        }
        return;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = hearer->count};
    if (epoll_ctl(hearer->poll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
        log_warning("the agent at %s cannot be waited for: %s", path, strerror(errno));
        close(descriptor);
        return;
    }
    hearer->voices[hearer->count++] = (struct voice){.descriptor = descriptor};
}

size_t hearer_find(struct hearer *hearer, const char *name)
{
    char folder[OUTLET_PATH_BYTES];
    char pattern[2 * OUTLET_PATH_BYTES];
    size_t before = hearer->count;
    glob_t paths;
    for (unsigned number = 0; outlet_folder(folder, number); number++) {
        snprintf(pattern, sizeof(pattern), "%s/%s-*" OUTLET_SUFFIX, folder, name);
        if (glob(pattern, 0, NULL, &paths) == 0) {
            for (size_t i = 0; i < paths.gl_pathc; i++) {
                add(hearer, paths.gl_pathv[i]);
            }
            globfree(&paths);
        }
    }
    return hearer->count - before;
}

int hearer_descriptor(const struct hearer *hearer)
{
    return hearer->poll;
}

/* Numbers rise by one; a first one may be any. */
static void count_missing(struct hearer *hearer, struct voice *voice, size_t length_bytes)
{
    struct batch_header header;
    if (length_bytes < sizeof(header)) {
        return;
    }
    memcpy(&header, hearer->batch, sizeof(header));
    if (voice->heard && header.sequence > voice->next_sequence) {
        hearer->missing += header.sequence - voice->next_sequence;
    }
    voice->heard = true;
    voice->next_sequence = header.sequence + 1;
}

static void take_of(struct hearer *hearer, struct voice *voice,
                    void (*take)(void *context, const void *bytes, size_t length_bytes), void *context)
{
    for (size_t i = 0; i < TAKEN_AT_ONCE && voice->descriptor >= 0; i++) {
        ssize_t length = recv(voice->descriptor, hearer->batch, sizeof(hearer->batch), MSG_DONTWAIT);
        if (length > 0) {
            count_missing(hearer, voice, (size_t)length);
            take(context, hearer->batch, (size_t)length);
        } else if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        } else {
            close(voice->descriptor);
            voice->descriptor = -1;
            hearer->ended++;
        }
    }
}

void hearer_take(struct hearer *hearer, void (*take)(void *context, const void *bytes, size_t length_bytes),
                 void *context)
{
    struct epoll_event events[VOICES_MAX];
    int count = epoll_wait(hearer->poll, events, VOICES_MAX, 0);
    for (int i = 0; i < count; i++) {
        take_of(hearer, &hearer->voices[events[i].data.u64], take, context);
    }
}

size_t hearer_count(const struct hearer *hearer)
{
    return hearer->count;
}

size_t hearer_ended(const struct hearer *hearer)
{
    return hearer->ended;
}

uint64_t hearer_missing(const struct hearer *hearer)
{
    return hearer->missing;
}

void hearer_destroy(struct hearer **hearer)
{
    if (*hearer == NULL) {
        return;
    }
    for (size_t i = 0; i < (*hearer)->count; i++) {
        if ((*hearer)->voices[i].descriptor >= 0) {
            close((*hearer)->voices[i].descriptor);
        }
    }
    close((*hearer)->poll);
    free(*hearer);
    *hearer = NULL;
}
