/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: workers share nothing but the stop flag: each has a queue of every port, memory, counters and a stream of
 * its own, with an emitter's name of its own ("NAME/2"), so that flow numbers need no agreement between them.
 */
#include "nic/team.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nic/relay.h"
#include "wire/log.h"

#define RELAY_INTERVAL_NS 5000000

struct member {
    struct worker worker;
    pthread_t thread;
    bool is_running;
    atomic_bool *stop;
    int error;
};

struct team {
    struct member *members;
    unsigned count;
    struct relay *relay; /* NULL: a single worker listens itself, or nobody does */
    struct exposition *exposition;
};

static int open_worker(struct team *team, const struct team_options *options, struct source *source)
{
    struct meter_options meter = options->meter;
    struct member *member = &team->members[team->count++];

    meter.memory_bytes /= options->source.queues;
    return worker_open(&member->worker, source, &meter);
}

/* A worker for each source; every source has found its owner, also when it fails. */
static int open_workers(struct team *team, const struct team_options *options)
{
    struct source *sources[SOURCE_QUEUES_MAX] = {NULL};
    int error = source_open_dpdk(sources, &options->source);

    for (unsigned i = 0; i < options->source.queues && sources[i] != NULL; i++) {
        if (error == 0)
            error = open_worker(team, options, sources[i]);
        else
            source_close(&sources[i]);
    }
    return error;
}

static int publish_one(struct member *member, const struct publisher_options *options, bool is_watched)
{
    struct publisher_options own = *options;

    if (own.emitter.instance == NULL)
        own.emitter.instance = member->worker.meter.ports[0].name;
    return worker_publish(&member->worker, &own, is_watched);
}

/* One of several: "NAME/2", "FILE.2", and control messages from the relay. */
static int publish_part(struct member *member, const struct publisher_options *options, unsigned index, bool is_watched)
{
    const char *name =
        options->emitter.instance == NULL ? member->worker.meter.ports[0].name : options->emitter.instance;
    struct publisher_options own = *options;
    char instance[64], path[4096], url[RELAY_URL_BYTES];

    snprintf(instance, sizeof instance, "%.27s/%u", name, index);
    own.emitter.instance = instance;
    if (options->emitter.record_path != NULL) {
        if (snprintf(path, sizeof path, "%s.%u", options->emitter.record_path, index) >= (int)sizeof path)
            return log_error_return(-ENAMETOOLONG, "--record: the path is too long");
        own.emitter.record_path = path;
    }
    relay_url(url, index);
    own.control_url = options->control_url == NULL ? NULL : url;
    return worker_publish(&member->worker, &own, is_watched);
}

static int expose(struct team *team, const struct metric_page_place *place)
{
    const struct worker *workers[SOURCE_QUEUES_MAX];

    for (unsigned i = 0; i < team->count; i++)
        workers[i] = &team->members[i].worker;
    return exposition_open(&team->exposition, place, workers, team->count);
}

static int open_parts(struct team *team, const struct team_options *options)
{
    const struct publisher_options *publisher = &options->publisher;

    team->members = calloc(options->source.queues, sizeof *team->members);
    int error = team->members == NULL ? -ENOMEM : open_workers(team, options);
    if (error == 0 && team->count > 1 && publisher->control_url != NULL)
        error = relay_open(&team->relay, publisher->control_url, publisher->emitter.key_file, team->count);
    for (unsigned i = 0; i < team->count && error == 0; i++)
        error = team->count == 1 ? publish_one(&team->members[i], publisher, options->http->address != NULL)
                                 : publish_part(&team->members[i], publisher, i, options->http->address != NULL);
    if (error == 0)
        error = port_watch_start(&team->members[0].worker, &options->ports, false);
    return error != 0 ? error : expose(team, options->http);
}

int team_open(struct team **team, const struct team_options *options)
{
    struct team *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    int error = open_parts(made, options);
    if (error != 0) {
        (void)team_close(&made);
        return error;
    }
    *team = made;
    return 0;
}

static void *work(void *opaque)
{
    struct member *member = opaque;

    member->error = worker_run(&member->worker, member->stop);
    if (member->error != 0)
        atomic_store(member->stop, true);
    return NULL;
}

/* Threads have names, so that a person can bind each to a processor (taskset, chrt). */
static int start_threads(struct team *team, atomic_bool *stop)
{
    char name[24]; /* the system takes 15 characters */

    for (unsigned i = 0; i < team->count; i++) {
        struct member *member = &team->members[i];
        member->stop = stop;
        int error = pthread_create(&member->thread, NULL, work, member);
        if (error != 0)
            return log_error_return(-error, "cannot start a thread for queue %u: %s", i, strerror(error));
        member->is_running = true;
        snprintf(name, sizeof name, "queue-%u", i);
        (void)pthread_setname_np(member->thread, name);
    }
    return 0;
}

static int join_threads(struct team *team)
{
    int error = 0;

    for (unsigned i = 0; i < team->count; i++) {
        struct member *member = &team->members[i];
        if (member->is_running)
            pthread_join(member->thread, NULL);
        member->is_running = false;
        error = error == 0 ? member->error : error;
    }
    return error;
}

int team_run(struct team *team, atomic_bool *stop)
{
    const struct timespec interval = {.tv_nsec = RELAY_INTERVAL_NS};
    size_t ports_count = team->members[0].worker.meter.ports_count;

    log_info("ready: watching %zu port%s with %u reader%s", ports_count, ports_count == 1 ? "" : "s", team->count,
             team->count == 1 ? "" : "s");
    if (team->count == 1)
        return worker_run(&team->members[0].worker, stop);
    int error = start_threads(team, stop);
    if (error != 0)
        atomic_store(stop, true);
    while (!atomic_load(stop)) {
        if (team->relay != NULL)
            relay_tick(team->relay);
        nanosleep(&interval, NULL);
    }
    int work_error = join_threads(team);
    return error != 0 ? error : work_error;
}

int team_close(struct team **team)
{
    int error = 0;

    if (*team == NULL)
        return 0;
    exposition_close(&(*team)->exposition);
    relay_close(&(*team)->relay);
    for (unsigned i = 0; i < (*team)->count; i++) {
        int worker_error = worker_close(&(*team)->members[i].worker);
        error = error == 0 ? worker_error : error;
    }
    free((*team)->members);
    free(*team);
    *team = NULL;
    return error;
}
