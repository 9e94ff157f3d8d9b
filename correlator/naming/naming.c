/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is who: filling the tables from the records. A record kind that is sent again when it changes replaces what was
 * there; the joins are made in naming_join.c when all is in. Invariant: one entry for each (stream, number).
 */
#include "correlator/naming/naming.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/naming/naming_join.h"
#include "correlator/naming/naming_late.h"

struct key { /* (stream, kind of number, number) -> index, sorted for lookup */
    size_t stream;
    uint16_t kind;
    uint64_t number;
    int32_t index;
};

struct builder {
    struct naming *naming;
    const struct intake *intake;
    const struct timeline *timeline;
    ARRAY(struct key) keys; /* sorted: streams are walked in order, numbers mostly rise */
};

static int key_order(const struct key *key, size_t stream, uint16_t kind, uint64_t number)
{
    if (key->stream != stream)
        return key->stream < stream ? -1 : 1;
    if (key->kind != kind)
        return key->kind < kind ? -1 : 1;
    return (key->number > number) - (key->number < number);
}

static size_t key_place(const struct builder *builder, size_t stream, uint16_t kind, uint64_t number)
{
    size_t low = 0;
    size_t high = builder->keys.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (key_order(&builder->keys.items[middle], stream, kind, number) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int32_t find(const struct builder *builder, size_t stream, uint16_t kind, uint64_t number)
{
    size_t at = key_place(builder, stream, kind, number);
    bool found = at < builder->keys.count && key_order(&builder->keys.items[at], stream, kind, number) == 0;
    return found ? builder->keys.items[at].index : -1;
}

/* The entry of (stream, number) in a table, made when it is new. */
static int32_t entry(struct builder *builder, size_t stream, uint16_t kind, uint64_t number, size_t next_index)
{
    size_t at = key_place(builder, stream, kind, number);
    if (at < builder->keys.count && key_order(&builder->keys.items[at], stream, kind, number) == 0)
        return builder->keys.items[at].index;
    array_add(&builder->keys);
    struct key *key = &builder->keys.items[at];
    memmove(key + 1, key, (builder->keys.count - 1 - at) * sizeof *key);
    *key = (struct key){.stream = stream, .kind = kind, .number = number, .index = (int32_t)next_index};
    return -1;
}

#define ENTRY(builder, array, stream, record_kind, number)                                                             \
    ({                                                                                                                 \
        int32_t index_ = entry((builder), (stream), (record_kind), (number), (array)->count);                          \
        index_ < 0 ? array_add(array) : &(array)->items[index_];                                                       \
    })

static uint64_t mapped(const struct builder *builder, size_t stream, uint64_t ns)
{
    return timeline_map(builder->timeline, stream, ns).ns;
}

static void take_process(struct builder *builder, size_t stream, const struct record_process *record)
{
    struct process *process = ENTRY(builder, &builder->naming->processes, stream, RECORD_PROCESS, record->process);
    process->stream = stream;
    process->record = *record;
    process->started_ns = mapped(builder, stream, record->started_ns);
    process->ended_ns = mapped(builder, stream, record->ended_ns);
}

static void take_process_fact(struct builder *builder, size_t stream, const struct record_process_fact *record)
{
    const uint64_t name = (uint64_t)record->process << 32 | (uint64_t)record->fact << 16 | record->index;
    struct fact *fact = ENTRY(builder, &builder->naming->facts, stream, RECORD_PROCESS_FACT, name);
    fact->stream = stream;
    fact->record = *record;
}

static void take_communicator(struct builder *builder, size_t stream, const struct record_communicator *record)
{
    struct member *member =
        ENTRY(builder, &builder->naming->members, stream, RECORD_COMMUNICATOR, record->communicator);
    struct timeline_time created = timeline_map(builder->timeline, stream, record->created_ns);
    member->stream = stream;
    member->record = *record;
    member->rank = -1;
    member->created_ns = created.ns;
    member->bound_ns = created.bound_ns;
    member->ready_ns = mapped(builder, stream, record->ready_ns);
    member->destroyed_ns = mapped(builder, stream, record->destroyed_ns);
}

static void take_queue_pair(struct builder *builder, size_t stream, const struct record_queue_pair *record)
{
    struct queue_pair *pair =
        ENTRY(builder, &builder->naming->queue_pairs, stream, RECORD_QUEUE_PAIR, record->queue_pair);
    pair->stream = stream;
    pair->record = *record;
    pair->peer = -1;
    pair->created_ns = mapped(builder, stream, record->created_ns);
    pair->ready_ns = mapped(builder, stream, record->ready_ns);
    pair->destroyed_ns = mapped(builder, stream, record->destroyed_ns);
    pair->error_ns = mapped(builder, stream, record->error_ns);
}

static void take_port(struct builder *builder, size_t stream, const struct record_port *record)
{
    struct port *port = ENTRY(builder, &builder->naming->ports, stream, RECORD_PORT, record->port);
    port->stream = stream;
    port->record = *record;
}

static void take_flow(struct builder *builder, size_t stream, const struct record_flow *record)
{
    struct flow *flow = ENTRY(builder, &builder->naming->flows, stream, RECORD_FLOW, record->flow);
    flow->stream = stream;
    flow->record = *record;
    flow->sender = -1;
    flow->receiver = -1;
    flow->first_ns = mapped(builder, stream, record->first_ns);
}

static void take_flow_total(struct builder *builder, size_t stream, const struct record_flow_total *record)
{
    int32_t index = find(builder, stream, RECORD_FLOW, record->header.source);
    if (index < 0) {
        builder->naming->orphans_count++;
        return;
    }
    struct flow *flow = &builder->naming->flows.items[index];
    struct flow_event event = {.flow = index, .to_ns = mapped(builder, stream, record->at_ns)};
    event.from_ns = flow->total.at_ns == 0 ? flow->first_ns : mapped(builder, stream, flow->total.at_ns);
    uint64_t silent_ns = flow->total.at_ns == 0 ? flow->first_ns : mapped(builder, stream, flow->total.last_ns);
    flow_event_add(&builder->naming->flow_events, &event, &flow->total, record, silent_ns);
    flow->total = *record;
    flow->last_ns = mapped(builder, stream, record->last_ns);
}

static void take_message(struct builder *builder, size_t stream, const struct record_message *record)
{
    int32_t flow = find(builder, stream, RECORD_FLOW, record->header.source);
    if (flow < 0) {
        builder->naming->orphans_count++;
        return;
    }
    int32_t index = (int32_t)builder->naming->messages.count;
    struct message *message = array_add(&builder->naming->messages);
    message->flow = flow;
    message->rank_operation = -1;
    message->first_ns = mapped(builder, stream, record->first_ns);
    message->last_ns = message->first_ns + record->duration_ns;
    message->payload_bytes = record->payload_bytes;
    message->frames = record->frames;
    message->immediate = record->immediate;
    message->flags = record->flags;
    message->role = record->role;
    *(int32_t *)array_add(&builder->naming->flows.items[flow].messages) = index;
}

static void take_window(struct builder *builder, size_t stream, const struct record_window *record)
{
    uint32_t length = builder->intake->streams.items[stream].hello.window_ns;
    int32_t flow = find(builder, stream, RECORD_FLOW, record->header.source);
    if (flow < 0 || length == 0) {
        builder->naming->orphans_count++;
        return;
    }
    struct window *window = array_add(&builder->naming->windows);
    window->flow = flow;
    window->start_ns = mapped(builder, stream, record->index * length);
    window->length_ns = length;
    window->record = *record;
}

#define SENT_AGAIN_WITHIN   4096       /* calls of a stream */
#define SENT_AGAIN_AFTER_NS 100000000u /* the host side waits for 0.2 s */

/* A call that had not returned for a while comes again when it has. */
static bool is_sent_again(const struct naming *naming, int32_t member, const struct record_call *record)
{
    const size_t count = naming->calls.count;
    if (record->returned_after_ns < SENT_AGAIN_AFTER_NS)
        return false;
    for (size_t i = 1; i <= count && i <= SENT_AGAIN_WITHIN; i++) {
        struct call *call = &naming->calls.items[count - i];
        if (call->member != member || call->record.entered_ns != record->entered_ns ||
            call->record.returned_after_ns != 0 || call->record.peer != record->peer ||
            call->record.sequence != record->sequence || call->record.operation != record->operation)
            continue;
        call->record = *record;
        return true;
    }
    return false;
}

static void take_call(struct builder *builder, size_t stream, const struct record_call *record)
{
    int32_t member = find(builder, stream, RECORD_COMMUNICATOR, record->header.source);
    if (member < 0) {
        builder->naming->orphans_count++;
        return;
    }
    if (is_sent_again(builder->naming, member, record))
        return;
    struct call *call = array_add(&builder->naming->calls);
    call->stream = stream;
    call->member = member;
    call->rank_operation = -1;
    call->record = *record;
    call->entered_ns = mapped(builder, stream, record->entered_ns);
    call->enqueued_ns = mapped(builder, stream, record->enqueued_ns);
    if (call->enqueued_ns == 0)
        call->enqueued_ns = call->entered_ns;
}

static void take_failure(struct builder *builder, size_t stream, const struct record_failure *record)
{
    struct failure *failure = array_add(&builder->naming->failures);
    failure->stream = stream;
    failure->record = *record;
    failure->process = find(builder, stream, RECORD_PROCESS, record->header.source);
    failure->member = find(builder, stream, RECORD_COMMUNICATOR, record->communicator);
    failure->queue_pair = find(builder, stream, RECORD_QUEUE_PAIR, record->queue_pair);
    failure->at_ns = mapped(builder, stream, record->at_ns);
}

static void take_counter(struct builder *builder, size_t stream, const struct record_counter *record)
{
    struct naming *naming = builder->naming;
    for (size_t i = naming->counters.count; i-- > 0 && naming->counters.items[i].stream == stream;) {
        struct record_counter *known = &naming->counters.items[i].record;
        if (known->header.source == record->header.source &&
            memcmp(known->name, record->name, sizeof known->name) == 0) {
            *known = *record;
            return;
        }
    }
    struct counter_total *counter = array_add(&naming->counters);
    counter->stream = stream;
    counter->record = *record;
}

/* All are told again to who may not have heard them. */
static void take_rdma_port(struct builder *builder, size_t stream, const struct record_rdma_port *record)
{
    struct naming *naming = builder->naming;
    for (size_t i = naming->port_states.count; i-- > 0 && naming->port_states.items[i].stream == stream;) {
        struct record_rdma_port *known = &naming->port_states.items[i].record;
        if (known->header.source != record->header.source || known->at_ns != record->at_ns)
            continue;
        *known = *record;
        return;
    }
    struct port_state *state = array_add(&naming->port_states);
    state->stream = stream;
    state->record = *record;
    state->at_ns = mapped(builder, stream, record->at_ns);
    state->before_ns = mapped(builder, stream, record->before_ns);
}

typedef void (*take)(struct builder *builder, size_t stream, const union record *record);

#define TAKES(kind)                                                                                                    \
    static void take_##kind##_record(struct builder *builder, size_t stream, const union record *record)               \
    {                                                                                                                  \
        take_##kind(builder, stream, &record->kind);                                                                   \
    }
TAKES(process)
TAKES(process_fact)
TAKES(communicator)
TAKES(queue_pair)
TAKES(port)
TAKES(flow)
TAKES(flow_total)
TAKES(message)
TAKES(window)
TAKES(call)
TAKES(failure)
TAKES(counter)
TAKES(rdma_port)

/* What names things first, then what refers to them: a loss may have reordered neither, but a reader should not care.
 */
static const take names[] = {
    [RECORD_PROCESS] = take_process_record,
    [RECORD_PROCESS_FACT] = take_process_fact_record,
    [RECORD_COMMUNICATOR] = take_communicator_record,
    [RECORD_QUEUE_PAIR] = take_queue_pair_record,
    [RECORD_PORT] = take_port_record,
    [RECORD_FLOW] = take_flow_record,
};
static const take details[] = {
    [RECORD_FLOW_TOTAL] = take_flow_total_record, [RECORD_MESSAGE] = take_message_record,
    [RECORD_WINDOW] = take_window_record,         [RECORD_CALL] = take_call_record,
    [RECORD_COUNTER] = take_counter_record,       [RECORD_FAILURE] = take_failure_record,
    [RECORD_RDMA_PORT] = take_rdma_port_record,
};

static void walk(struct builder *builder, const take *takes, size_t count)
{
    bool takes_messages = count > RECORD_MESSAGE && takes[RECORD_MESSAGE] != NULL;
    struct intake_walk walk = {.intake = builder->intake, .skips_runs = !takes_messages};
    union record record;

    while (intake_next(&walk, &record))
        if (record.header.kind < count && takes[record.header.kind] != NULL)
            takes[record.header.kind](builder, walk.stream, &record);
}

/* A process that was never described (its record was lost) still has to have a row of its own. */
static int32_t process_of(struct builder *builder, size_t stream, uint32_t number)
{
    int32_t index = find(builder, stream, RECORD_PROCESS, number);
    if (index < 0) {
        struct record_process unknown = {.process = number};
        index = (int32_t)builder->naming->processes.count;
        take_process(builder, stream, &unknown);
    }
    return index;
}

static int32_t port_of(struct builder *builder, size_t stream, uint32_t number)
{
    int32_t index = find(builder, stream, RECORD_PORT, number);
    if (index < 0) {
        struct record_port unknown = {.port = number};
        index = (int32_t)builder->naming->ports.count;
        take_port(builder, stream, &unknown);
    }
    return index;
}

/* Whether the call gives the rank something to do on the wire that is followed: a captured one does so when its graph
 * is launched, which has calls of its own; one-sided puts and signals travel on queue pairs of their own. */
static bool is_operation(const struct record_call *record)
{
    return (record->flags & CALL_CAPTURED) == 0 && record->operation != OPERATION_PUT_SIGNAL &&
           record->operation != OPERATION_SIGNAL && record->operation != OPERATION_WAIT_SIGNAL;
}

/* Turns the numbers that records refer to each other by into indices. */
static void resolve_owners(struct builder *builder)
{
    struct naming *naming = builder->naming;

    for (size_t i = 0; i < naming->facts.count; i++) {
        struct fact *fact = &naming->facts.items[i];
        fact->process = process_of(builder, fact->stream, fact->record.process);
    }
    for (size_t i = 0; i < naming->members.count; i++) {
        struct member *member = &naming->members.items[i];
        member->process = process_of(builder, member->stream, member->record.process);
        member->parent = find(builder, member->stream, RECORD_COMMUNICATOR, member->record.parent);
    }
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        struct queue_pair *pair = &naming->queue_pairs.items[i];
        pair->process = process_of(builder, pair->stream, pair->record.process);
        pair->member = find(builder, pair->stream, RECORD_COMMUNICATOR, pair->record.communicator);
    }
    for (size_t i = 0; i < naming->flows.count; i++) {
        struct flow *flow = &naming->flows.items[i];
        flow->port = port_of(builder, flow->stream, flow->record.port);
    }
}

/* Leaves out what is the same as another entry; `same` becomes where each entry is now. Returns how many are left. */
static size_t keep_first(void *items, size_t count, size_t item_bytes, int32_t *same)
{
    int32_t *places = array_zeroed(count * sizeof *places);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (same[i] != (int32_t)i)
            continue;
        memmove((char *)items + kept * item_bytes, (char *)items + i * item_bytes, item_bytes);
        places[i] = (int32_t)kept++;
    }
    for (size_t i = 0; i < count; i++)
        same[i] = places[same[i]];
    free(places);
    return kept;
}

/* The keys of a kind, once its entries have moved. */
static void move_keys(struct builder *builder, uint16_t kind, const int32_t *places)
{
    for (size_t i = 0; i < builder->keys.count; i++)
        if (builder->keys.items[i].kind == kind)
            builder->keys.items[i].index = places[builder->keys.items[i].index];
}

static int by_fact(const void *a, const void *b)
{
    const struct fact *left = a;
    const struct fact *right = b;

    if (left->process != right->process)
        return left->process < right->process ? -1 : 1;
    if (left->record.fact != right->record.fact)
        return left->record.fact < right->record.fact ? -1 : 1;
    return (left->record.index > right->record.index) - (left->record.index < right->record.index);
}

/* Several boots of an agent tell the same of one process. */
static void keep_facts_once(struct naming *naming)
{
    size_t kept = 0;

    array_sort(&naming->facts, by_fact);
    for (size_t i = 0; i < naming->facts.count; i++)
        if (kept == 0 || by_fact(&naming->facts.items[kept - 1], &naming->facts.items[i]) != 0)
            naming->facts.items[kept++] = naming->facts.items[i];
    naming->facts.count = kept;
}

/* What several boots of an agent described is one entry, under all their numbers. */
static void join_boots(struct builder *builder)
{
    struct naming *naming = builder->naming;
    struct naming_late late;

    naming_late_find(&late, naming, builder->intake);
    naming->processes.count =
        keep_first(naming->processes.items, naming->processes.count, sizeof(struct process), late.processes);
    naming->members.count =
        keep_first(naming->members.items, naming->members.count, sizeof(struct member), late.members);
    naming->queue_pairs.count =
        keep_first(naming->queue_pairs.items, naming->queue_pairs.count, sizeof(struct queue_pair), late.queue_pairs);
    move_keys(builder, RECORD_PROCESS, late.processes);
    move_keys(builder, RECORD_COMMUNICATOR, late.members);
    move_keys(builder, RECORD_QUEUE_PAIR, late.queue_pairs);
    naming_late_fini(&late);
    resolve_owners(builder);
    keep_facts_once(naming);
}

/* A rank that takes no part in a split says so, which is needed to rank the others; it is no member of anything. */
static void leave_out_absent(struct builder *builder)
{
    struct naming *naming = builder->naming;
    int32_t *places = array_zeroed(naming->members.count * sizeof *places);
    size_t kept = 0;

    for (size_t i = 0; i < naming->members.count; i++) {
        places[i] = -1;
        if (naming->members.items[i].record.ending == COMMUNICATOR_NO_PART)
            continue;
        naming->members.items[kept] = naming->members.items[i];
        places[i] = (int32_t)kept++;
    }
    naming->members.count = kept;
    move_keys(builder, RECORD_COMMUNICATOR, places);
    free(places);
    resolve_owners(builder);
}

/* The lists of what belongs to what, once every entry has its place. */
static void list_owned(struct builder *builder)
{
    struct naming *naming = builder->naming;

    for (size_t i = 0; i < naming->queue_pairs.count; i++)
        if (naming->queue_pairs.items[i].member >= 0)
            *(int32_t *)array_add(&naming->members.items[naming->queue_pairs.items[i].member].queue_pairs) = (int32_t)i;
    for (size_t i = 0; i < naming->calls.count; i++)
        if (is_operation(&naming->calls.items[i].record))
            *(int32_t *)array_add(&naming->members.items[naming->calls.items[i].member].calls) = (int32_t)i;
}

/* Among the NIC sides' clocks: what holds in their cluster where they all are in one. */
static uint64_t frames_bound(const struct timeline *timeline, const struct intake *intake)
{
    uint64_t worst_ns = 0;
    uint64_t among_ns = 0;
    size_t root = CLUSTER_NONE;
    bool one_cluster = true;

    for (size_t i = 0; i < timeline->clocks.count; i++) {
        const struct timeline_clock *clock = &timeline->clocks.items[i];
        size_t own = timeline->cluster.machines.items[clock->kin.machine].root;
        if (intake->streams.items[i].kind != EMITTER_NIC || clock->source == TIMELINE_NONE)
            continue;
        worst_ns = clock->worst_bound_ns > worst_ns ? clock->worst_bound_ns : worst_ns;
        among_ns = clock->worst_among_ns > among_ns ? clock->worst_among_ns : among_ns;
        one_cluster &= root == CLUSTER_NONE || own == root;
        root = own;
    }
    return one_cluster && among_ns < worst_ns ? among_ns : worst_ns;
}

void naming_build(struct naming *naming, const struct intake *intake, const struct timeline *timeline)
{
    struct builder builder = {.naming = naming, .intake = intake, .timeline = timeline};

    memset(naming, 0, sizeof *naming);
    for (size_t i = 0; i < timeline->clocks.count; i++)
        if (timeline->clocks.items[i].worst_bound_ns > naming->bound_ns)
            naming->bound_ns = timeline->clocks.items[i].worst_bound_ns;
    naming->frames_bound_ns = frames_bound(timeline, intake);
    walk(&builder, names, sizeof names / sizeof names[0]);
    resolve_owners(&builder);
    join_boots(&builder);
    naming_identify(naming);
    naming_rank_children(naming);
    leave_out_absent(&builder);
    walk(&builder, details, sizeof details / sizeof details[0]);
    list_owned(&builder);
    array_fini(&builder.keys);
    naming_join(naming);
}

void naming_fini(struct naming *naming)
{
    for (size_t i = 0; i < naming->members.count; i++) {
        array_fini(&naming->members.items[i].calls);
        array_fini(&naming->members.items[i].queue_pairs);
        array_fini(&naming->members.items[i].borrowed);
    }
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        array_fini(&naming->queue_pairs.items[i].flows_out);
        array_fini(&naming->queue_pairs.items[i].flows_in);
    }
    for (size_t i = 0; i < naming->flows.count; i++)
        array_fini(&naming->flows.items[i].messages);
    array_fini(&naming->processes);
    array_fini(&naming->facts);
    array_fini(&naming->communicators);
    array_fini(&naming->members);
    array_fini(&naming->queue_pairs);
    array_fini(&naming->ports);
    array_fini(&naming->flows);
    array_fini(&naming->messages);
    array_fini(&naming->calls);
    array_fini(&naming->windows);
    array_fini(&naming->failures);
    array_fini(&naming->counters);
    array_fini(&naming->port_states);
    array_fini(&naming->flow_events);
}
