/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Evidence out of the tables of naming and counted. Invariant: a series' changes carry the row numbers of those tables,
 * one after the other, since both tables are sorted by owner, metric and time.
 */
#include "correlator/verdict/evidence_find.h"

#include <stdlib.h>
#include <string.h>

/* What cannot be known where only a message's first and last frames come. */
#define NEEDS_ALL_FRAMES                                                                                               \
    (SOURCE_PACKETS | SOURCE_WIRE_BYTES | SOURCE_PAYLOAD_BYTES | SOURCE_WINDOWS | SOURCE_MARKS | SOURCE_RETRANSMISSIONS)

struct known_ports { /* those of one queue pair: the next one is mostly at the same */
    int32_t queue_pair;
    ARRAY(int32_t) ports;
};

struct finder {
    struct evidence *evidence;
    struct known_ports known[2]; /* of sending and of receiving ends */
    const struct naming *naming;
    const struct counted *counted;
    const struct intake *intake;
};

uint32_t evidence_port_fields(const struct counted *counted, const struct port *port)
{
    uint32_t fields = counted_fields(counted, port->stream);

    return (port->record.flags & PORT_EDGES_ONLY) != 0 ? fields & ~(uint32_t)NEEDS_ALL_FRAMES : fields;
}

static int32_t rank_of(const struct naming *naming, int32_t queue_pair)
{
    int32_t member = queue_pair < 0 ? -1 : naming->queue_pairs.items[queue_pair].member;

    return member < 0 ? -1 : naming->members.items[member].rank;
}

/* ---- places ---- */

static void add_place(struct finder *finder, struct evidence_place place)
{
    if (place.from >= 0 && place.to >= 0)
        *(struct evidence_place *)array_add(&finder->evidence->places) = place;
}

static void see_rank(struct finder *finder, int32_t rank, uint32_t fields)
{
    if (rank < 0)
        return;
    while (finder->evidence->sights.count <= (size_t)rank)
        array_add(&finder->evidence->sights);
    finder->evidence->sights.items[rank] |= fields;
}

static void add_flow_places(struct finder *finder, int32_t index)
{
    const struct flow *flow = &finder->naming->flows.items[index];
    int32_t from = rank_of(finder->naming, flow->sender), to = rank_of(finder->naming, flow->receiver);
    uint32_t fields = evidence_port_fields(finder->counted, &finder->naming->ports.items[flow->port]);
    struct evidence_place place = {
        .from = from,
        .to = to,
        .side = EVIDENCE_FLOW,
        .vantage = flow->record.vantage,
        .owner = index,
        .fields = fields,
    };

    see_rank(finder, from, fields);
    add_place(finder, place);
    place.from = to;
    place.to = from;
    place.side = EVIDENCE_ANSWER;
    add_place(finder, place);
}

static bool same_port(const struct queue_pair *a, const struct queue_pair *b)
{
    return a->stream == b->stream && a->record.port == b->record.port &&
           memcmp(a->record.address, b->record.address, ADDRESS_BYTES) == 0 &&
           memcmp(a->record.device, b->record.device, DEVICE_NAME_BYTES) == 0;
}

static void know_ports(const struct finder *finder, int32_t index, struct known_ports *known)
{
    const struct queue_pair *pair = &finder->naming->queue_pairs.items[index];

    if (known->queue_pair >= 0 && same_port(pair, &finder->naming->queue_pairs.items[known->queue_pair]))
        return;
    known->queue_pair = index;
    known->ports.count = 0;
    for (size_t i = 0; i < finder->naming->ports.count; i++)
        if (counted_is_port_of(finder->intake, &finder->naming->ports.items[i], pair))
            *(int32_t *)array_add(&known->ports) = (int32_t)i;
}

/* The port at a queue pair's end: those that are known to be it, and the one that saw it send. */
static void add_port_places(struct finder *finder, int32_t index, enum evidence_side side, int32_t from, int32_t to)
{
    const struct queue_pair *pair = &finder->naming->queue_pairs.items[index];
    struct evidence_place place = {.from = from, .to = to, .of_port = true, .side = (uint8_t)side};
    struct known_ports *known = &finder->known[side == EVIDENCE_RECEIVER];

    know_ports(finder, index, known);
    for (size_t i = 0; i < known->ports.count; i++) {
        place.owner = known->ports.items[i];
        add_place(finder, place);
    }
    for (size_t i = 0; i < pair->flows_out.count; i++) {
        const struct flow *flow = &finder->naming->flows.items[pair->flows_out.items[i]];
        place.owner = flow->port;
        if (flow->record.vantage == VANTAGE_TX)
            add_place(finder, place);
    }
}

static int by_link(const void *a, const void *b)
{
    const struct evidence_place *left = a;
    const struct evidence_place *right = b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->to != right->to)
        return left->to < right->to ? -1 : 1;
    if (left->of_port != right->of_port)
        return left->of_port < right->of_port ? -1 : 1;
    if (left->vantage != right->vantage)
        return left->vantage < right->vantage ? -1 : 1;
    if (left->owner != right->owner)
        return left->owner < right->owner ? -1 : 1;
    return (left->side > right->side) - (left->side < right->side);
}

static void order_places(struct evidence *evidence)
{
    size_t kept = 0;

    array_sort(&evidence->places, by_link);
    for (size_t i = 0; i < evidence->places.count; i++)
        if (kept == 0 || by_link(&evidence->places.items[kept - 1], &evidence->places.items[i]) != 0)
            evidence->places.items[kept++] = evidence->places.items[i];
    evidence->places.count = kept;
}

static void find_places(struct finder *finder)
{
    const struct naming *naming = finder->naming;

    for (size_t i = 0; i < naming->flows.count; i++)
        add_flow_places(finder, (int32_t)i);
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        int32_t index = (int32_t)i, peer = naming->queue_pairs.items[i].peer;
        int32_t from = rank_of(naming, index), to = rank_of(naming, peer);
        if (from < 0 || to < 0)
            continue;
        add_port_places(finder, index, EVIDENCE_SENDER, from, to);
        add_port_places(finder, peer, EVIDENCE_RECEIVER, from, to);
    }
    order_places(finder->evidence);
    for (size_t i = 0; i < naming->ports.count; i++) {
        const struct record_port *record = &naming->ports.items[i].record;
        memcpy(((struct evidence_port *)array_add(&finder->evidence->ports))->name, record->name, sizeof record->name);
    }
}

/* ---- series ---- */

static void add_change(struct evidence *evidence, const struct evidence_series *of,
                       const struct evidence_change *change)
{
    struct evidence_series *last =
        evidence->series.count == 0 ? NULL : &evidence->series.items[evidence->series.count - 1];

    if (last == NULL || last->of_port != of->of_port || last->owner != of->owner || last->kind != of->kind ||
        last->priority != of->priority) {
        last = array_add(&evidence->series);
        *last = *of;
        last->first = evidence->changes.count;
    }
    last->count++;
    *(struct evidence_change *)array_add(&evidence->changes) = *change;
}

/* -1: the metric says nothing about a link. */
static int kind_of(bool of_port, unsigned number)
{
    for (size_t i = 0; i < evidence_kinds_count; i++)
        if (evidence_kinds[i].of_port == of_port && evidence_kinds[i].number == number)
            return (int)i;
    return -1;
}

static void add_flow_changes(struct finder *finder)
{
    for (size_t i = 0; i < finder->naming->flow_events.count; i++) {
        const struct flow_event *event = &finder->naming->flow_events.items[i];
        int kind = kind_of(false, event->metric);
        struct evidence_series of = {.owner = event->flow, .kind = (uint8_t)kind, .priority = PRIORITY_NONE};
        struct evidence_change change = {event->from_ns, event->to_ns, event->amount, (int32_t)i};
        if (kind >= 0)
            add_change(finder->evidence, &of, &change);
    }
}

static void add_port_changes(struct finder *finder)
{
    for (size_t i = 0; i < finder->counted->port_counters.count; i++) {
        const struct port_counter *counter = &finder->counted->port_counters.items[i];
        int kind = kind_of(true, counter->record.metric);
        struct evidence_series of = {
            .of_port = true, .owner = counter->port, .kind = (uint8_t)kind, .priority = counter->record.priority};
        struct evidence_change change = {counter->from_ns, counter->to_ns, counter->added, (int32_t)i};
        if (kind >= 0)
            add_change(finder->evidence, &of, &change);
    }
}

static int by_owner_and_kind(const void *a, const void *b)
{
    const struct evidence_series *left = a;
    const struct evidence_series *right = b;

    if (left->of_port != right->of_port)
        return left->of_port < right->of_port ? -1 : 1;
    if (left->owner != right->owner)
        return left->owner < right->owner ? -1 : 1;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    return (left->priority > right->priority) - (left->priority < right->priority);
}

void evidence_find(struct evidence *evidence, const struct naming *naming, const struct counted *counted,
                   const struct intake *intake)
{
    struct finder finder = {.evidence = evidence, .naming = naming, .counted = counted, .intake = intake};

    finder.known[0].queue_pair = finder.known[1].queue_pair = -1;
    find_places(&finder);
    array_fini(&finder.known[0].ports);
    array_fini(&finder.known[1].ports);
    add_flow_changes(&finder);
    add_port_changes(&finder);
    array_sort(&evidence->series, by_owner_and_kind);
}
