/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariants: mappings are watched before processes are looked at, so that no library falls between. Whatever takes
 * long (looking for libraries; setting probes is another thread's) lets a turn of the loop come between.
 */
#include "host/agent/agent_private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "host/probe/rights.h"
#include "host/process/resident.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/seal.h"

#define TICK_MS 50
#define SCAN_MS 1000
/* How often queue pairs that were there are looked at again. */
#define RESIDENT_TICKS 200
/* How often the ports of RDMA devices are looked at. */
#define PORTS_TICKS 20
/* A probe takes its time before it hands its event over. */
#define HAND_OVER_NS 1000000

static const struct counter_spec counter_specs[] = {
#define COUNTER(name, text, help) {text, help},
#include "host/counter.def"
#undef COUNTER
};

/* ---- running ---- */

static void scan_processes(struct agent *agent)
{
    agent->scans = true;
    discovery_scan_processes(agent->discovery);
    agent->scans = false;
}

static void read_mappings(struct agent *agent)
{
    if (agent->watch == NULL)
        return;
    const uint64_t lost = watch_read(agent->watch, agent_look_at_mapping, agent);
    if (lost == 0)
        return;
    counter_add(agent->counters, COUNT_MAPPINGS_LOST, lost);
    scan_processes(agent);
}

static void tell_port(void *context, const struct record_rdma_port *port)
{
    struct agent *agent = context;
    struct record_rdma_port record = *port;
    publisher_add(agent->publisher, RECORD_RDMA_PORT, &record);
}

static void look_at_ports(struct agent *agent)
{
    const bool all = publisher_epoch(agent->publisher) != agent->described_epoch;
    if (all || agent->ticks % PORTS_TICKS == 1)
        machine_ports_look(&agent->ports, publisher_now_ns(agent->publisher), all, tell_port, agent);
}

static void describe_again(struct agent *agent)
{
    const uint64_t epoch = publisher_epoch(agent->publisher);
    if (epoch != agent->described_epoch)
        tracker_describe(agent->tracker);
    agent->described_epoch = epoch;
}

/* Where no mapping is told of. */
static void scan_now_and_then(struct agent *agent)
{
    if (agent->watch == NULL && !agent->scans && agent->ticks % (SCAN_MS / TICK_MS) == 0)
        scan_processes(agent);
}

/* What was made up to the list has been told by its probe, if by any, before the list is gone through. */
static int read_residents(struct agent *agent)
{
    struct resident_list list = {0};
    resident_read(&list);
    const int error = probe_read(agent->probe);
    if (error == 0)
        tracker_residents(agent->tracker, list.items, list.count, publisher_now_ns(agent->publisher));
    resident_free(&list);
    return error;
}

static int look_at_residents(struct agent *agent)
{
    const bool due = agent->ticks % RESIDENT_TICKS == 0 && counter_read(agent->counters, COUNT_QUEUE_PAIRS_LATE) != 0;
    return due ? read_residents(agent) : 0;
}

/*
 * What was found at the start is not waited for: it is said when it is there. Queue pairs that were made while their
 * probes were being set are in the kernel's list by then.
 */
static int look_at_places(struct agent *agent)
{
    struct placement_counts counts;
    probe_tick(agent->probe);
    probe_count_places(agent->probe, &counts);
    agent_raise_counter(agent, COUNT_PROBES_FAILED, counts.failed);
    counter_set(agent->counters, COUNT_PROBES_WAITING, counts.waiting);
    counter_set(agent->counters, COUNT_PROBES_LEAVING, counts.leaving);
    if (agent->ready || !agent->discovered || counts.waiting != 0)
        return 0;
    __atomic_store_n(&agent->ready, true, __ATOMIC_RELAXED);
    const int error = read_residents(agent);
    log_info("ready: all probes are set, %.1f s after the start", (double)(clock_now_ns() - agent->started_ns) / 1e9);
    return error;
}

static void count_losses(struct agent *agent)
{
    struct probe_losses losses;
    probe_losses(agent->probe, &losses);
    tracker_lost(agent->tracker, (uint32_t)losses.events, losses.events_at_ns);
    agent_raise_counter(agent, COUNT_READS_FAILED, losses.reads);
    agent_raise_counter(agent, COUNT_PROCESSES_REFUSED, losses.processes);
    agent_raise_counter(agent, COUNT_QUEUE_PAIRS_IMPLAUSIBLE, losses.implausible);
    agent_raise_counter(agent, COUNT_SOCKET_CALLS_MISSED, losses.socket_calls);
}

static int tick(struct agent *agent)
{
    uint64_t expirations;
    agent->ticks++;
    if (read(agent->timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN)
        return log_error_return(-errno, "cannot read the timer: %s", strerror(errno));
    const uint64_t before_ns = publisher_now_ns(agent->publisher);
    const int error = probe_read(agent->probe);
    if (error != 0)
        return error;
    publisher_cover(agent->publisher, before_ns - HAND_OVER_NS);
    count_losses(agent);
    tracker_settle(agent->tracker);
    tracker_tick(agent->tracker, before_ns);
    follow_tick(agent->follow);
    agent_keep_within_budget(agent, before_ns);
    int looked = look_at_places(agent);
    if (looked == 0)
        looked = look_at_residents(agent);
    if (looked != 0)
        return looked;
    scan_now_and_then(agent);
    const int published = publisher_tick(agent->publisher);
    look_at_ports(agent);
    describe_again(agent);
    return published;
}

/* Mappings wait while processes are looked at, which is what they lead to. */
static int attend(struct agent *agent, int descriptor)
{
    if (agent->watch != NULL && descriptor == watch_descriptor(agent->watch)) {
        if (!agent->scans)
            read_mappings(agent);
        return 0;
    }
    if (descriptor == agent->timer)
        return tick(agent);
    if (agent->control != NULL && descriptor == control_descriptor(agent->control)) {
        agent_read_requests(agent);
        return 0;
    }
    if (descriptor == probe_descriptor(agent->probe))
        return probe_read(agent->probe);
    if (descriptor == reload_descriptor(agent->options->reload)) {
        agent_reload(agent, agent->options);
        return 0;
    }
    agent->ends = true; /* a signal */
    return 0;
}

/* One turn of the loop; what fails ends it. */
static void turn(struct agent *agent, int timeout_ms)
{
    struct epoll_event events[5];
    const int count = epoll_wait(agent->poll, events, 5, timeout_ms);
    if (count < 0 && errno != EINTR)
        agent->error = log_error_return(-errno, "cannot wait for events: %s", strerror(errno));
    for (int i = 0; i < count && agent->error == 0 && !agent->ends; i++)
        agent->error = attend(agent, events[i].data.fd);
    agent->ends |= agent->error != 0;
}

bool agent_go_on(void *context)
{
    struct agent *agent = context;
    if (agent->scans)
        turn(agent, 0);
    return !agent->ends;
}

static int run(struct agent *agent)
{
    while (!agent->ends)
        turn(agent, -1);
    return agent->error;
}

/* ---- starting and ending ---- */

static int poll_add(const struct agent *agent, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    return epoll_ctl(agent->poll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : -errno;
}

static int open_poll(struct agent *agent)
{
    const struct itimerspec interval = {.it_interval.tv_nsec = TICK_MS * 1000000, .it_value.tv_nsec = 1};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    agent->poll = epoll_create1(EPOLL_CLOEXEC);
    agent->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    agent->signals = signalfd(-1, &signals, SFD_CLOEXEC);
    if (agent->poll < 0 || agent->timer < 0 || agent->signals < 0 ||
        timerfd_settime(agent->timer, 0, &interval, NULL) != 0)
        return log_error_return(-errno, "cannot set up waiting: %s", strerror(errno));
    const int descriptors[] = {agent->signals,
                               probe_descriptor(agent->probe),
                               agent->timer,
                               agent->watch == NULL ? -1 : watch_descriptor(agent->watch),
                               agent->control == NULL ? -1 : control_descriptor(agent->control),
                               reload_descriptor(agent->options->reload)};
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++) {
        const int error = descriptors[i] < 0 ? 0 : poll_add(agent, descriptors[i]);
        if (error != 0)
            return log_error_return(error, "cannot set up waiting: %s", strerror(-error));
    }
    return 0;
}

static int open_publisher(struct agent *agent, const struct agent_options *options, int64_t clock_offset_ns)
{
    agent->counter_table = (struct counter_table){counter_specs, agent->counters, HOST_COUNTERS};
    struct publisher_options publisher = {.json = options->json, .emitter = options->emitter};
    publisher.emitter.kind = EMITTER_HOST;
    publisher.emitter.outlet = "host";
    publisher.emitter.instance = "host";
    publisher.emitter.clock_offset_ns = clock_offset_ns;
    publisher.emitter.counters = &agent->counter_table;
    return publisher_open(&agent->publisher, &publisher);
}

static int open_tracker(struct agent *agent)
{
    const struct tracker_options tracker = {
        .system = agent_tracker_system(agent),
        .counters = agent->counters,
        .started_ns = publisher_now_ns(agent->publisher),
        .unique = seal_random(),
    };
    return tracker_create(&agent->tracker, &tracker);
}

/* Without it jobs are still found, only later. */
static void open_watch(struct agent *agent)
{
    if (watch_open(&agent->watch) != 0)
        log_warning("new processes and libraries are noticed up to %d ms late: what they do until then is missed",
                    SCAN_MS);
}

static int open_parts(struct agent *agent, const struct agent_options *options)
{
    const struct probe_options probe_options = {
        options->buffer_bytes,
        agent_take_event,
        agent_take_attached,
        agent,
    };
    const struct discovery_options discovery_options = agent_discovery_options(agent);
    int64_t clock_offset_ns = 0;
    uint64_t bound_ns = 0;
    int error = probe_open(&agent->probe, &probe_options);
    if (error == 0)
        error = probe_clock_offset(agent->probe, &clock_offset_ns, &bound_ns);
    if (error == 0)
        error = open_publisher(agent, options, clock_offset_ns);
    if (error == 0)
        error = open_tracker(agent);
    if (error == 0)
        error = agent_open_budget(agent, options);
    if (error == 0)
        open_watch(agent);
    if (error == 0)
        error = discovery_create(&agent->discovery, &discovery_options);
    if (error == 0)
        error = agent_open_requests(agent, options);
    if (error == 0)
        error = exposition_open(&agent->exposition, &options->http, &agent->counter_table,
                                publisher_emitter(agent->publisher), &agent->ready);
    if (error == 0)
        error = open_poll(agent);
    log_debug("the probes' clock is %lld ns from this process's, within %llu ns", (long long)clock_offset_ns,
              (unsigned long long)bound_ns);
    return error;
}

/* New mappings are watched by now, so that nothing falls between. */
static int discover(struct agent *agent, const struct agent_options *options)
{
    for (size_t i = 0; i < options->libraries.count; i++) {
        const int error = discovery_look_at_file(agent->discovery, options->libraries.values[i]);
        if (error != 0)
            return error;
    }
    rights_warn();
    scan_processes(agent);
    read_mappings(agent);
    agent->scans = true;
    for (size_t i = 0; i < options->roots.count; i++)
        discovery_scan_root(agent->discovery, options->roots.values[i]);
    if (options->roots.count == 0)
        discovery_scan_root(agent->discovery, "");
    agent->scans = false;
    read_mappings(agent);
    agent->discovered = true;
    return agent->error == 0 ? read_residents(agent) : agent->error;
}

static void close_parts(struct agent *agent)
{
    if (agent->tracker != NULL)
        log_debug("%zu things are still followed", tracker_size(agent->tracker));
    control_close(&agent->control);
    follow_destroy(&agent->follow);
    work_destroy(&agent->work);
    discovery_destroy(&agent->discovery);
    watch_close(&agent->watch);
    budget_destroy(&agent->budget);
    tracker_destroy(&agent->tracker);
    probe_close(&agent->probe);
    const int descriptors[] = {agent->poll, agent->timer, agent->signals};
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
}

int agent_check(const struct agent_options *options)
{
    const struct probe_options probe_options = {.buffer_bytes = options->buffer_bytes};
    struct probe *probe = NULL;
    const int error = probe_open(&probe, &probe_options);
    probe_close(&probe);
    return error;
}

int agent_run(const struct agent_options *options)
{
    static struct agent agent = {.poll = -1, .timer = -1, .signals = -1, .ports.root = ""};
    agent.options = options;
    agent.started_ns = clock_now_ns();
    int error = open_parts(&agent, options);
    if (error == 0)
        error = discover(&agent, options);
    if (error == 0)
        error = run(&agent);
    if (error == 0)
        error = tick(&agent);
    exposition_close(&agent.exposition);
    const int closed = publisher_close(&agent.publisher);
    close_parts(&agent);
    return error != 0 ? error : closed;
}
