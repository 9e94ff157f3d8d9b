/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was told of processes, in the order of their streams. Invariant: a rank is called to have used sockets only when
 * bytes fit: with no queue pair that carried anything, its library's threads sent at least half of what was asked for
 * (of a ring of two each rank sends as much as the buffer in an AllReduce, half as much in the others).
 */
#include "correlator/detail/hosted.h"

#include <string.h>

#define ASKED_LEAST_BYTES 65536 /* below that, what the library says to itself over TCP weighs more */

struct builder {
    struct hosted *hosted;
    const struct naming *naming;
    const struct timeline *timeline;
    const struct job *job;
};

static int32_t process_of(const struct naming *naming, size_t stream, uint32_t number)
{
    for (size_t i = 0; i < naming->processes.count; i++)
        if (naming->processes.items[i].stream == stream && naming->processes.items[i].record.process == number)
            return (int32_t)i;
    return -1;
}

static int32_t rank_of(const struct naming *naming, int32_t process)
{
    int32_t rank = -1;

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->process != process || member->rank < 0)
            continue;
        if (rank >= 0 && member->rank != rank)
            return -1;
        rank = member->rank;
    }
    return rank;
}

static void take_marker(struct builder *builder, size_t stream, const struct record_marker *record)
{
    struct marker *marker = array_add(&builder->hosted->markers);
    marker->process = process_of(builder->naming, stream, record->header.source);
    marker->entered_ns = timeline_map(builder->timeline, stream, record->entered_ns).ns;
    marker->record = *record;
}

static void take_delay(struct builder *builder, size_t stream, const struct record_host_delay *record)
{
    struct host_delay *delay = array_add(&builder->hosted->delays);
    delay->process = process_of(builder->naming, stream, record->header.source);
    delay->rank = rank_of(builder->naming, delay->process);
    delay->from_ns = timeline_map(builder->timeline, stream, record->from_ns).ns;
    delay->to_ns = timeline_map(builder->timeline, stream, record->to_ns).ns;
    delay->record = *record;
}

/* ---- by which way ---- */

/* What of the sum fell into the time, were it spread evenly. */
static uint64_t share(const struct host_delay *delay, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t from = delay->from_ns > from_ns ? delay->from_ns : from_ns;
    uint64_t to = delay->to_ns < to_ns ? delay->to_ns : to_ns;

    if (to <= from)
        return 0;
    return (uint64_t)((double)delay->record.tcp_bytes * (double)(to - from) / (double)(delay->to_ns - delay->from_ns));
}

static void add_tcp(const struct hosted *hosted, struct transport *transport)
{
    for (size_t i = 0; i < hosted->delays.count; i++) {
        const struct host_delay *delay = &hosted->delays.items[i];
        if (delay->rank == transport->rank && (delay->record.role & HOST_DELAY_SERVES) != 0 &&
            (delay->record.flags & HOST_DELAY_ALONE) == 0)
            transport->tcp_bytes += share(delay, transport->from_ns, transport->to_ns);
    }
}

static void judge(struct transport *transport)
{
    if (transport->rdma_bytes != 0)
        transport->kind = TRANSPORT_RDMA;
    else if (transport->tcp_bytes == 0)
        transport->kind = TRANSPORT_NONE;
    else if (transport->asked_bytes >= ASKED_LEAST_BYTES && transport->tcp_bytes >= transport->asked_bytes / 2)
        transport->kind = TRANSPORT_SOCKETS;
    else
        transport->kind = TRANSPORT_UNKNOWN;
}

static void add_transport(const struct builder *builder, int32_t rank, int32_t step, uint64_t from_ns, uint64_t to_ns)
{
    const struct job *job = builder->job;
    struct transport transport = {.rank = rank, .step = step, .from_ns = from_ns, .to_ns = to_ns};

    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        if (of->rank != rank || (step >= 0 && job->operations.items[of->operation].step != step))
            continue;
        transport.asked_bytes += of->record.buffer_bytes;
        transport.rdma_bytes += of->record.observed_bytes;
    }
    add_tcp(builder->hosted, &transport);
    judge(&transport);
    *(struct transport *)array_add(&builder->hosted->transports) = transport;
}

/* From the rank's first call to the end of what its threads were told of. */
static void add_whole(const struct builder *builder, int32_t rank)
{
    uint64_t from_ns = UINT64_MAX;
    uint64_t to_ns = 0;

    for (size_t i = 0; i < builder->naming->calls.count; i++) {
        const struct call *call = &builder->naming->calls.items[i];
        if (builder->naming->members.items[call->member].rank == rank && call->enqueued_ns < from_ns)
            from_ns = call->enqueued_ns;
    }
    for (size_t i = 0; i < builder->hosted->delays.count; i++)
        if (builder->hosted->delays.items[i].rank == rank && builder->hosted->delays.items[i].to_ns > to_ns)
            to_ns = builder->hosted->delays.items[i].to_ns;
    if (to_ns > from_ns)
        add_transport(builder, rank, -1, from_ns, to_ns);
}

static void add_transports(const struct builder *builder)
{
    int32_t ranks = 0;

    for (size_t i = 0; i < builder->naming->members.count; i++)
        if (builder->naming->members.items[i].rank >= ranks)
            ranks = builder->naming->members.items[i].rank + 1;
    for (int32_t rank = 0; rank < ranks; rank++) {
        size_t before = builder->hosted->transports.count;
        add_whole(builder, rank);
        if (builder->hosted->transports.count == before)
            continue;
        for (size_t i = 0; i < builder->job->rank_steps.count; i++) {
            const struct rank_step *step = &builder->job->rank_steps.items[i];
            if (step->rank == rank && step->end_ns > step->start_ns)
                add_transport(builder, rank, step->step, step->start_ns, step->end_ns);
        }
    }
}

void hosted_build(struct hosted *hosted, const struct naming *naming, const struct intake *intake,
                  const struct timeline *timeline, const struct job *job)
{
    struct builder builder = {.hosted = hosted, .naming = naming, .timeline = timeline, .job = job};
    struct intake_walk walk = {.intake = intake};
    union record record;

    memset(hosted, 0, sizeof *hosted);
    while (intake_next(&walk, &record)) {
        size_t stream = walk.stream;
        uint32_t number = record.header.source;
        if (record.header.kind != RECORD_MARKER && record.header.kind != RECORD_HOST_DELAY)
            continue;
        if (process_of(naming, stream, number) < 0)
            hosted->orphans_count++;
        else if (record.header.kind == RECORD_MARKER)
            take_marker(&builder, stream, &record.marker);
        else
            take_delay(&builder, stream, &record.host_delay);
    }
    add_transports(&builder);
}

void hosted_fini(struct hosted *hosted)
{
    array_fini(&hosted->markers);
    array_fini(&hosted->delays);
    array_fini(&hosted->transports);
}
