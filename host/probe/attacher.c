/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: pthreads(7). Invariant: a place of an order is in exactly one list (waiting, set, leaving) or in the thread's
 * hands; only the thread makes or ends a link; the lock is never held while it does.
 */
#include "host/probe/attacher.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "wire/clock.h"
#include "wire/log.h"

#define LET_GO_MAX 64

/* One attachment, as the kernel takes it: one place, or all of a program. */
struct place {
    struct attacher_order order;
    dev_t device; /* of the file, which is closed once it is set */
    ino_t inode;
    int link;
    bool cancelled; /* in the thread's hands, and not wanted any more */
    struct place *prev;
    struct place *next;
    uint64_t offsets[];
};

struct told {
    struct attacher_result result;
    struct told *prev;
    struct told *next;
};

struct attacher {
    struct attacher_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ends;
    struct place *waiting; /* the most urgent first */
    struct place *setting; /* in the thread's hands */
    struct place *set[ATTACHER_GROUPS];
    struct place *leaving;
    size_t letting_go; /* places, in the thread's hands */
    struct told *told;
};

static size_t places_of(const struct place *place)
{
    return place->order.attachment.offsets_count == 0 ? 1 : place->order.attachment.offsets_count;
}

/* ---- the thread ---- */

static void close_file(struct place *place)
{
    if (place->order.attachment.file >= 0)
        close(place->order.attachment.file);
    place->order.attachment.file = -1;
}

static void destroy_place(struct place *place)
{
    close_file(place);
    free(place);
}

/* Without memory a result is not told: it is only for people. */
static void tell(struct attacher *attacher, const struct place *place, int error)
{
    struct told *told = malloc(sizeof *told);
    if (told == NULL)
        return;
    told->result = (struct attacher_result){
        .number = place->order.number,
        .places = places_of(place),
        .error = error,
        .at_ns = clock_now_ns(),
    };
    DL_APPEND(attacher->told, told);
}

static void file_result(struct attacher *attacher, struct place *place, int link)
{
    place->link = link;
    attacher->setting = NULL;
    if (link < 0) {
        tell(attacher, place, place->cancelled ? -ECANCELED : link);
        destroy_place(place);
        return;
    }
    close_file(place);
    tell(attacher, place, place->cancelled ? -ECANCELED : 0);
    if (place->cancelled)
        DL_APPEND(attacher->leaving, place);
    else
        DL_APPEND(attacher->set[place->order.group], place);
}

static void set_next(struct attacher *attacher)
{
    struct place *place = attacher->waiting;
    DL_DELETE(attacher->waiting, place);
    attacher->setting = place;
    pthread_mutex_unlock(&attacher->lock);
    const int link = attacher->options.set(attacher->options.context, &place->order.attachment);
    pthread_mutex_lock(&attacher->lock);
    file_result(attacher, place, link);
}

static void let_go_next(struct attacher *attacher)
{
    int links[LET_GO_MAX];
    size_t count = 0;
    const size_t most = attacher->options.multiple ? LET_GO_MAX : 1;
    while (attacher->leaving != NULL && count < most) {
        struct place *place = attacher->leaving;
        DL_DELETE(attacher->leaving, place);
        links[count++] = place->link;
        attacher->letting_go += places_of(place);
        destroy_place(place);
    }
    pthread_mutex_unlock(&attacher->lock);
    attacher->options.let_go(attacher->options.context, links, count);
    pthread_mutex_lock(&attacher->lock);
    attacher->letting_go = 0;
}

static void *work_off(void *argument)
{
    struct attacher *attacher = argument;
    pthread_mutex_lock(&attacher->lock);
    while (!attacher->ends) {
        if (attacher->waiting != NULL)
            set_next(attacher);
        else if (attacher->leaving != NULL)
            let_go_next(attacher);
        else
            pthread_cond_wait(&attacher->wake, &attacher->lock);
    }
    pthread_mutex_unlock(&attacher->lock);
    return NULL;
}

/* ---- its caller ---- */

/* Signals are the caller's. */
static int start_thread(struct attacher *attacher)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&attacher->thread, NULL, work_off, attacher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

int attacher_create(struct attacher **attacher, const struct attacher_options *options)
{
    struct attacher *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the queue of probes");
    fresh->options = *options;
    pthread_mutex_init(&fresh->lock, NULL);
    pthread_cond_init(&fresh->wake, NULL);
    const int error = start_thread(fresh);
    if (error != 0) {
        free(fresh);
        return log_error_return(error, "cannot start the thread that sets probes: %s", strerror(-error));
    }
    *attacher = fresh;
    return 0;
}

/* 0 or -errno. */
static int hold_file(struct place *place, int file)
{
    struct stat status;
    if (file < 0)
        return 0;
    place->order.attachment.file = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (place->order.attachment.file < 0 || fstat(file, &status) != 0)
        return -errno;
    place->device = status.st_dev;
    place->inode = status.st_ino;
    return 0;
}

static int make_place(struct place **place, const struct attacher_order *order)
{
    const size_t offsets_bytes = order->attachment.offsets_count * sizeof *order->attachment.offsets;
    struct place *fresh = calloc(1, sizeof *fresh + offsets_bytes);
    if (fresh == NULL)
        return -ENOMEM;
    fresh->order = *order;
    fresh->order.attachment.file = -1;
    fresh->order.attachment.offsets = fresh->offsets;
    if (offsets_bytes != 0)
        memcpy(fresh->offsets, order->attachment.offsets, offsets_bytes);
    const int error = hold_file(fresh, order->attachment.file);
    if (error != 0) {
        destroy_place(fresh);
        return error;
    }
    *place = fresh;
    return 0;
}

static bool is_same(const struct place *left, const struct place *right)
{
    const struct attachment *a = &left->order.attachment;
    const struct attachment *b = &right->order.attachment;
    return left->order.group == right->order.group && left->device == right->device && left->inode == right->inode &&
           a->program == b->program && a->cookie == b->cookie && a->at_return == b->at_return && a->pid == b->pid &&
           a->offsets_count == b->offsets_count &&
           (a->offsets_count == 0 || memcmp(a->offsets, b->offsets, a->offsets_count * sizeof *a->offsets) == 0);
}

/* Two links at one place would have everything told twice. */
static bool take_back(struct attacher *attacher, const struct place *wanted)
{
    struct place *setting = attacher->setting;
    struct place *place;
    if (setting != NULL && setting->cancelled && is_same(setting, wanted)) {
        setting->cancelled = false;
        setting->order.number = wanted->order.number;
        return true;
    }
    DL_FOREACH(attacher->leaving, place)
    {
        if (!is_same(place, wanted))
            continue;
        DL_DELETE(attacher->leaving, place);
        DL_APPEND(attacher->set[place->order.group], place);
        place->order.number = wanted->order.number;
        place->cancelled = false;
        tell(attacher, place, 0);
        return true;
    }
    return false;
}

static void queue_place(struct attacher *attacher, struct place *place)
{
    struct place *before = attacher->waiting;
    while (before != NULL && before->order.urgency <= place->order.urgency)
        before = before->next;
    DL_PREPEND_ELEM(attacher->waiting, before, place);
    pthread_cond_signal(&attacher->wake);
}

int attacher_add(struct attacher *attacher, const struct attacher_order *order)
{
    struct place *place;
    const int error = make_place(&place, order);
    if (error != 0)
        return error;
    pthread_mutex_lock(&attacher->lock);
    const bool back = take_back(attacher, place);
    if (!back)
        queue_place(attacher, place);
    pthread_mutex_unlock(&attacher->lock);
    if (back)
        destroy_place(place);
    return 0;
}

static void drop_waiting(struct attacher *attacher, unsigned group)
{
    struct place *place;
    struct place *next;
    DL_FOREACH_SAFE(attacher->waiting, place, next)
    {
        if (place->order.group != group)
            continue;
        DL_DELETE(attacher->waiting, place);
        tell(attacher, place, -ECANCELED);
        destroy_place(place);
    }
}

void attacher_clear(struct attacher *attacher, unsigned group)
{
    pthread_mutex_lock(&attacher->lock);
    drop_waiting(attacher, group);
    if (attacher->setting != NULL && attacher->setting->order.group == group)
        attacher->setting->cancelled = true;
    DL_CONCAT(attacher->leaving, attacher->set[group]);
    attacher->set[group] = NULL;
    pthread_cond_signal(&attacher->wake);
    pthread_mutex_unlock(&attacher->lock);
}

void attacher_read(struct attacher *attacher, attacher_visit *visit, void *context)
{
    struct told *told;
    struct told *next;
    pthread_mutex_lock(&attacher->lock);
    struct told *all = attacher->told;
    attacher->told = NULL;
    pthread_mutex_unlock(&attacher->lock);
    DL_FOREACH_SAFE(all, told, next)
    {
        visit(context, &told->result);
        free(told);
    }
}

static size_t count_places(const struct place *list, unsigned group)
{
    size_t count = 0;
    for (; list != NULL; list = list->next)
        count += list->order.group == group || group == ATTACHER_GROUPS ? places_of(list) : 0;
    return count;
}

size_t attacher_waiting(struct attacher *attacher, unsigned group)
{
    pthread_mutex_lock(&attacher->lock);
    const struct place *setting = attacher->setting;
    size_t count = count_places(attacher->waiting, group);
    if (setting != NULL && setting->order.group == group && !setting->cancelled)
        count += places_of(setting);
    pthread_mutex_unlock(&attacher->lock);
    return count;
}

size_t attacher_leaving(struct attacher *attacher)
{
    pthread_mutex_lock(&attacher->lock);
    const size_t count = count_places(attacher->leaving, ATTACHER_GROUPS) + attacher->letting_go;
    pthread_mutex_unlock(&attacher->lock);
    return count;
}

/* ---- the end ---- */

static void free_told(struct told *told)
{
    struct told *next;
    for (; told != NULL; told = next) {
        next = told->next;
        free(told);
    }
}

/* All links side by side. */
static void let_all_go(struct attacher *attacher)
{
    size_t count = 0;
    struct place *place;
    struct place *next;
    for (unsigned group = 0; group < ATTACHER_GROUPS; group++)
        attacher_clear(attacher, group);
    DL_COUNT(attacher->leaving, place, count);
    int *links = calloc(count + 1, sizeof *links);
    size_t at = 0;
    DL_FOREACH_SAFE(attacher->leaving, place, next)
    {
        if (links != NULL)
            links[at++] = place->link;
        else
            attacher->options.let_go(attacher->options.context, &place->link, 1);
        destroy_place(place);
    }
    if (at != 0)
        attacher->options.let_go(attacher->options.context, links, at);
    free(links);
}

void attacher_destroy(struct attacher **attacher)
{
    struct attacher *gone = *attacher;
    if (gone == NULL)
        return;
    pthread_mutex_lock(&gone->lock);
    gone->ends = true;
    pthread_cond_signal(&gone->wake);
    pthread_mutex_unlock(&gone->lock);
    pthread_join(gone->thread, NULL);
    let_all_go(gone);
    free_told(gone->told);
    pthread_cond_destroy(&gone->wake);
    pthread_mutex_destroy(&gone->lock);
    free(gone);
    *attacher = NULL;
}
