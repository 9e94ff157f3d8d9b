/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qpscope-host: who owns each queue pair, and what each rank asked the collective library for. Sleeps in epoll; wakes
 * for events, for new executable mappings, and every 50 ms for what every stream must have.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "host/budget.h"
#include "host/control.h"
#include "host/counter.h"
#include "host/detach.h"
#include "host/discovery.h"
#include "host/follow.h"
#include "host/probe.h"
#include "host/publisher.h"
#include "host/resident.h"
#include "host/rights.h"
#include "host/tracker/tracker.h"
#include "host/watch.h"
#include "host/work.h"
#include "wire/log.h"
#include "wire/option.h"
#include "wire/seal.h"

#define TICK_MS 50
#define SCAN_MS 1000
/* How often queue pairs that were there are looked at again. */
#define RESIDENT_TICKS 200
/* A probe takes its time before it hands its event over. */
#define HAND_OVER_NS 1000000
/* As many as are probed, and 0. */
#define LIBRARIES_NOTED 257
/* What following a thread takes when it leaves a CPU or comes to one: tests/bench/host. */
#define SWITCH_COST_NS 200

struct settings {
    struct emitter_options emitter;
    const char *control;
    struct option_list roots;
    struct option_list libraries;
    uint64_t buffer_bytes;
    uint64_t probe_time_ns;
    bool check;
    bool detach;
    bool json;
    bool verbose;
};

#define SETTING(member) offsetof(struct settings, member)
static const struct option_spec option_specs[] = {
    EMITTER_OPTIONS(settings, emitter),
    {.name = "control",
     .kind = OPTION_TEXT,
     .offset = SETTING(control),
     .argument = "URL",
     .help = "hear at URL what to follow more closely for a while (qpscope follow)"},
    {.name = "root",
     .kind = OPTION_TEXT_LIST,
     .offset = SETTING(roots),
     .argument = "DIR",
     .help = "look for libraries in the tree below DIR before a job starts (default /)"},
    {.name = "library",
     .kind = OPTION_TEXT_LIST,
     .offset = SETTING(libraries),
     .argument = "FILE",
     .help = "probe FILE before a job maps it"},
    {.name = "buffer",
     .kind = OPTION_BYTES,
     .offset = SETTING(buffer_bytes),
     .argument = "SIZE",
     .help = "size of the probes' ring buffer (4MiB)",
     .minimum = 4096,
     .maximum = 1ULL << 30},
    {.name = "probe-time",
     .kind = OPTION_DURATION,
     .offset = SETTING(probe_time_ns),
     .argument = "TIME",
     .help = "let probes take at most so much of each second of a process (1600us); 1s: as much as they do",
     .minimum = 1000,
     .maximum = 1000000000},
    {.name = "check",
     .kind = OPTION_FLAG,
     .offset = SETTING(check),
     .help = "load the probes, say what is missing if they cannot be, and end"},
    {.name = "detach",
     .kind = OPTION_FLAG,
     .offset = SETTING(detach),
     .help = "end every qpscope-host on this machine, and its probes with it; say what was found, and end"},
    {.name = "json",
     .short_name = 'j',
     .kind = OPTION_FLAG,
     .offset = SETTING(json),
     .help = "print each record as a JSON object on a line of its own"},
    {.name = "verbose",
     .short_name = 'v',
     .kind = OPTION_FLAG,
     .offset = SETTING(verbose),
     .help = "say more on stderr"},
};

static const struct option_program program = {
    .name = "qpscope-host",
    .summary = "tell who owns each RDMA queue pair and what each rank asked of NCCL or RCCL",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof option_specs / sizeof option_specs[0],
    .epilogue = "Libraries are found by their symbols in every process, whatever their file's name or root.\n"
                "Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.\n"
                "\n"
                "Exit codes: 0 ended by SIGINT or SIGTERM, 1 failure, 2 usage.\n",
};

static const struct counter_spec counter_specs[] = {
#define COUNTER(name, text, help) {text, help},
#include "host/counter.def"
#undef COUNTER
};

struct host {
    uint64_t counters[HOST_COUNTERS];
    struct counter_table counter_table;
    struct probe *probe;
    struct watch *watch; /* NULL = may not be had */
    uint64_t ticks;
    struct discovery *discovery;
    struct tracker *tracker;
    struct publisher *publisher;
    struct control *control; /* NULL = nobody is heard */
    struct follow *follow;
    struct work *work;
    bool splits[LIBRARIES_NOTED]; /* libraries that define ncclCommSplit, by number */
    struct budget *budget;
    struct budget_hits hits;
    uint64_t calls; /* of `hits` */
    uint64_t described_epoch;
    int poll;
    int timer;
    int signals;
};

/* ---- what the parts ask of each other ---- */

static void take_event(void *context, const void *event, size_t length_bytes)
{
    struct host *host = context;
    tracker_event(host->tracker, event, length_bytes);
}

static void publish(void *context, enum record_kind kind, void *record)
{
    struct host *host = context;
    publisher_add(host->publisher, kind, record);
}

static bool library_splits(void *context, uint64_t number)
{
    const struct host *host = context;
    return number < LIBRARIES_NOTED && host->splits[number];
}

static void find_library_path(void *context, uint32_t pid, uint64_t number, char *path, size_t path_bytes)
{
    const struct host *host = context;
    discovery_path(host->discovery, number, (pid_t)pid, path, path_bytes);
}

static int read_gid(void *context, uint32_t pid, const char *device, unsigned port, unsigned index,
                    uint8_t gid[ADDRESS_BYTES])
{
    (void)context;
    return process_read_gid((pid_t)pid, device, port, index, gid);
}

static void identify(void *context, uint32_t pid, identity_visit *visit, void *visitor)
{
    (void)context;
    identity_read("", (pid_t)pid, visit, visitor);
}

static bool is_running(void *context, uint32_t pid)
{
    (void)context;
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

static void follow(void *context, uint32_t pid)
{
    const struct host *host = context;
    probe_follow(host->probe, pid);
}

static void raise_counter(struct host *host, enum host_counter counter, uint64_t value)
{
    const uint64_t present = counter_read(host->counters, counter);
    if (value > present)
        counter_add(host->counters, counter, value - present);
}

static void find_layout(struct host *host, const struct library *library, int descriptor)
{
    struct layout layout;
    const int error = layout_find(descriptor, &layout);
    if (error != 0) {
        log_warning("%s: where it keeps a communicator's rank is not found in its code: communicators that are there "
                    "before it is probed get no rank and no name",
                    library->path);
        return;
    }
    probe_set_layout(host->probe, library->number, &layout);
    log_debug("%s: version %u, rank at %u of a communicator, hash %s", library->path, layout.version, layout.rank_bytes,
              layout.has_hash ? "before it" : "unknown: this version has none");
}

static size_t attach(void *context, const struct library *library, int descriptor, const struct library_places *places,
                     uint64_t mapped_ns)
{
    struct host *host = context;
    if (library->number < LIBRARIES_NOTED)
        host->splits[library->number] = library_has(places, "ncclCommSplit");
    if (places->kinds[LIBRARY_COLLECTIVE])
        find_layout(host, library, descriptor);
    const size_t attached = probe_attach(host->probe, library->number, descriptor, places);
    counter_add(host->counters, COUNT_PROBES_FAILED, places->count - attached);
    char kinds[128];
    library_describe(places, kinds, sizeof kinds);
    log_info("%zu probes in %s (%s)", attached, library->path, kinds);
    if (mapped_ns != 0) {
        const uint64_t late_ns = publisher_now_ns(host->publisher) - mapped_ns;
        raise_counter(host, COUNT_ATTACH_MAX, late_ns);
        log_info("they were set %llu us after a process had mapped it", (unsigned long long)late_ns / 1000);
    }
    return attached;
}

static int find_file_key(void *context, int descriptor, struct file_key *file)
{
    const struct host *host = context;
    return probe_file_key(host->probe, descriptor, file);
}

static void look_at_mapping(void *context, pid_t pid, const struct mapping *mapping, uint64_t at_ns)
{
    struct host *host = context;
    counter_add(host->counters, COUNT_MAPPINGS, 1);
    discovery_look_at_mapping(host->discovery, pid, mapping, at_ns);
}

/* ---- what is followed when somebody asks ---- */

static int set_work(void *context, pid_t pid, int descriptor, const struct provider_place *place)
{
    const struct host *host = context;
    return probe_follow_work(host->probe, pid, descriptor, place);
}

static int begin_work(struct host *host, const struct record_follow *request)
{
    probe_allow_work(host->probe, (int64_t)request->hits_max);
    tracker_each_queue_pair(host->tracker, work_learn, host->work);
    const int error = work_set(host->work, (pid_t)request->pid);
    if (error != 0)
        probe_end_work(host->probe);
    return error;
}

static enum detail_kind detail_of(enum follow_what what)
{
    return what == FOLLOW_SUBMISSIONS ? DETAIL_SUBMISSIONS : DETAIL_DELAYS;
}

static int begin_following(void *context, enum follow_what what, const struct record_follow *request)
{
    const struct host *host = context;
    if (what == FOLLOW_WORK)
        return begin_work(context, request);
    if (what == FOLLOW_SUBMISSIONS || what == FOLLOW_DELAYS) {
        probe_allow_detail(host->probe, detail_of(what), (pid_t)request->pid, (int64_t)request->hits_max);
        return 0;
    }
    return log_error_return(-EOPNOTSUPP, "asked to follow something that this version does not know (%#x)", what);
}

static void end_following(void *context, enum follow_what what)
{
    const struct host *host = context;
    if (what == FOLLOW_WORK)
        probe_end_work(host->probe);
    else
        probe_allow_detail(host->probe, detail_of(what), 0, 0);
}

static int64_t hits_left(void *context, enum follow_what what)
{
    const struct host *host = context;
    return what == FOLLOW_WORK ? probe_work_left(host->probe) : probe_detail_left(host->probe, detail_of(what));
}

static uint64_t read_clock(void *context)
{
    const struct host *host = context;
    return publisher_now_ns(host->publisher);
}

/* What the probes still hold belongs to it. */
static void publish_followed(void *context, const struct record_followed *record)
{
    struct host *host = context;
    struct record_followed copy = *record;
    probe_read(host->probe);
    publisher_add(host->publisher, RECORD_FOLLOWED, &copy);
}

static void take_request(void *context, const struct record_follow *request)
{
    struct host *host = context;
    follow_request(host->follow, request);
}

static void read_requests(struct host *host)
{
    counter_add(host->counters, COUNT_REQUESTS_STRANGE, control_read(host->control, take_request, host));
}

static int open_following(struct host *host, const struct settings *settings)
{
    const struct work_options work_options = {set_work, host};
    const struct follow_options follow_options = {
        begin_following, end_following, hits_left, read_clock, publish_followed, host,
    };
    int error = work_create(&host->work, &work_options);
    if (error == 0)
        error = follow_create(&host->follow, &follow_options);
    if (error == 0 && settings->control != NULL)
        error = control_open(&host->control, settings->control, settings->emitter.key_file);
    return error;
}

/* ---- what the probes may take ---- */

static void set_duty(void *context, enum probe_duty duty, bool on)
{
    const struct host *host = context;
    probe_set_duty(host->probe, duty, on);
    if (duty == DUTY_MARKER && !on)
        tracker_markers_end(host->tracker);
}

/* Of a group's calls the returns are hit too. A marker has an entry and a return. */
static void count_hits(struct host *host)
{
    struct budget_hits *hits = &host->hits;
    const uint64_t calls = counter_read(host->counters, COUNT_CALLS);
    const uint64_t groups = counter_read(host->counters, COUNT_GROUPS);
    const uint64_t markers = counter_read(host->counters, COUNT_MARKERS);
    if (probe_duty(host->probe, DUTY_RETURN))
        hits->total[DUTY_RETURN][COST_RETURN] += calls - host->calls;
    host->calls = calls;
    hits->total[DUTY_ALWAYS][COST_ENTRY] = calls + 2 * groups;
    hits->total[DUTY_ALWAYS][COST_RETURN] = groups;
    hits->total[DUTY_MARKER][COST_ENTRY] = markers;
    hits->total[DUTY_MARKER][COST_RETURN] = markers;
    hits->total[DUTY_DELAY][COST_SWITCH] = 2 * counter_read(host->counters, COUNT_SWITCHES);
    hits->processes = tracker_processes(host->tracker);
}

static void keep_within_budget(struct host *host, uint64_t now_ns)
{
    count_hits(host);
    raise_counter(host, COUNT_BACK_OFFS, budget_tick(host->budget, now_ns, &host->hits));
    probe_set_duty(host->probe, DUTY_DELAY, host->hits.processes != 0 && budget_allows(host->budget, DUTY_DELAY));
}

static int open_budget(struct host *host, const struct settings *settings)
{
    struct cost cost;
    struct budget_options options = {
        .share = settings->probe_time_ns == 1000000000 ? 1e9 : (double)settings->probe_time_ns / 1e9,
        .set = set_duty,
        .context = host,
    };
    probe_cost(host->probe, &cost);
    options.cost_ns[COST_ENTRY] = cost.entry_ns;
    options.cost_ns[COST_RETURN] = cost.return_ns;
    options.cost_ns[COST_SWITCH] = SWITCH_COST_NS;
    return budget_create(&host->budget, &options);
}

/* ---- running ---- */

static void read_mappings(struct host *host)
{
    if (host->watch == NULL)
        return;
    const uint64_t lost = watch_read(host->watch, look_at_mapping, host);
    if (lost == 0)
        return;
    counter_add(host->counters, COUNT_MAPPINGS_LOST, lost);
    discovery_scan_processes(host->discovery);
}

static void describe_again(struct host *host)
{
    const uint64_t epoch = publisher_epoch(host->publisher);
    if (epoch != host->described_epoch)
        tracker_describe(host->tracker);
    host->described_epoch = epoch;
}

/* Where no mapping is told of. */
static void scan_now_and_then(struct host *host)
{
    if (host->watch == NULL && host->ticks % (SCAN_MS / TICK_MS) == 0)
        discovery_scan_processes(host->discovery);
}

/* What was made up to the list has been told by its probe, if by any, before the list is gone through. */
static int read_residents(struct host *host)
{
    struct resident_list list = {0};
    resident_read(&list);
    const int error = probe_read(host->probe);
    if (error == 0)
        tracker_residents(host->tracker, list.items, list.count, publisher_now_ns(host->publisher));
    resident_free(&list);
    return error;
}

static int look_at_residents(struct host *host)
{
    const bool due = host->ticks % RESIDENT_TICKS == 0 && counter_read(host->counters, COUNT_QUEUE_PAIRS_LATE) != 0;
    return due ? read_residents(host) : 0;
}

static int tick(struct host *host)
{
    struct probe_losses losses;
    uint64_t expirations;
    host->ticks++;
    if (read(host->timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN)
        return log_error_return(-errno, "cannot read the timer: %s", strerror(errno));
    const uint64_t before_ns = publisher_now_ns(host->publisher);
    const int error = probe_read(host->probe);
    if (error != 0)
        return error;
    publisher_cover(host->publisher, before_ns - HAND_OVER_NS);
    probe_losses(host->probe, &losses);
    tracker_lost(host->tracker, (uint32_t)losses.events, losses.events_at_ns);
    tracker_settle(host->tracker);
    tracker_tick(host->tracker, before_ns);
    follow_tick(host->follow);
    keep_within_budget(host, before_ns);
    const int looked = look_at_residents(host);
    if (looked != 0)
        return looked;
    raise_counter(host, COUNT_READS_FAILED, losses.reads);
    raise_counter(host, COUNT_PROCESSES_REFUSED, losses.processes);
    raise_counter(host, COUNT_QUEUE_PAIRS_IMPLAUSIBLE, losses.implausible);
    raise_counter(host, COUNT_SOCKET_CALLS_MISSED, losses.socket_calls);
    scan_now_and_then(host);
    const int published = publisher_tick(host->publisher);
    describe_again(host);
    return published;
}

static int run(struct host *host)
{
    for (;;) {
        struct epoll_event events[4];
        const int count = epoll_wait(host->poll, events, 4, -1);
        if (count < 0 && errno != EINTR)
            return log_error_return(-errno, "cannot wait for events: %s", strerror(errno));
        for (int i = 0; i < count; i++) {
            int error = 0;
            if (events[i].data.fd == host->signals)
                return 0;
            if (host->watch != NULL && events[i].data.fd == watch_descriptor(host->watch))
                read_mappings(host);
            else if (events[i].data.fd == host->timer)
                error = tick(host);
            else if (host->control != NULL && events[i].data.fd == control_descriptor(host->control))
                read_requests(host);
            else
                error = probe_read(host->probe);
            if (error != 0)
                return error;
        }
    }
}

/* ---- starting and ending ---- */

static int poll_add(const struct host *host, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    return epoll_ctl(host->poll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : -errno;
}

static int open_poll(struct host *host)
{
    const struct itimerspec interval = {.it_interval.tv_nsec = TICK_MS * 1000000, .it_value.tv_nsec = 1};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    host->poll = epoll_create1(EPOLL_CLOEXEC);
    host->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    host->signals = signalfd(-1, &signals, SFD_CLOEXEC);
    if (host->poll < 0 || host->timer < 0 || host->signals < 0 || timerfd_settime(host->timer, 0, &interval, NULL) != 0)
        return log_error_return(-errno, "cannot set up waiting: %s", strerror(errno));
    const int descriptors[] = {host->signals, probe_descriptor(host->probe), host->timer,
                               host->watch == NULL ? -1 : watch_descriptor(host->watch),
                               host->control == NULL ? -1 : control_descriptor(host->control)};
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++) {
        const int error = descriptors[i] < 0 ? 0 : poll_add(host, descriptors[i]);
        if (error != 0)
            return log_error_return(error, "cannot set up waiting: %s", strerror(-error));
    }
    return 0;
}

static int open_publisher(struct host *host, const struct settings *settings, int64_t clock_offset_ns)
{
    host->counter_table = (struct counter_table){counter_specs, host->counters, HOST_COUNTERS};
    struct publisher_options options = {.json = settings->json, .emitter = settings->emitter};
    options.emitter.kind = EMITTER_HOST;
    options.emitter.instance = "host";
    options.emitter.clock_offset_ns = clock_offset_ns;
    options.emitter.counters = &host->counter_table;
    return publisher_open(&host->publisher, &options);
}

static int open_tracker(struct host *host)
{
    const struct tracker_options options = {
        .system = {library_splits, find_library_path, read_gid, identify, is_running, follow, publish, host},
        .counters = host->counters,
        .started_ns = publisher_now_ns(host->publisher),
        .unique = seal_random(),
    };
    return tracker_create(&host->tracker, &options);
}

/* Without it jobs are still found, only later. */
static void open_watch(struct host *host)
{
    if (watch_open(&host->watch) != 0)
        log_warning("new processes and libraries are noticed up to %d ms late: what they do until then is missed",
                    SCAN_MS);
}

static int open_parts(struct host *host, const struct settings *settings)
{
    const struct probe_options probe_options = {settings->buffer_bytes, take_event, host};
    const struct discovery_options discovery_options = {attach, find_file_key, host, host->counters};
    int64_t clock_offset_ns = 0;
    uint64_t bound_ns = 0;
    int error = probe_open(&host->probe, &probe_options);
    if (error == 0)
        error = probe_clock_offset(host->probe, &clock_offset_ns, &bound_ns);
    if (error == 0)
        error = open_publisher(host, settings, clock_offset_ns);
    if (error == 0)
        error = open_tracker(host);
    if (error == 0)
        error = open_budget(host, settings);
    if (error == 0)
        open_watch(host);
    if (error == 0)
        error = discovery_create(&host->discovery, &discovery_options);
    if (error == 0)
        error = open_following(host, settings);
    if (error == 0)
        error = open_poll(host);
    log_debug("the probes' clock is %lld ns from this process's, within %llu ns", (long long)clock_offset_ns,
              (unsigned long long)bound_ns);
    return error;
}

/* New mappings are watched by now, so that nothing falls between. */
static int discover(struct host *host, const struct settings *settings)
{
    for (size_t i = 0; i < settings->libraries.count; i++) {
        const int error = discovery_look_at_file(host->discovery, settings->libraries.values[i]);
        if (error != 0)
            return error;
    }
    rights_warn();
    discovery_scan_processes(host->discovery);
    read_mappings(host);
    for (size_t i = 0; i < settings->roots.count; i++)
        discovery_scan_root(host->discovery, settings->roots.values[i]);
    if (settings->roots.count == 0)
        discovery_scan_root(host->discovery, "");
    read_mappings(host);
    const int error = read_residents(host);
    log_info("ready");
    return error;
}

static void close_parts(struct host *host)
{
    if (host->tracker != NULL)
        log_debug("%zu things are still followed", tracker_size(host->tracker));
    control_close(&host->control);
    follow_destroy(&host->follow);
    work_destroy(&host->work);
    discovery_destroy(&host->discovery);
    watch_close(&host->watch);
    budget_destroy(&host->budget);
    tracker_destroy(&host->tracker);
    probe_close(&host->probe);
    const int descriptors[] = {host->poll, host->timer, host->signals};
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
}

static int check(const struct settings *settings)
{
    const struct probe_options options = {.buffer_bytes = settings->buffer_bytes};
    struct probe *probe = NULL;
    const int error = probe_open(&probe, &options);
    probe_close(&probe);
    return error;
}

int main(int argc, char **argv)
{
    struct settings settings = {.buffer_bytes = 4 << 20, .probe_time_ns = 1600000};
    char **positionals;
    size_t positionals_count;
    const int parsed = option_parse(&program, argc, argv, &settings, &positionals, &positionals_count);
    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    log_init(program.name, settings.verbose ? LOG_DEBUG : LOG_INFO);
    if (settings.check)
        return check(&settings) == 0 ? 0 : 1;
    if (settings.detach)
        return detach_all() == 0 ? 0 : 1;
    static struct host host = {.poll = -1, .timer = -1, .signals = -1};
    int error = open_parts(&host, &settings);
    if (error == 0)
        error = discover(&host, &settings);
    if (error == 0)
        error = run(&host);
    if (error == 0)
        error = tick(&host);
    const int closed = publisher_close(&host.publisher);
    close_parts(&host);
    return error == 0 && closed == 0 ? 0 : 1;
}
