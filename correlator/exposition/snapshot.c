/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Agents, devices, losses. Invariant: what counts only rises: a device or cause that is once there stays, and where a
 * later analysis knows less (its detail was cut out of memory) what was told before stands.
 */
#include "correlator/exposition/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMUNICATORS_MAX 256
#define VANTAGES          3

void snapshot_fini(struct snapshot *snapshot)
{
    array_fini(&snapshot->devices);
    array_fini(&snapshot->agents);
    array_fini(&snapshot->ranks);
    array_fini(&snapshot->communicators);
    array_fini(&snapshot->gaps);
}

static void copy_text(char text[SNAPSHOT_TEXT_BYTES], const char *field, size_t bytes)
{
    snprintf(text, SNAPSHOT_TEXT_BYTES, "%.*s", (int)strnlen(field, bytes), field);
}

static void raise_to(uint64_t *value, uint64_t least)
{
    if (*value < least)
        *value = least;
}

/* ---- devices ---- */

static struct snapshot_device *named_device(struct snapshot *snapshot, const struct snapshot_device *name)
{
    for (size_t i = 0; i < snapshot->devices.count; i++)
        if (strcmp(snapshot->devices.items[i].host, name->host) == 0 &&
            strcmp(snapshot->devices.items[i].device, name->device) == 0)
            return &snapshot->devices.items[i];
    struct snapshot_device *device = array_add(&snapshot->devices);
    memcpy(device->host, name->host, sizeof device->host);
    memcpy(device->device, name->device, sizeof device->device);
    return device;
}

static struct snapshot_device *device_of(struct snapshot *snapshot, const struct intake_stream *stream,
                                         const struct record_port *record)
{
    struct snapshot_device name;

    copy_text(name.host, stream->hello.host, sizeof stream->hello.host);
    copy_text(name.device, record->name, sizeof record->name);
    return named_device(snapshot, &name);
}

static void add_flow(struct snapshot *snapshot, const struct naming *naming, size_t index, const size_t *device_of_port)
{
    const struct flow *flow = &naming->flows.items[index];

    if (flow->port < 0)
        return;
    struct snapshot_device *device = &snapshot->devices.items[device_of_port[flow->port]];
    uint64_t *traffic = device->traffic[flow->record.vantage <= VANTAGE_RX ? flow->record.vantage : VANTAGE_MIDDLE];
#define TRAFFIC(name, text, field, unit, help) traffic[SNAPSHOT_##name] += flow->total.field;
#include "wire/metric/traffic.def"
#undef TRAFFIC
}

static void add_loss(struct snapshot *snapshot, const struct naming *naming, const struct gap *gap,
                     const size_t *device_of_port)
{
    for (size_t i = 0; i < naming->ports.count; i++)
        if (naming->ports.items[i].stream == gap->stream && naming->ports.items[i].record.port == gap->port)
            snapshot->devices.items[device_of_port[i]].lost_frames += gap->lost;
}

/* Of several queues or starts of an agent a device has several ports here. */
static size_t *find_devices(struct snapshot *snapshot, const struct analysis *analysis)
{
    const struct naming *naming = &analysis->naming;
    size_t *device_of_port = array_zeroed((naming->ports.count + 1) * sizeof *device_of_port);

    for (size_t i = 0; i < naming->ports.count; i++)
        device_of_port[i] = (size_t)(device_of(snapshot, &analysis->intake.streams.items[naming->ports.items[i].stream],
                                               &naming->ports.items[i].record) -
                                     snapshot->devices.items);
    return device_of_port;
}

static void take_devices(struct snapshot *snapshot, const struct analysis *analysis)
{
    const struct naming *naming = &analysis->naming;
    struct snapshot found = {0};
    size_t *device_of_port = find_devices(&found, analysis);

    for (size_t i = 0; i < naming->flows.count; i++)
        add_flow(&found, naming, i, device_of_port);
    for (size_t i = 0; i < analysis->gaps.count; i++)
        if (analysis->gaps.items[i].cause == LOSS_PORT_DROP)
            add_loss(&found, naming, &analysis->gaps.items[i], device_of_port);
    free(device_of_port);
    for (size_t i = 0; i < found.devices.count; i++) {
        struct snapshot_device *device = named_device(snapshot, &found.devices.items[i]);
        for (size_t j = 0; j < VANTAGES; j++)
            for (size_t k = 0; k < SNAPSHOT_TRAFFIC; k++)
                raise_to(&device->traffic[j][k], found.devices.items[i].traffic[j][k]);
        raise_to(&device->lost_frames, found.devices.items[i].lost_frames);
    }
    snapshot_fini(&found);
}

/* ---- losses ---- */

static struct snapshot_gap *gap_of(struct snapshot *snapshot, const char *cause)
{
    for (size_t i = 0; i < snapshot->gaps.count; i++)
        if (strcmp(snapshot->gaps.items[i].cause, cause) == 0)
            return &snapshot->gaps.items[i];
    struct snapshot_gap *gap = array_add(&snapshot->gaps);
    gap->cause = cause;
    return gap;
}

static void take_gaps(struct snapshot *snapshot, const struct analysis *analysis)
{
    struct snapshot found = {0};

    for (uint32_t cause = 0; cause <= GAP_FORGOTTEN; cause++)
        if (strcmp(gap_cause_name(cause), "unknown") != 0)
            gap_of(&found, gap_cause_name(cause));
    for (size_t i = 0; i < analysis->gaps.count; i++) {
        const struct gap *gap = &analysis->gaps.items[i];
        struct snapshot_gap *of = gap_of(&found, gap_cause_name(gap->cause));
        of->count++;
        of->lost += gap->lost;
        of->duration_ns += gap->to_ns > gap->from_ns ? gap->to_ns - gap->from_ns : 0;
    }
    for (size_t i = 0; i < found.gaps.count; i++) {
        struct snapshot_gap *of = gap_of(snapshot, found.gaps.items[i].cause);
        raise_to(&of->count, found.gaps.items[i].count);
        raise_to(&of->lost, found.gaps.items[i].lost);
        raise_to(&of->duration_ns, found.gaps.items[i].duration_ns);
    }
    snapshot_fini(&found);
}

/* ---- agents ---- */

static const char *kind_name(uint16_t kind)
{
    return kind == EMITTER_NIC ? "nic" : kind == EMITTER_HOST ? "host" : "node";
}

static struct snapshot_agent *agent_of(struct snapshot *snapshot, const struct intake_stream *stream)
{
    for (size_t i = 0; i < snapshot->agents.count; i++)
        if (snapshot->agents.items[i].emitter_id == stream->emitter_id &&
            strcmp(snapshot->agents.items[i].kind, kind_name(stream->kind)) == 0)
            return &snapshot->agents.items[i];
    return array_add(&snapshot->agents);
}

static void take_agents(struct snapshot *snapshot, const struct analysis *analysis)
{
    snapshot->agents.count = 0;
    for (size_t i = 0; i < analysis->intake.streams.count; i++) {
        const struct intake_stream *stream = &analysis->intake.streams.items[i];
        const struct timeline_clock *clock = &analysis->timeline.clocks.items[i];
        struct snapshot_agent *agent = agent_of(snapshot, stream);
        uint64_t heard_ns = timeline_map(&analysis->timeline, i, stream->last_ns).ns;
        uint64_t batches =
            agent->emitter_id == stream->emitter_id ? agent->batches + stream->batches_count : stream->batches_count;
        if (agent->emitter_id != stream->emitter_id || heard_ns >= agent->heard_ns) {
            memset(agent, 0, sizeof *agent);
            agent->emitter_id = stream->emitter_id;
            snprintf(agent->kind, sizeof agent->kind, "%s", kind_name(stream->kind));
            copy_text(agent->host, stream->hello.host, sizeof stream->hello.host);
            copy_text(agent->instance, stream->hello.instance, sizeof stream->hello.instance);
            agent->clock_known = clock->source != TIMELINE_NONE;
            agent->clock_error_ns = clock->worst_bound_ns;
            agent->ended = stream->ended;
            agent->heard_ns = heard_ns;
        }
        agent->batches = batches;
    }
}

/* ---- who is who ---- */

/* Of each rank the first member's process, that of the largest communicators. */
static void find_ranks(struct snapshot *snapshot, const struct analysis *analysis, int32_t *rank_of_process)
{
    const struct naming *naming = &analysis->naming;
    bool *known = array_zeroed(naming->members.count + (size_t)naming->ranks_count + 1);

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        const struct intake_stream *stream = &analysis->intake.streams.items[member->stream];
        if (member->rank < 0 || (size_t)member->rank >= naming->members.count + (size_t)naming->ranks_count ||
            known[member->rank])
            continue;
        known[member->rank] = true;
        struct snapshot_rank *rank = array_add(&snapshot->ranks);
        rank->rank = member->rank;
        rank->pod[0] = '\0';
        copy_text(rank->host, stream->hello.host, sizeof stream->hello.host);
        rank_of_process[member->process] = (int32_t)snapshot->ranks.count;
    }
    free(known);
}

static void take_ranks(struct snapshot *snapshot, const struct analysis *analysis)
{
    const struct naming *naming = &analysis->naming;
    int32_t *rank_of_process = array_zeroed((naming->processes.count + 1) * sizeof *rank_of_process); /* from 1 */

    snapshot->ranks.count = 0;
    find_ranks(snapshot, analysis, rank_of_process);
    for (size_t i = 0; i < naming->facts.count; i++) {
        const struct fact *fact = &naming->facts.items[i];
        int32_t rank = fact->process < 0 ? 0 : rank_of_process[fact->process];
        if (rank > 0 && fact->record.fact == PROCESS_FACT_POD)
            copy_text(snapshot->ranks.items[rank - 1].pod, fact->record.text, sizeof fact->record.text);
        if (rank > 0 && fact->record.fact == PROCESS_FACT_SLURM_JOB)
            copy_text(snapshot->slurm_job, fact->record.text, sizeof fact->record.text);
    }
    free(rank_of_process);
}

static void take_communicators(struct snapshot *snapshot, const struct naming *naming)
{
    snapshot->communicators.count = 0;
    for (size_t i = 0; i < naming->communicators.count && i < COMMUNICATORS_MAX; i++) {
        struct snapshot_communicator *communicator = array_add(&snapshot->communicators);
        memcpy(communicator->identity, naming->communicators.items[i].identity, IDENTITY_BYTES);
        communicator->ranks_count = naming->communicators.items[i].ranks_count;
    }
}

static void take_intake(struct snapshot *snapshot, const struct intake *intake)
{
    snapshot->damaged = intake->rejected_count;
    for (size_t i = 0; i < intake->streams.count; i++)
        snapshot->damaged += intake->streams.items[i].damaged_count;
    snapshot->duplicates = intake->duplicates_count;
    snapshot->held_bytes = intake->held_bytes;
    snapshot->limit_bytes = intake->memory_bytes;
}

void snapshot_take(struct snapshot *snapshot, const struct analysis *analysis)
{
    snapshot->ranks_count = analysis->naming.ranks_count;
    snapshot->realtime_known = analysis->timeline.realtime_known;
    snapshot->realtime_minus_reference_ns = analysis->timeline.realtime_minus_reference_ns;
    take_devices(snapshot, analysis);
    take_gaps(snapshot, analysis);
    take_agents(snapshot, analysis);
    take_ranks(snapshot, analysis);
    take_communicators(snapshot, &analysis->naming);
    take_intake(snapshot, &analysis->intake);
}
