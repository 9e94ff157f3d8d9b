/* SPDX-License-Identifier: BSD-2-Clause */
/* Traffic. Invariant: each message is looked at from one port only, and belongs to one burst. */
#include "correlator/traffic/traffic.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/traffic/burst.h"

struct place { /* an address */
    uint8_t address[ADDRESS_BYTES];
    size_t job; /* the place that stands for its job */
    int32_t member;
    size_t stream;
};

struct traffic {
    struct naming *naming;
    rank_operation_records *records;
    ARRAY(struct place) places; /* by address */
    ARRAY(int32_t) flows;       /* one view of each direction that carries data */
    span_list spans;            /* of one job, by start */
    burst_list bursts;          /* of it */
};

static int by_address(const void *a, const void *b)
{
    return memcmp(((const struct place *)a)->address, ((const struct place *)b)->address, ADDRESS_BYTES);
}

/*
 * Data of NCCL: each of its transfers ends with an immediate. What writes without any is another's (storage, other
 * libraries). Of merged messages nothing tells.
 */
static bool carries_data(const struct naming *naming, const struct flow *flow)
{
    bool has_bytes = false, has_immediate = false, is_merged = true;

    for (size_t i = 0; i < flow->messages.count; i++) {
        const struct message *message = &naming->messages.items[flow->messages.items[i]];
        if (message->role != ROLE_DATA)
            continue;
        has_bytes |= message->payload_bytes > 0;
        has_immediate |= (message->flags & MESSAGE_IMMEDIATE) != 0;
        is_merged &= (message->flags & MESSAGE_MERGED) != 0;
    }
    return has_bytes && (has_immediate || is_merged);
}

static void add_place(struct traffic *traffic, const uint8_t *address, size_t stream)
{
    struct place *place = array_add(&traffic->places);

    memcpy(place->address, address, ADDRESS_BYTES);
    place->stream = stream;
    place->member = -1;
}

static void find_places(struct traffic *traffic)
{
    size_t kept = 0;

    for (size_t i = 0; i < traffic->naming->flows.count; i++) {
        const struct flow *flow = &traffic->naming->flows.items[i];
        if (!carries_data(traffic->naming, flow))
            continue;
        *(int32_t *)array_add(&traffic->flows) = (int32_t)i;
        add_place(traffic, flow->record.source, flow->stream);
        add_place(traffic, flow->record.destination, flow->stream);
    }
    array_sort(&traffic->places, by_address);
    for (size_t i = 0; i < traffic->places.count; i++)
        if (kept == 0 || by_address(&traffic->places.items[kept - 1], &traffic->places.items[i]) != 0)
            traffic->places.items[kept++] = traffic->places.items[i];
    traffic->places.count = kept;
}

static size_t place_of(const struct traffic *traffic, const uint8_t *address)
{
    struct place wanted;

    memcpy(wanted.address, address, ADDRESS_BYTES);
    const struct place *found =
        bsearch(&wanted, traffic->places.items, traffic->places.count, sizeof wanted, by_address);
    return (size_t)(found - traffic->places.items);
}

struct view { /* a flow of one direction */
    const struct flow *flow;
    int32_t index;
};

static int by_direction(const void *a, const void *b)
{
    const struct record_flow *left = &((const struct view *)a)->flow->record;
    const struct record_flow *right = &((const struct view *)b)->flow->record;

    if (left->destination_qpn != right->destination_qpn)
        return left->destination_qpn < right->destination_qpn ? -1 : 1;
    int order = memcmp(left->source, right->source, ADDRESS_BYTES);
    return order != 0 ? order : memcmp(left->destination, right->destination, ADDRESS_BYTES);
}

static int by_direction_and_port(const void *a, const void *b)
{
    const struct view *left = a;
    const struct view *right = b;
    int order = by_direction(a, b);
    bool sent = left->flow->record.vantage == VANTAGE_TX, other_sent = right->flow->record.vantage == VANTAGE_TX;

    if (order != 0 || sent != other_sent)
        return order != 0 ? order : sent ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

/* Where two ports see one direction the sender's is kept; several flows of one port are one after the other. */
static void keep_one_view(struct traffic *traffic)
{
    struct view *views = array_zeroed((traffic->flows.count + 1) * sizeof *views);
    size_t kept = 0;

    for (size_t i = 0; i < traffic->flows.count; i++)
        views[i] = (struct view){&traffic->naming->flows.items[traffic->flows.items[i]], traffic->flows.items[i]};
    array_order(views, traffic->flows.count, sizeof *views, by_direction_and_port);
    for (size_t i = 0, first = 0; i < traffic->flows.count; i++) {
        first = i > 0 && by_direction(&views[first], &views[i]) == 0 ? first : i;
        if (views[i].flow->record.vantage == views[first].flow->record.vantage)
            traffic->flows.items[kept++] = views[i].index;
    }
    traffic->flows.count = kept;
    free(views);
}

static size_t job_of(struct traffic *traffic, size_t place)
{
    while (traffic->places.items[place].job != place)
        place = traffic->places.items[place].job;
    return place;
}

static void join_places(struct traffic *traffic)
{
    for (size_t i = 0; i < traffic->places.count; i++)
        traffic->places.items[i].job = i;
    for (size_t i = 0; i < traffic->flows.count; i++) {
        const struct flow *flow = &traffic->naming->flows.items[traffic->flows.items[i]];
        size_t from = job_of(traffic, place_of(traffic, flow->record.source));
        size_t to = job_of(traffic, place_of(traffic, flow->record.destination));
        traffic->places.items[from > to ? from : to].job = from < to ? from : to;
    }
    for (size_t i = 0; i < traffic->places.count; i++)
        traffic->places.items[i].job = job_of(traffic, i);
}

static int32_t add_process(struct traffic *traffic, const struct place *place)
{
    struct process *process = array_add(&traffic->naming->processes);
    struct in_addr ipv4;

    process->stream = place->stream;
    process->record.process = (uint32_t)traffic->naming->processes.count;
    memcpy(&ipv4, place->address + ADDRESS_BYTES - sizeof ipv4, sizeof ipv4);
    inet_ntop(AF_INET, &ipv4, process->record.command, sizeof process->record.command);
    return (int32_t)traffic->naming->processes.count - 1;
}

/* A communicator for each job, a member for each of its places. */
static void add_job(struct traffic *traffic, size_t job)
{
    struct naming *naming = traffic->naming;
    struct communicator *communicator = array_add(&naming->communicators);
    uint64_t hash = HASH_START;
    int32_t count = 0;

    for (size_t i = 0; i < traffic->places.count; i++) {
        count += traffic->places.items[i].job == job;
        if (traffic->places.items[i].job == job)
            hash = hash_mix(hash, traffic->places.items[i].address, ADDRESS_BYTES);
    }
    memcpy(communicator->identity, &hash, sizeof hash);
    communicator->ranks_count = count;
    communicator->ranks_seen = (uint32_t)count;
    for (size_t i = 0, rank = 0; i < traffic->places.count; i++) {
        struct place *place = &traffic->places.items[i];
        if (place->job != job)
            continue;
        int32_t process = add_process(traffic, place);
        place->member = (int32_t)naming->members.count;
        struct member *member = array_add(&naming->members);
        *member = (struct member){.stream = place->stream,
                                  .process = process,
                                  .parent = -1,
                                  .communicator = (int32_t)naming->communicators.count - 1,
                                  .rank = naming->ranks_count++};
        member->record.ranks_count = count;
        member->record.rank = (int32_t)rank++;
        member->record.cuda_device = -1;
        memcpy(member->record.identity, &hash, sizeof hash);
    }
}

static int by_start(const void *a, const void *b)
{
    const struct span *left = a;
    const struct span *right = b;

    if (left->first_ns != right->first_ns)
        return left->first_ns < right->first_ns ? -1 : 1;
    return (left->message > right->message) - (left->message < right->message);
}

static void list_spans(struct traffic *traffic, size_t job)
{
    const struct naming *naming = traffic->naming;

    traffic->spans.count = 0;
    for (size_t i = 0; i < traffic->flows.count; i++) {
        const struct flow *flow = &naming->flows.items[traffic->flows.items[i]];
        size_t from = place_of(traffic, flow->record.source), to = place_of(traffic, flow->record.destination);
        if (traffic->places.items[from].job != job)
            continue;
        for (size_t j = 0; j < flow->messages.count; j++) {
            int32_t index = flow->messages.items[j];
            const struct message *message = &naming->messages.items[index];
            if (message->role == ROLE_DATA)
                *(struct span *)array_add(&traffic->spans) =
                    (struct span){message->first_ns, message->last_ns, message->payload_bytes, from, to, index};
        }
    }
    array_sort(&traffic->spans, by_start);
}

static uint8_t type_of(const struct burst *burst)
{
    return burst->is_astray ? TRAFFIC_ASTRAY : burst->is_head ? TRAFFIC_HEAD : CALL_NO_DATATYPE;
}

static struct record_rank_operation *begin_record(struct traffic *traffic, const struct place *place, size_t number)
{
    const struct member *member = &traffic->naming->members.items[place->member];
    struct record_rank_operation *record = array_add(traffic->records);

    record->header.kind = RECORD_RANK_OPERATION;
    record->header.length_bytes = sizeof *record;
    memcpy(record->communicator, member->record.identity, IDENTITY_BYTES);
    record->sequence = (uint32_t)number;
    record->rank = member->record.rank;
    record->ranks_count = member->record.ranks_count;
    record->peer = record->next = record->previous = -1;
    record->operation = OPERATION_TRAFFIC;
    record->datatype = type_of(&traffic->bursts.items[number]);
    record->bound_ns = traffic->naming->bound_ns;
    record->frames_bound_ns = traffic->naming->frames_bound_ns;
    record->flags = RANK_OPERATION_ENQUEUE_UNKNOWN | RANK_OPERATION_EXPECTED_UNKNOWN;
    return record;
}

static void note_seen(struct record_rank_operation *record, const struct span *span)
{
    if (record->enqueued_ns == 0 || span->first_ns < record->enqueued_ns)
        record->enqueued_ns = span->first_ns;
    if (span->last_ns > record->end_ns)
        record->end_ns = span->last_ns;
}

static void note_sent(struct record_rank_operation *record, const struct span *span)
{
    note_seen(record, span);
    if (record->first_data_ns == 0)
        record->first_data_ns = span->first_ns;
    uint64_t since_ns = span->first_ns > record->last_data_ns ? span->first_ns : record->last_data_ns;
    record->active_ns += span->last_ns > since_ns ? span->last_ns - since_ns : 0;
    record->last_data_ns = span->last_ns > record->last_data_ns ? span->last_ns : record->last_data_ns;
    record->observed_bytes += span->bytes;
    record->buffer_bytes += span->bytes;
}

static void note_received(struct record_rank_operation *record, const struct span *span)
{
    note_seen(record, span);
    record->received_bytes += span->bytes;
    record->received_ns = span->last_ns > record->received_ns ? span->last_ns : record->received_ns;
}

/* A record of each place that takes part in the burst. */
static void tell_burst(struct traffic *traffic, size_t number, int32_t *record_of)
{
    const struct burst *burst = &traffic->bursts.items[number];

    for (size_t i = 0; i < traffic->places.count; i++)
        record_of[i] = -1;
    for (size_t i = burst->begin; i < burst->end; i++) {
        const struct span *span = &traffic->spans.items[i];
        const size_t ends[] = {span->from, span->to};
        for (size_t end = 0; end < 2; end++)
            if (record_of[ends[end]] < 0) {
                record_of[ends[end]] = (int32_t)traffic->records->count;
                begin_record(traffic, &traffic->places.items[ends[end]], number);
            }
        note_sent(&traffic->records->items[record_of[span->from]], span);
        note_received(&traffic->records->items[record_of[span->to]], span);
        traffic->naming->messages.items[span->message].rank_operation = record_of[span->from];
    }
}

static void run_job(struct traffic *traffic, size_t job)
{
    int32_t *record_of = array_zeroed(traffic->places.count * sizeof *record_of);

    add_job(traffic, job);
    list_spans(traffic, job);
    burst_find(&traffic->bursts, &traffic->spans, traffic->places.count);
    for (size_t i = 0; i < traffic->bursts.count; i++)
        tell_burst(traffic, i, record_of);
    free(record_of);
}

void traffic_run(rank_operation_records *records, struct naming *naming)
{
    struct traffic traffic = {.naming = naming, .records = records};

    find_places(&traffic);
    keep_one_view(&traffic);
    join_places(&traffic);
    for (size_t i = 0; i < traffic.places.count; i++)
        if (traffic.places.items[i].job == i)
            run_job(&traffic, i);
    array_fini(&traffic.places);
    array_fini(&traffic.flows);
    array_fini(&traffic.spans);
    array_fini(&traffic.bursts);
}
