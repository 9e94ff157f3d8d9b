/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching ports. Each counter that was found is a watch with its own last reading. Invariants: a change is told with
 * an interval that surely holds it, also when the place that keeps it refreshes only now and then; what could not be
 * told stays to be told.
 */
#include "nic/port/port_counter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nic/port/counter_track.h"
#include "nic/port/ethtool.h"
#include "nic/source/source.h"
#include "wire/clock.h"
#include "wire/log.h"

#define TARGETS_MAX        (2 * SOURCE_PORTS_MAX)
#define WATCHES_MAX        4096
#define CHANGES_MAX        4096
#define VOLUME_INTERVAL_NS 100000000u
#define LIFESPAN_MS        10 /* of the kernel's copy of hardware counters, where it does not say */
#define MS                 1000000u
#define REST_TIMES         20 /* a round may take this part of the time */

enum place { PLACE_STATE, PLACE_COUNTERS, PLACE_HARDWARE, PLACE_INTERFACE, PLACE_ETHTOOL, PLACE_XSTAT };

static const struct foreign {
    enum place place;
    const char *name;
    enum port_metric metric;
    uint32_t factor;
    uint8_t bits;
} foreign_counters[] = {
#define PORT_COUNTER(place, name, metric, factor, bits) {PLACE_##place, name, PORT_METRIC_##metric, factor, bits},
#include "nic/port/port_counter.def"
#undef PORT_COUNTER
};
#define FOREIGN_COUNT (sizeof foreign_counters / sizeof foreign_counters[0])

static const struct {
    const char *driver;
    uint32_t delay_ms;
} driver_delays[] = {
#define DRIVER_DELAY(driver, delay_ms) {driver, delay_ms},
#include "nic/port/driver_delay.def"
#undef DRIVER_DELAY
};

struct watch {
    const struct foreign *foreign;
    size_t target;
    uint8_t priority;
    int file;         /* STATE to INTERFACE */
    size_t statistic; /* ETHTOOL */
    struct counter_track track;
    uint64_t read_ns; /* before the last reading began */
    uint64_t told;
    uint64_t told_ns;
    uint64_t told_from_ns;
    uint64_t told_to_ns;
    uint64_t changed_from_ns; /* 0: nothing to tell */
    uint64_t changed_to_ns;
    uint32_t flags;
    bool was_told;
};

struct port_counters {
    struct port_counter_target targets[TARGETS_MAX];
    struct ethtool *ethtools[TARGETS_MAX];
    uint64_t delays_ns[TARGETS_MAX][PLACE_XSTAT + 1];
    size_t targets_count;
    uint64_t interval_ns;
    struct watch *watches;
    size_t watches_count;
    bool is_repeat_asked; /* under the lock, as all below */
    bool is_stopped;
    bool is_started;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct record_port_counter *changes;
    size_t changes_first;
    size_t changes_count;
};

/* ---- what there is ---- */

/* '%' stands for a digit. */
static bool is_called(const char *name, const char *pattern, uint8_t *priority)
{
    *priority = PRIORITY_NONE;
    for (; *pattern != '\0'; name++, pattern++) {
        if (*pattern == '%' && *name >= '0' && *name <= '7')
            *priority = (uint8_t)(*name - '0');
        else if (*pattern != *name)
            return false;
    }
    return *name == '\0';
}

static struct watch *find_watch(struct port_counters *counters, size_t target, enum port_metric metric,
                                uint8_t priority)
{
    for (size_t i = 0; i < counters->watches_count; i++) {
        struct watch *watch = &counters->watches[i];
        if (watch->target == target && watch->foreign->metric == metric && watch->priority == priority)
            return watch;
    }
    return NULL;
}

/* NULL when the metric is watched already, or there is no room. */
static struct watch *add_watch(struct port_counters *counters, size_t target, const struct foreign *foreign,
                               uint8_t priority)
{
    if (counters->watches_count == WATCHES_MAX || find_watch(counters, target, foreign->metric, priority) != NULL)
        return NULL;
    struct watch *watch = &counters->watches[counters->watches_count++];
    *watch = (struct watch){.foreign = foreign, .target = target, .priority = priority, .file = -1};
    return watch;
}

static bool read_file(int file, uint64_t *value)
{
    char text[64];
    ssize_t length = pread(file, text, sizeof text - 1, 0);

    if (length <= 0)
        return false;
    text[length] = '\0';
    return counter_read_text(text, value);
}

static void format_path(const struct port_counter_target *target, const char *sysfs, enum place place, const char *name,
                        char *path, size_t bytes)
{
    static const char *const folders[] = {
        [PLACE_STATE] = "", [PLACE_COUNTERS] = "counters/", [PLACE_HARDWARE] = "hw_counters/"};

    if (place == PLACE_INTERFACE)
        snprintf(path, bytes, "%s/class/net/%s/%s", sysfs, target->interface, name);
    else
        snprintf(path, bytes, "%s/class/infiniband/%s/ports/%u/%s%s", sysfs, target->device, target->device_port,
                 folders[place], name);
}

static bool has_place(const struct port_counter_target *target, enum place place)
{
    return (place == PLACE_INTERFACE ? target->interface[0] : target->device[0]) != '\0';
}

/* A file that is not there, or holds no number ("N/A (no PMA)"), is no counter. */
static void find_files(struct port_counters *counters, size_t target, const char *sysfs)
{
    char path[512];
    uint64_t value;

    for (size_t i = 0; i < FOREIGN_COUNT; i++) {
        const struct foreign *foreign = &foreign_counters[i];
        if (foreign->place > PLACE_INTERFACE || !has_place(&counters->targets[target], foreign->place))
            continue;
        format_path(&counters->targets[target], sysfs, foreign->place, foreign->name, path, sizeof path);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        struct watch *watch =
            file >= 0 && read_file(file, &value) ? add_watch(counters, target, foreign, PRIORITY_NONE) : NULL;
        if (watch != NULL)
            watch->file = file;
        else if (file >= 0)
            close(file);
    }
}

static void find_statistics(struct port_counters *counters, size_t target)
{
    struct ethtool *ethtool;
    size_t watches_before = counters->watches_count;
    uint8_t priority;

    if (counters->targets[target].interface[0] == '\0' ||
        ethtool_open(&counters->ethtools[target], counters->targets[target].interface) != 0)
        return;
    ethtool = counters->ethtools[target];
    for (size_t i = 0; i < FOREIGN_COUNT; i++) {
        if (foreign_counters[i].place != PLACE_ETHTOOL)
            continue;
        for (size_t at = 0; at < ethtool_count(ethtool); at++) {
            struct watch *watch = is_called(ethtool_name(ethtool, at), foreign_counters[i].name, &priority)
                                      ? add_watch(counters, target, &foreign_counters[i], priority)
                                      : NULL;
            if (watch != NULL)
                watch->statistic = at;
        }
    }
    for (size_t i = 0; i < sizeof driver_delays / sizeof driver_delays[0]; i++)
        if (strcmp(ethtool_driver(ethtool), driver_delays[i].driver) == 0)
            counters->delays_ns[target][PLACE_ETHTOOL] = (uint64_t)driver_delays[i].delay_ms * MS;
    if (counters->watches_count == watches_before) /* nothing of it is of use: it need not be read */
        ethtool_close(&counters->ethtools[target]);
}

/* How old the kernel's copy of the hardware counters may be. */
static void find_lifespan(struct port_counters *counters, size_t target, const char *sysfs)
{
    char path[512];
    uint64_t lifespan_ms = LIFESPAN_MS;

    format_path(&counters->targets[target], sysfs, PLACE_HARDWARE, "lifespan", path, sizeof path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        read_file(file, &lifespan_ms);
    if (file >= 0)
        close(file);
    counters->delays_ns[target][PLACE_HARDWARE] = lifespan_ms * MS;
}

/* ---- reading ---- */

static bool is_time_to_tell(const struct watch *watch, uint64_t now_ns)
{
    return port_metric_kind(watch->foreign->metric) != PORT_METRIC_VOLUME ||
           now_ns >= watch->told_ns + VOLUME_INTERVAL_NS;
}

static bool put_change(struct port_counters *counters, const struct watch *watch, uint64_t value)
{
    pthread_mutex_lock(&counters->lock);
    bool has_room = counters->changes_count < CHANGES_MAX;
    if (has_room) {
        size_t at = (counters->changes_first + counters->changes_count++) % CHANGES_MAX;
        counters->changes[at] = (struct record_port_counter){
            .header.source = counters->targets[watch->target].port,
            .metric = (uint16_t)watch->foreign->metric,
            .priority = watch->priority,
            .flags = watch->flags,
            .from_ns = watch->changed_from_ns,
            .to_ns = watch->changed_to_ns,
            .value = value,
        };
    }
    pthread_mutex_unlock(&counters->lock);
    return has_room;
}

/* A state is told when it is first read; what counts, when it first rises. */
static void take_value(struct port_counters *counters, struct watch *watch, uint64_t raw, uint64_t from_ns,
                       uint64_t to_ns)
{
    bool is_state = port_metric_kind(watch->foreign->metric) == PORT_METRIC_STATE;
    bool is_first = !watch->track.is_known;
    bool is_reset;
    bool has_changed = counter_track_advance(&watch->track, raw, watch->foreign->bits, &is_reset);
    uint64_t value = is_state ? raw : watch->track.total * watch->foreign->factor;
    uint64_t delay_ns = counters->delays_ns[watch->target][watch->foreign->place];

    if (is_state)
        has_changed = is_first || raw != watch->told;
    if (has_changed && watch->changed_from_ns == 0)
        watch->changed_from_ns = is_first ? from_ns : watch->read_ns - delay_ns;
    if (has_changed)
        watch->changed_to_ns = to_ns;
    watch->flags |= is_reset && !is_state ? PORT_COUNTER_RESET : 0;
    watch->read_ns = from_ns;
    if (watch->changed_from_ns == 0 || !is_time_to_tell(watch, to_ns) || !put_change(counters, watch, value))
        return;
    watch->told = value;
    watch->told_ns = to_ns;
    watch->told_from_ns = watch->changed_from_ns;
    watch->told_to_ns = watch->changed_to_ns;
    watch->was_told = true;
    watch->changed_from_ns = 0;
    watch->flags = 0;
}

struct visit {
    struct port_counters *counters;
    size_t target;
    uint64_t from_ns;
};

static void take_statistic(void *context, const char *name, uint64_t value)
{
    struct visit *visit = context;
    uint8_t priority;

    for (size_t i = 0; i < FOREIGN_COUNT; i++) {
        const struct foreign *foreign = &foreign_counters[i];
        if (foreign->place != PLACE_XSTAT || !is_called(name, foreign->name, &priority))
            continue;
        struct watch *watch = find_watch(visit->counters, visit->target, foreign->metric, priority);
        if (watch == NULL)
            watch = add_watch(visit->counters, visit->target, foreign, priority);
        if (watch != NULL && watch->foreign == foreign)
            take_value(visit->counters, watch, value, visit->from_ns, clock_now_ns());
        return;
    }
}

static void read_target(struct port_counters *counters, size_t target)
{
    struct visit visit = {.counters = counters, .target = target, .from_ns = clock_now_ns()};
    const uint64_t *statistics = counters->ethtools[target] == NULL ? NULL : ethtool_read(counters->ethtools[target]);
    uint64_t read_ns = clock_now_ns();
    uint64_t value;

    for (size_t i = 0; i < counters->watches_count; i++) {
        struct watch *watch = &counters->watches[i];
        if (watch->target != target || watch->foreign->place == PLACE_XSTAT)
            continue;
        if (watch->foreign->place == PLACE_ETHTOOL && statistics != NULL)
            take_value(counters, watch, statistics[watch->statistic], visit.from_ns, read_ns);
        uint64_t before_ns = clock_now_ns();
        if (watch->foreign->place != PLACE_ETHTOOL && read_file(watch->file, &value))
            take_value(counters, watch, value, before_ns, clock_now_ns());
    }
    visit.from_ns = clock_now_ns();
    if (counters->targets[target].source != NULL)
        source_statistics(counters->targets[target].source, counters->targets[target].port, take_statistic, &visit);
}

/* Everything that was ever told is told again. */
static void repeat_all(struct port_counters *counters)
{
    for (size_t i = 0; i < counters->watches_count; i++) {
        struct watch *watch = &counters->watches[i];
        if (!watch->was_told || watch->changed_from_ns != 0)
            continue;
        watch->changed_from_ns = watch->told_from_ns;
        watch->changed_to_ns = watch->told_to_ns;
    }
}

void port_counters_round(struct port_counters *counters)
{
    pthread_mutex_lock(&counters->lock);
    bool is_repeat_asked = counters->is_repeat_asked;
    counters->is_repeat_asked = false;
    pthread_mutex_unlock(&counters->lock);
    if (is_repeat_asked)
        repeat_all(counters);
    for (size_t i = 0; i < counters->targets_count; i++)
        read_target(counters, i);
}

static void *run(void *context)
{
    struct port_counters *counters = context;
    struct timespec due;

    clock_gettime(CLOCK_MONOTONIC, &due);
    pthread_mutex_lock(&counters->lock);
    while (!counters->is_stopped) {
        pthread_mutex_unlock(&counters->lock);
        uint64_t began_ns = clock_now_ns();
        port_counters_round(counters);
        uint64_t now_ns = clock_now_ns();
        uint64_t next_ns = (uint64_t)due.tv_sec * 1000000000u + (uint64_t)due.tv_nsec + counters->interval_ns;
        uint64_t rested_ns = now_ns + REST_TIMES * (now_ns - began_ns);
        if (next_ns < rested_ns)
            next_ns = rested_ns;
        due = (struct timespec){.tv_sec = (time_t)(next_ns / 1000000000u), .tv_nsec = (long)(next_ns % 1000000000u)};
        pthread_mutex_lock(&counters->lock);
        while (!counters->is_stopped && clock_now_ns() < next_ns)
            pthread_cond_timedwait(&counters->wake, &counters->lock, &due);
    }
    pthread_mutex_unlock(&counters->lock);
    return NULL;
}

/* ---- the contract ---- */

int port_counters_open(struct port_counters **counters, const struct port_counter_options *options)
{
    struct port_counters *made = calloc(1, sizeof *made);
    pthread_condattr_t attributes;

    if (made == NULL)
        return log_error_return(-ENOMEM, "no memory for the ports' counters");
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&made->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    made->watches = calloc(WATCHES_MAX, sizeof *made->watches);
    made->changes = calloc(CHANGES_MAX, sizeof *made->changes);
    if (made->watches == NULL || made->changes == NULL) {
        port_counters_close(&made);
        return log_error_return(-ENOMEM, "no memory for the ports' counters");
    }
    made->interval_ns = options->interval_ns;
    made->targets_count = options->targets_count < TARGETS_MAX ? options->targets_count : TARGETS_MAX;
    for (size_t i = 0; i < made->targets_count; i++) {
        made->targets[i] = options->targets[i];
        find_files(made, i, options->sysfs);
        find_lifespan(made, i, options->sysfs);
        find_statistics(made, i);
    }
    *counters = made;
    return 0;
}

void port_counters_close(struct port_counters **counters)
{
    struct port_counters *closed = *counters;

    if (closed == NULL)
        return;
    pthread_mutex_lock(&closed->lock);
    closed->is_stopped = true;
    pthread_cond_signal(&closed->wake);
    pthread_mutex_unlock(&closed->lock);
    if (closed->is_started)
        pthread_join(closed->thread, NULL);
    for (size_t i = 0; i < closed->watches_count; i++)
        if (closed->watches[i].file >= 0)
            close(closed->watches[i].file);
    for (size_t i = 0; i < closed->targets_count; i++)
        ethtool_close(&closed->ethtools[i]);
    pthread_cond_destroy(&closed->wake);
    pthread_mutex_destroy(&closed->lock);
    free(closed->watches);
    free(closed->changes);
    free(closed);
    *counters = NULL;
}

int port_counters_start(struct port_counters *counters)
{
    int error = -pthread_create(&counters->thread, NULL, run, counters);

    counters->is_started = error == 0;
    return error == 0 ? 0
                      : log_error_return(error, "cannot start the thread that reads the ports' counters: %s",
                                         strerror(-error));
}

bool port_counters_take(struct port_counters *counters, struct record_port_counter *change)
{
    if (pthread_mutex_trylock(&counters->lock) != 0)
        return false;
    bool has_one = counters->changes_count != 0;
    if (has_one) {
        *change = counters->changes[counters->changes_first];
        counters->changes_first = (counters->changes_first + 1) % CHANGES_MAX;
        counters->changes_count--;
    }
    pthread_mutex_unlock(&counters->lock);
    return has_one;
}

void port_counters_repeat(struct port_counters *counters)
{
    pthread_mutex_lock(&counters->lock);
    counters->is_repeat_asked = true;
    pthread_mutex_unlock(&counters->lock);
}

size_t port_counters_watched(const struct port_counters *counters, uint32_t port)
{
    size_t count = 0;

    for (size_t i = 0; i < counters->watches_count; i++)
        count += counters->targets[counters->watches[i].target].port == port;
    return count;
}
