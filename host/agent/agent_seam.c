/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts ask of each other: none of them knows another. */
#include "host/agent/agent_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "wire/clock.h"
#include "wire/log.h"

void agent_raise_counter(struct agent *agent, enum host_counter counter, uint64_t value)
{
    const uint64_t present = counter_read(agent->counters, counter);
    if (value > present)
        counter_add(agent->counters, counter, value - present);
}

void agent_take_event(void *context, const void *event, size_t length_bytes)
{
    struct agent *agent = context;
    tracker_event(agent->tracker, event, length_bytes);
}

static void publish(void *context, enum record_kind kind, void *record)
{
    struct agent *agent = context;
    publisher_add(agent->publisher, kind, record);
}

static bool library_splits(void *context, uint64_t number)
{
    const struct agent *agent = context;
    return number < LIBRARIES_NOTED && agent->libraries[number].splits;
}

static uint32_t library_version(void *context, uint64_t number)
{
    const struct agent *agent = context;
    return number < LIBRARIES_NOTED ? agent->libraries[number].version : 0;
}

static void find_library_path(void *context, uint32_t pid, uint64_t number, char *path, size_t path_bytes)
{
    const struct agent *agent = context;
    discovery_path(agent->discovery, number, (pid_t)pid, path, path_bytes);
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
    const struct agent *agent = context;
    probe_follow(agent->probe, pid);
}

static void find_layout(struct agent *agent, const struct library *library, int descriptor)
{
    struct layout layout;
    const int error = layout_find(descriptor, &layout);
    if (error != 0) {
        log_warning("%s: where it keeps a communicator's rank is not found in its code: communicators that are there "
                    "before it is probed get no rank and no name",
                    library->path);
        return;
    }
    probe_set_layout(agent->probe, library->number, &layout);
    agent->libraries[library->number].version = layout.version;
    log_debug("%s: version %u, rank at %u of a communicator, hash %s", library->path, layout.version, layout.rank_bytes,
              layout.has_hash ? "before it" : "unknown: this version has none");
}

static int attach(void *context, const struct library *library, int descriptor, const struct library_places *places,
                  uint64_t mapped_ns)
{
    struct agent *agent = context;
    struct noted_library *noted = &agent->libraries[library->number];
    noted->splits = library_has(places, "ncclCommSplit");
    noted->mapped_ns = mapped_ns;
    library_describe(places, noted->kinds, sizeof noted->kinds);
    snprintf(noted->path, sizeof noted->path, "%s", library->path);
    if (places->kinds[LIBRARY_COLLECTIVE])
        find_layout(agent, library, descriptor);
    return probe_attach(agent->probe, library->number, descriptor, places);
}

void agent_take_attached(void *context, const struct placement_attached *attached)
{
    struct agent *agent = context;
    const struct noted_library *noted = &agent->libraries[attached->library];
    log_info("%zu probes in %s (%s)", attached->probes, noted->path, noted->kinds);
    if (noted->mapped_ns == 0 || attached->at_ns == 0)
        return;
    const uint64_t since_ns = clock_now_ns() - attached->at_ns;
    const uint64_t late_ns = publisher_now_ns(agent->publisher) - since_ns - noted->mapped_ns;
    agent_raise_counter(agent, COUNT_ATTACH_MAX, late_ns);
    log_info("they were set %llu us after a process had mapped it", (unsigned long long)late_ns / 1000);
}

static int find_file_key(void *context, int descriptor, struct file_key *file)
{
    const struct agent *agent = context;
    return probe_file_key(agent->probe, descriptor, file);
}

void agent_look_at_mapping(void *context, pid_t pid, const struct mapping *mapping, uint64_t at_ns)
{
    struct agent *agent = context;
    counter_add(agent->counters, COUNT_MAPPINGS, 1);
    discovery_look_at_mapping(agent->discovery, pid, mapping, at_ns);
}

struct tracker_system agent_tracker_system(struct agent *agent)
{
    return (struct tracker_system){
        library_splits, library_version, find_library_path, read_gid, identify, is_running, follow, publish, agent,
    };
}

struct discovery_options agent_discovery_options(struct agent *agent)
{
    return (struct discovery_options){attach, find_file_key, agent_go_on, agent, agent->counters};
}
