/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which row holds what. Invariant: rows are numbered from 1 in the order of the analysis's tables (steps from 0), so
 * equal analyses give equal rows.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/analysis.h"
#include "correlator/store/store_private.h"

typedef int64_t i64; /* what the formats i, n, r and u take */

static i64 row(int32_t index)
{
    return index < 0 ? -1 : index + 1;
}

static const char *address_text(const uint8_t *address, char text[INET6_ADDRSTRLEN])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t none[ADDRESS_BYTES];

    if (memcmp(address, none, sizeof none) == 0)
        return NULL;
    if (memcmp(address, mapped, sizeof mapped) == 0)
        return inet_ntop(AF_INET, address + sizeof mapped, text, INET6_ADDRSTRLEN);
    return inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
}

static const char *identity_text(const uint8_t *identity, char text[2 * IDENTITY_BYTES + 1])
{
    for (size_t i = 0; i < IDENTITY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", identity[i]);
    return text;
}

static const char *hexadecimal(uint64_t value, char text[20])
{
    snprintf(text, 20, "0x%llx", (unsigned long long)value);
    return text;
}

/* A fixed-size text field of a record, ended; valid until the fourth call after this one. */
static const char *fixed_text(const char *field, size_t bytes)
{
    static char text[4][FACT_TEXT_BYTES + 1];
    static unsigned turn;
    char *into = text[turn++ % 4];
    size_t length = strnlen(field, bytes);

    length = length < sizeof text[0] ? length : sizeof text[0] - 1;
    memcpy(into, field, length);
    into[length] = '\0';
    return into;
}

static void put_meta(struct store *store, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_meta(struct store *store, const char *key, const char *format, ...)
{
    char value[64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    store_put(store, STORE_meta, "ss", key, value);
}

static void put_metas(struct store *store, const struct analysis *analysis)
{
    const struct intake *intake = &analysis->intake;

    put_meta(store, "schema_version", "%d", STORE_SCHEMA_VERSION);
    put_meta(store, "generator", "qpscope-correlator %s", QPSCOPE_VERSION);
    put_meta(store, "reference_boot", "0x%llx", (unsigned long long)analysis->timeline.reference_boot);
    if (analysis->timeline.realtime_known)
        put_meta(store, "realtime_minus_reference_ns", "%lld",
                 (long long)analysis->timeline.realtime_minus_reference_ns);
    if (analysis->timeline.tai_known)
        put_meta(store, "tai_minus_reference_ns", "%lld", (long long)analysis->timeline.tai_minus_reference_ns);
    put_meta(store, "clocks_contradicted", "%zu", analysis->timeline.cluster.contradictions);
    put_meta(store, "ranks_count", "%d", analysis->naming.ranks_count);
    put_meta(store, "batches_rejected", "%llu", (unsigned long long)intake->rejected_count);
    put_meta(store, "connections_contradicted", "%llu", (unsigned long long)analysis->naming.contradicted_count);
    const struct limit *limit = store_limit(store);
    if (limit->traffic_from_ns != 0)
        put_meta(store, "traffic_from_ns", "%llu", (unsigned long long)limit->traffic_from_ns);
    if (limit->steps_from_ns != 0)
        put_meta(store, "steps_from_ns", "%llu", (unsigned long long)limit->steps_from_ns);
    if (analysis->another_clock_count != 0)
        put_meta(store, "records_of_another_clock", "%llu", (unsigned long long)analysis->another_clock_count);
    if (analysis->implausible_count != 0)
        put_meta(store, "records_implausible", "%llu", (unsigned long long)analysis->implausible_count);
    put_meta(store, "records_orphaned", "%llu", (unsigned long long)analysis->naming.orphans_count);
}

static const char *emitter_kind_name(uint16_t kind)
{
    static const char *const names[] = {"unknown", "nic", "host", "node", "command"};
    return names[kind < sizeof names / sizeof names[0] ? kind : 0];
}

static void put_emitter(struct store *store, const struct analysis *analysis, size_t i)
{
    const struct intake_stream *stream = &analysis->intake.streams.items[i];
    const struct timeline *timeline = &analysis->timeline;
    const struct timeline_clock *clock = &timeline->clocks.items[i];
    const struct record_hello *hello = &stream->hello;
    char id[20], boot[20];
    int known = clock->source != TIMELINE_NONE;
    uint64_t middle = hello->started_ns / 2 + stream->last_ns / 2;
    i64 offset = (i64)(timeline_map(timeline, i, middle).ns - middle);

    store_put(store, STORE_emitter, "issssssiinniiikkkisik", (i64)i + 1, emitter_kind_name(stream->kind),
              hexadecimal(stream->emitter_id, id), hexadecimal(stream->boot_id, boot),
              fixed_text(hello->host, sizeof hello->host), fixed_text(hello->instance, sizeof hello->instance),
              fixed_text(hello->version, sizeof hello->version), (i64)hello->pid, (i64)hello->window_ns,
              (i64)timeline_map(timeline, i, hello->started_ns).ns, (i64)timeline_map(timeline, i, stream->last_ns).ns,
              (i64)stream->ended, (i64)stream->batches_count, (i64)stream->unknown_count, known, offset, known,
              (i64)clock->worst_bound_ns, known, (i64)(timeline_rate(timeline, i) * 1e9), (i64)clock->samples_count,
              timeline_source_name(clock->source), (i64)timeline_cuts(timeline, i), timeline_is_framed(timeline, i),
              (i64)clock->worst_among_ns);
}

#define SPACING_MIN_NS 5000000000ULL
#define SPACING_MAX_NS 60000000000ULL

/* CLOCK_REALTIME was set between the two. */
static bool is_step(const struct clock_pair *before, const struct clock_pair *after)
{
    i64 moved = (i64)(after->realtime_ns - before->realtime_ns) - (i64)(after->monotonic_ns - before->monotonic_ns);

    return (uint64_t)llabs(moved) > before->bound_ns + after->bound_ns;
}

/* Until when no other pair is needed: closer ones at first, as what is short is laid beside traces the most. */
static uint64_t next_pair_ns(uint64_t first_ns, uint64_t now_ns)
{
    uint64_t spacing_ns = (now_ns - first_ns) / 8;

    spacing_ns = spacing_ns < SPACING_MIN_NS ? SPACING_MIN_NS : spacing_ns;
    return now_ns + (spacing_ns > SPACING_MAX_NS ? SPACING_MAX_NS : spacing_ns);
}

static void put_pair(struct store *store, const struct timeline *timeline, size_t stream, const struct clock_pair *pair)
{
    struct timeline_time at = timeline_map(timeline, stream, pair->monotonic_ns);

    store_put(store, STORE_clock_pair, "iiiiiik", (i64)stream + 1, (i64)at.ns, (i64)pair->realtime_ns,
              (i64)pair->tai_ns, (i64)pair->bound_ns, (i64)at.bound_ns, timeline_is_framed(timeline, stream),
              (i64)at.among_ns);
}

static void put_pairs(struct store *store, const struct timeline *timeline, size_t stream)
{
    const struct timeline_clock *clock = &timeline->clocks.items[stream];
    size_t count = clock->source == TIMELINE_NONE ? 0 : clock->pairs.count;
    uint64_t due_ns = 0;

    for (size_t i = 0; i < count; i++) {
        const struct clock_pair *pair = &clock->pairs.items[i];
        bool stepped = (i > 0 && is_step(pair - 1, pair)) || (i + 1 < count && is_step(pair, pair + 1));
        if (pair->monotonic_ns < due_ns && i + 1 < count && !stepped)
            continue;
        due_ns = next_pair_ns(clock->pairs.items[0].monotonic_ns, pair->monotonic_ns);
        put_pair(store, timeline, stream, pair);
    }
}

static void put_emitters(struct store *store, const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->intake.streams.count; i++)
        put_emitter(store, analysis, i);
    for (size_t i = 0; i < analysis->intake.streams.count; i++)
        put_pairs(store, &analysis->timeline, i);
    for (size_t i = 0; i < analysis->gaps.count; i++) {
        const struct gap *gap = &analysis->gaps.items[i];
        store_put(store, STORE_gap, "iiiisik", (i64)i + 1, (i64)gap->stream + 1, (i64)gap->from_ns, (i64)gap->to_ns,
                  gap_cause_name(gap->cause), (i64)gap->lost, gap->port != 0, (i64)gap->port);
    }
    for (size_t i = 0; i < analysis->naming.counters.count; i++) {
        const struct counter_total *counter = &analysis->naming.counters.items[i];
        store_put(store, STORE_counter, "iisi", (i64)counter->stream + 1, (i64)counter->record.header.source,
                  fixed_text(counter->record.name, sizeof counter->record.name), (i64)counter->record.total);
    }
}

static void put_ports(struct store *store, const struct naming *naming)
{
    char address[INET6_ADDRSTRLEN], sees[64];

    for (size_t i = 0; i < naming->ports.count; i++) {
        const struct port *port = &naming->ports.items[i];
        store_put(store, STORE_port, "iiisss", (i64)i + 1, (i64)port->stream + 1, (i64)port->record.port,
                  fixed_text(port->record.name, sizeof port->record.name), address_text(port->record.address, address),
                  store_port_sees(port, sees));
    }
    for (size_t i = 0; i < naming->processes.count; i++) {
        const struct process *process = &naming->processes.items[i];
        store_put(store, STORE_process, "iiissnn", (i64)i + 1, (i64)process->stream + 1, (i64)process->record.pid,
                  fixed_text(process->record.command, sizeof process->record.command),
                  fixed_text(process->record.library, sizeof process->record.library), (i64)process->started_ns,
                  (i64)process->ended_ns);
    }
}

static void put_process_facts(struct store *store, const struct naming *naming)
{
    for (size_t i = 0; i < naming->facts.count; i++) {
        const struct fact *fact = &naming->facts.items[i];
        const char *name = process_fact_name(fact->record.fact);
        if (name != NULL)
            store_put(store, STORE_process_fact, "isisi", row(fact->process), name, (i64)fact->record.index,
                      fixed_text(fact->record.text, sizeof fact->record.text), (i64)fact->record.text_bytes);
    }
}

static const char *creator_name(uint8_t creator)
{
    switch (creator) {
#define CREATOR(name, number, text)                                                                                    \
    case number:                                                                                                       \
        return (number) == 0 ? NULL : text;
#include "wire/creator.def"
#undef CREATOR
    default:
        return NULL;
    }
}

static const char *ending_name(uint8_t ending)
{
    switch (ending) {
#define ENDING(name, number, text, help)                                                                               \
    case number:                                                                                                       \
        return (number) == 0 ? NULL : text;
#include "wire/ending.def"
#undef ENDING
    default:
        return NULL;
    }
}

static const char *identity_kind_name(uint8_t kind)
{
    static const char *const names[] = {"none", "id", "parent", "call", "hash"};
    return names[kind < sizeof names / sizeof names[0] ? kind : 0];
}

static void put_member(struct store *store, const struct member *member, i64 id)
{
    const struct record_communicator *record = &member->record;
    char pointer[20];

    store_put(store, STORE_member, "iirrisnnnissiirs", id, row(member->communicator), (i64)record->rank,
              (i64)member->rank, row(member->process), hexadecimal(record->pointer, pointer), (i64)member->created_ns,
              (i64)member->ready_ns, (i64)member->destroyed_ns, (i64)((record->flags & COMMUNICATOR_LATE) != 0),
              creator_name(record->creator), ending_name(record->ending),
              (i64)((record->flags & COMMUNICATOR_FINALIZED) != 0), (i64)((record->flags & COMMUNICATOR_REVOKED) != 0),
              (i64)record->cuda_device, identity_kind_name(record->identity_kind));
}

static void put_communicators(struct store *store, const struct naming *naming)
{
    char text[2 * IDENTITY_BYTES + 1];

    for (size_t i = 0; i < naming->communicators.count; i++) {
        const struct communicator *communicator = &naming->communicators.items[i];
        store_put(store, STORE_communicator, "isiinn", (i64)i + 1, identity_text(communicator->identity, text),
                  (i64)communicator->ranks_count, (i64)communicator->ranks_seen, (i64)communicator->created_ns,
                  (i64)communicator->destroyed_ns);
    }
    for (size_t i = 0; i < naming->members.count; i++)
        put_member(store, &naming->members.items[i], (i64)i + 1);
}

static const char *role_name(enum queue_pair_role role)
{
    static const char *const names[] = {"unknown", "sender", "receiver", "unused", "flush", "foreign"};
    return names[role];
}

static const char *state_name(const struct queue_pair *pair)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    if (pair->record.destroyed_ns != 0)
        return "DESTROYED";
    return pair->record.state < sizeof names / sizeof names[0] ? names[pair->record.state] : "ERR";
}

static i64 member_rank(const struct naming *naming, int32_t member)
{
    return member < 0 ? -1 : naming->members.items[member].rank;
}

static void put_queue_pair(struct store *store, const struct naming *naming, size_t i)
{
    const struct queue_pair *pair = &naming->queue_pairs.items[i];
    const struct record_queue_pair *record = &pair->record;
    char address[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN], connection[20];

    store_put(
        store, STORE_queue_pair, "iirrrrssiisksssnnn", (i64)i + 1, row(pair->process), row(pair->member),
        member_rank(naming, pair->member), row(pair->peer), member_rank(naming, naming_peer_member(naming, (int32_t)i)),
        role_name(pair->role), fixed_text(record->device, sizeof record->device), (i64)record->port, (i64)record->qpn,
        address_text(record->address, address), record->remote_qpn != 0, (i64)record->remote_qpn,
        address_text(record->remote_address, remote), state_name(pair), hexadecimal(record->connection, connection),
        (i64)pair->created_ns, (i64)pair->ready_ns, (i64)pair->destroyed_ns);
}

static void put_flow(struct store *store, const struct naming *naming, size_t i)
{
    static const char *const vantages[] = {"middle", "tx", "rx"};
    const struct flow *flow = &naming->flows.items[i];
    const struct record_flow *record = &flow->record;
    const struct record_flow_total *total = &flow->total;
    char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
    int32_t owner = flow->sender < 0 ? -1 : naming->queue_pairs.items[flow->sender].member;
    int32_t peer = flow->receiver < 0 ? -1 : naming->queue_pairs.items[flow->receiver].member;
    int32_t named = owner >= 0 ? owner : peer;
    const char *from = address_text(record->source, source);
    const char *to = address_text(record->destination, destination);

    store_put(store, STORE_flow, "iiisssiiirrrrnniiiiiiiiiiiii", (i64)i + 1, (i64)flow->stream + 1, row(flow->port),
              vantages[record->vantage < 3 ? record->vantage : 0], from == NULL ? "" : from, to == NULL ? "" : to,
              (i64)record->destination_qpn, (i64)record->udp_source_port, (i64)record->generation, row(flow->sender),
              named < 0 ? (i64)-1 : row(naming->members.items[named].communicator), member_rank(naming, owner),
              member_rank(naming, peer), (i64)flow->first_ns, (i64)flow->last_ns, (i64)total->data_frames,
              (i64)total->wire_bytes, (i64)total->payload_bytes, (i64)total->messages, (i64)total->acks,
              (i64)total->naks, (i64)total->rnr_naks, (i64)total->cnps, (i64)total->marked_frames,
              (i64)total->repeated_frames, (i64)total->late_frames, (i64)total->retransmitted_frames,
              (i64)total->retransmitted_bytes);
}

static const char *message_role_name(uint8_t role)
{
    static const char *const names[] = {"other", "data", "credit", "size", "flush", "other"};
    return names[role < sizeof names / sizeof names[0] ? role : 0];
}

/* -1 also of one that is left out. */
static i64 rank_operation_row(const struct limit *limit, const struct analysis *analysis, int32_t record)
{
    const struct job *job = &analysis->job;
    int32_t index = record < 0 ? -1 : job->rank_operation_of.items[record];

    return index >= 0 && limit_has_operation(limit, job, job->rank_operations.items[index].operation) ? row(index) : -1;
}

static uint64_t returned_ns(const struct call *call)
{
    return call->record.returned_after_ns == 0 ? 0 : call->entered_ns + call->record.returned_after_ns;
}

static const char *graph_name(uint8_t flags)
{
    if ((flags & CALL_CAPTURED) != 0)
        return "captured";
    return (flags & CALL_REPLAYED) != 0 ? "replayed" : NULL;
}

static void put_calls(struct store *store, const struct analysis *analysis)
{
    const struct naming *naming = &analysis->naming;
    const struct limit *limit = store_limit(store);
    char stream[20];

    for (size_t i = 0; i < naming->calls.count; i++) {
        const struct call *call = &naming->calls.items[i];
        const struct record_call *record = &call->record;
        const unsigned result = record->flags >> CALL_RESULT_SHIFT;
        if (call->is_inferred ||
            !limit_has_detail(limit, call->enqueued_ns > call->entered_ns ? call->enqueued_ns : call->entered_ns))
            continue;
        store_put(store, STORE_call, "iirisikkrinsinks", (i64)i + 1, row(call->member),
                  rank_operation_row(limit, analysis, call->rank_operation), (i64)record->sequence,
                  operation_name(record->operation), (i64)record->count, record->datatype != CALL_NO_DATATYPE,
                  (i64)record->datatype, record->reduction != CALL_NO_REDUCTION, (i64)record->reduction,
                  (i64)record->peer, (i64)call->entered_ns, (i64)call->enqueued_ns, hexadecimal(record->stream, stream),
                  (i64)record->tid, (i64)returned_ns(call), result != 0, (i64)result - 1, graph_name(record->flags));
    }
}

static void put_traffic(struct store *store, const struct analysis *analysis)
{
    const struct naming *naming = &analysis->naming;
    const struct limit *limit = store_limit(store);

    for (size_t i = 0; i < naming->messages.count; i++) {
        const struct message *message = &naming->messages.items[i];
        if (!limit_has_traffic(limit, message->last_ns))
            continue;
        store_put(store, STORE_message, "iirsiiiiki", (i64)i + 1, row(message->flow),
                  rank_operation_row(limit, analysis, message->rank_operation), message_role_name(message->role),
                  (i64)message->first_ns, (i64)message->last_ns, (i64)message->payload_bytes, (i64)message->frames,
                  (message->flags & MESSAGE_IMMEDIATE) != 0, (i64)message->immediate, (i64)message->flags);
    }
    for (size_t i = 0; i < naming->windows.count; i++) {
        const struct window *window = &naming->windows.items[i];
        if (!limit_has_traffic(limit, window->start_ns + window->length_ns))
            continue;
        store_put(store, STORE_traffic_window, "iiiiiiii", row(window->flow), (i64)window->start_ns,
                  (i64)window->length_ns, (i64)window->record.frames, (i64)window->record.wire_bytes,
                  (i64)window->record.payload_bytes, (i64)window->record.retransmitted_frames,
                  (i64)window->record.marked_frames);
    }
}

static const char *status_name(uint16_t flags)
{
    if ((flags & RANK_OPERATION_INCOMPLETE) != 0)
        return "incomplete";
    if ((flags & RANK_OPERATION_UNKNOWN_ALGORITHM) != 0)
        return "unknown algorithm";
    return (flags & RANK_OPERATION_NO_WIRE) != 0 ? "no wire" : "complete";
}

static const char *algorithm_name(uint8_t algorithm)
{
    static const char *const names[] = {"unknown", "ring", "tree", "point-to-point"};
    return names[algorithm < sizeof names / sizeof names[0] ? algorithm : 0];
}

static void put_steps(struct store *store, const struct job *job)
{
    for (size_t i = 0; i < job->steps.count; i++) {
        const struct step *step = &job->steps.items[i];
        int late = step->slowest_rank >= 0;
        if (!limit_has_step(store_limit(store), job, (int32_t)i))
            continue;
        store_put(store, STORE_step, "iiiiiiiirkkrs", store_step(store, (int32_t)i), (i64)step->start_ns,
                  (i64)step->end_ns, (i64)step->duration_ns, (i64)step->bound_ns, (i64)step->operations,
                  (i64)step->incomplete, (i64)step->partial, (i64)step->slowest_rank, late, (i64)step->late_ns, late,
                  (i64)step->late_bound_ns, row(step->late_operation), step_kind_name(step->kind));
    }
    for (size_t i = store_same(store).rank_steps; i < job->rank_steps.count; i++) {
        const struct rank_step *step = &job->rank_steps.items[i];
        if (!limit_has_step(store_limit(store), job, step->step))
            continue;
        store_put(store, STORE_rank_step, "iiiiiki", store_step(store, step->step), (i64)step->rank,
                  (i64)step->start_ns, (i64)step->end_ns, (i64)step->duration_ns, (int)step->late_known,
                  (i64)step->late_ns, (i64)step->cost_ns);
    }
}

static void put_path(struct store *store, const struct job *job)
{
    i64 place = 0;

    for (size_t i = store_same(store).path; i < job->path.count; i++) {
        const struct path_part *part = &job->path.items[i];
        place = i > 0 && job->path.items[i - 1].step == part->step ? place + 1 : 0;
        if (!limit_has_step(store_limit(store), job, part->step))
            continue;
        store_put(store, STORE_critical_path, "iisriii", store_step(store, part->step), place,
                  part->is_transfer ? "transfer" : "rank", (i64)part->rank, (i64)part->operation + 1,
                  (i64)part->from_ns, (i64)part->to_ns);
    }
}

static int32_t communicator_index(const struct naming *naming, const uint8_t *identity)
{
    for (size_t i = 0; i < naming->communicators.count; i++)
        if (memcmp(naming->communicators.items[i].identity, identity, IDENTITY_BYTES) == 0)
            return (int32_t)i;
    return -1;
}

static void put_operations(struct store *store, const struct naming *naming, const struct job *job)
{
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (!limit_has_operation(store_limit(store), job, (int32_t)i))
            continue;
        store_put(store, STORE_operation, "iisirrisiinns", (i64)i + 1,
                  row(communicator_index(naming, operation->communicator)),
                  operation->kind == OPERATION_GROUP ? "SendRecv" : operation_name(operation->kind),
                  (i64)operation->sequence, store_step(store, operation->step), (i64)operation->place,
                  (i64)operation->buffer_bytes, algorithm_name(operation->algorithm), (i64)operation->ranks_seen,
                  (i64)operation->start_ns, (i64)operation->last_arrival_ns, (i64)operation->end_ns,
                  status_name(operation->flags));
    }
}

static void put_rank_operations(struct store *store, const struct naming *naming, const struct job *job)
{
    store_pass(store, STORE_rank_operation, store_same(store).rank_operations);
    for (size_t i = store_same(store).rank_operations; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        const struct record_rank_operation *record = &of->record;
        int expected = (record->flags & RANK_OPERATION_EXPECTED_UNKNOWN) == 0;
        if (!limit_has_operation(store_limit(store), job, of->operation))
            continue;
        store_put(store, STORE_rank_operation, "iiirnnninsknnnikiiis", (i64)i + 1, row(of->operation),
                  row(naming_member(naming, record->communicator, record->rank)), (i64)of->rank,
                  (record->flags & RANK_OPERATION_ENQUEUE_UNKNOWN) != 0 ? 0 : (i64)record->enqueued_ns,
                  (i64)record->host_ready_ns, (i64)record->gpu_ready_ns,
                  (i64)(record->gpu_ready_ns != 0 && (record->flags & RANK_OPERATION_GPU_READY_LATEST) == 0),
                  (i64)of->arrival_ns, arrival_of_name(of->arrival_of), (int)of->late_known, (i64)of->late_ns,
                  (i64)record->first_data_ns, (i64)record->last_data_ns, (i64)record->end_ns, (i64)record->active_ns,
                  expected, (i64)record->expected_bytes, (i64)record->observed_bytes, (i64)record->retransmitted_frames,
                  (i64)record->marked_frames, status_name(record->flags));
    }
}

void store_rows(struct store *store, const struct analysis *analysis)
{
    const struct naming *naming = &analysis->naming;

    store_number_steps(store, &analysis->job);
    put_metas(store, analysis);
    put_emitters(store, analysis);
    put_ports(store, naming);
    put_process_facts(store, naming);
    put_communicators(store, naming);
    for (size_t i = 0; i < naming->queue_pairs.count; i++)
        put_queue_pair(store, naming, i);
    store_setting_rows(store, naming);
    store_failure_rows(store, naming);
    for (size_t i = 0; i < naming->flows.count; i++)
        put_flow(store, naming, i);
    store_evidence_rows(store, naming);
    put_steps(store, &analysis->job);
    put_operations(store, naming, &analysis->job);
    put_path(store, &analysis->job);
    put_rank_operations(store, naming, &analysis->job);
    put_calls(store, analysis);
    put_traffic(store, analysis);
    store_verdicts(store, analysis);
    store_counted(store, analysis);
    store_hosted(store, analysis);
    store_pins(store, analysis);
}
