/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open addressing with linear probing over slots of (hash, flow number); at most half of the slots are used, nothing is
 * ever removed. Flows between the same two addresses are chained, so that an answer finds the flows it may be about.
 * Invariant: a slot's number is that of the newest flow of its key.
 */
#include "nic/flow/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "nic/frame/encapsulation.h"
#include "nic/window/pages.h"

#define SECRETS_COUNT 7

struct slot {
    uint32_t hash;
    uint32_t number; /* 0 = free */
};

struct flow_table {
    uint32_t flows_max;
    uint32_t count;
    uint32_t slots_mask;
    uint64_t secrets[SECRETS_COUNT];
    struct slot *slots;
    uint32_t *pairs;    /* by hash of the addresses: number of the newest flow of a chain */
    struct flow *flows; /* by number; 0 is nobody */
};

static uint32_t slots_for(uint32_t flows_max)
{
    uint32_t slots = 64;

    while (slots < flows_max * 2)
        slots *= 2;
    return slots;
}

static size_t flows_bytes(uint32_t flows_max)
{
    return ((size_t)flows_max + 1) * sizeof(struct flow);
}

size_t flow_table_bytes(uint32_t flows_max)
{
    return sizeof(struct flow_table) + (size_t)slots_for(flows_max) * (sizeof(struct slot) + sizeof(uint32_t)) +
           flows_bytes(flows_max);
}

static void draw_secrets(struct flow_table *table)
{
    if (getrandom(table->secrets, sizeof table->secrets, GRND_NONBLOCK) != sizeof table->secrets)
        for (size_t i = 0; i < SECRETS_COUNT; i++)
            table->secrets[i] = (uintptr_t)table * (2 * i + 0x9e3779b97f4a7c15u);
    for (size_t i = 0; i < SECRETS_COUNT; i++)
        table->secrets[i] |= 1;
}

int flow_table_create(struct flow_table **table, uint32_t flows_max)
{
    uint32_t slots = slots_for(flows_max);
    struct flow_table *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->flows_max = flows_max;
    made->slots_mask = slots - 1;
    made->slots = calloc(slots, sizeof *made->slots);
    made->pairs = calloc(slots, sizeof *made->pairs);
    made->flows = pages_create(flows_bytes(flows_max));
    if (made->slots == NULL || made->pairs == NULL || made->flows == NULL) {
        flow_table_destroy(&made);
        return -ENOMEM;
    }
    made->flows[0].name.way = GLANCE_NO_WAY;
    draw_secrets(made);
    *table = made;
    return 0;
}

void flow_table_prepare(struct flow_table *table)
{
    pages_prepare(table->flows, flows_bytes(table->flows_max));
}

void flow_table_destroy(struct flow_table **table)
{
    if (*table == NULL)
        return;
    free((*table)->slots);
    free((*table)->pairs);
    pages_destroy((*table)->flows, flows_bytes((*table)->flows_max));
    free(*table);
    *table = NULL;
}

/* Multiply and fold: one 64 x 64 -> 128 bit product. */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Sums of products with secret factors, so that nobody can choose keys that collide. */
static inline uint64_t hash_pair(const struct flow_table *table, const uint64_t source[2],
                                 const uint64_t destination[2])
{
    const uint64_t *secret = table->secrets;

    return fold(source[0] ^ secret[0], source[1] ^ secret[1]) +
           fold(destination[0] ^ secret[2], destination[1] ^ secret[3]);
}

static inline uint32_t hash_name(const struct flow_table *table, const struct plain_name *name)
{
    const uint64_t *secret = table->secrets, *addresses = name->addresses;
    uint64_t hash = fold(addresses[0] ^ secret[0], name->way ^ secret[1]);

    if ((name->way & GLANCE_IPV6) != 0)
        hash += fold(addresses[1] ^ secret[2], addresses[2] ^ secret[3]) + fold(addresses[3] ^ secret[4], secret[5]);
    return (uint32_t)hash;
}

/* A key whose frames a glance takes has the hash of their name. */
static uint32_t hash_key(const struct flow_table *table, const struct flow_key *key)
{
    const uint64_t *secret = table->secrets;
    struct plain_name name = glance_name(key);

    if (name.way != GLANCE_NO_WAY)
        return hash_name(table, &name);
    uint64_t way = fold(key->tunnel ^ secret[4], key->mirror ^ (uint64_t)key->port << 45 ^ secret[5]);
    return (uint32_t)fold((hash_pair(table, key->source, key->destination) + way) ^ key->destination_qpn, secret[6]);
}

static inline bool is_same_name(const struct plain_name *a, const struct plain_name *b)
{
    if (((a->way ^ b->way) | (a->addresses[0] ^ b->addresses[0])) != 0)
        return false;
    return (a->way & GLANCE_IPV6) == 0 || ((a->addresses[1] ^ b->addresses[1]) | (a->addresses[2] ^ b->addresses[2]) |
                                           (a->addresses[3] ^ b->addresses[3])) == 0;
}

static struct slot *find_slot(struct flow_table *table, const struct flow_key *key, uint32_t hash)
{
    for (uint32_t i = hash & table->slots_mask;; i = (i + 1) & table->slots_mask) {
        struct slot *slot = &table->slots[i];
        if (slot->number == 0)
            return slot;
        if (slot->hash == hash && memcmp(&table->flows[slot->number].key, key, sizeof *key) == 0)
            return slot;
    }
}

struct flow *flow_find(struct flow_table *table, const struct flow_key *key)
{
    struct slot *slot = find_slot(table, key, hash_key(table, key));

    return slot->number == 0 ? NULL : &table->flows[slot->number];
}

/* Asks the processor to fetch what a frame of a train changes. */
static inline void expect_frame(const struct flow *flow)
{
    __builtin_prefetch(&flow->name, 1);
    __builtin_prefetch(&flow->windows, 1);
}

/* Past slots of other hashes, and of flows of another name that have the same one (one in 2^32). */
static struct flow *find_name(const struct flow_table *table, const struct plain_name *name, uint32_t hash)
{
    for (uint32_t i = hash & table->slots_mask; table->slots[i].number != 0; i = (i + 1) & table->slots_mask) {
        struct flow *flow = &table->flows[table->slots[i].number];
        if (table->slots[i].hash == hash && is_same_name(&flow->name, name))
            return flow;
    }
    return NULL;
}

void flow_find_burst(struct flow_table *table, const struct glance *glances, size_t count, struct flow **flows)
{
    const uint32_t slots_mask = table->slots_mask;
    const struct slot *slots = table->slots;
    struct flow *all = table->flows;
    uint32_t hashes[FLOW_BURST_MAX];

    for (size_t i = 0; i < count; i++) {
        const struct plain_name *name = &glances[i].name;
        hashes[i] = hash_name(table, name);
        __builtin_prefetch(&slots[hashes[i] & slots_mask]);
    }
    for (size_t i = 0; i < count; i++) {
        flows[i] = &all[slots[hashes[i] & slots_mask].number];
        expect_frame(flows[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_same_name(&flows[i]->name, &glances[i].name))
            flows[i] = find_name(table, &glances[i].name, hashes[i]);
    }
}

struct flow *flow_add(struct flow_table *table, const struct flow_key *key)
{
    uint64_t pair = hash_pair(table, key->source, key->destination);
    uint32_t hash = hash_key(table, key);

    if (table->count == table->flows_max)
        return NULL;
    struct slot *slot = find_slot(table, key, hash);
    struct flow *flow = &table->flows[++table->count];
    flow->key = *key;
    flow->name = glance_name(key);
    flow->next_sign = GLANCE_NO_SIGN;
    flow->number = table->count;
    if (slot->number != 0)
        flow->generation = table->flows[slot->number].generation + 1;
    *slot = (struct slot){.hash = hash, .number = flow->number};
    flow->next_of_pair = table->pairs[pair & table->slots_mask];
    table->pairs[pair & table->slots_mask] = flow->number;
    return flow;
}

uint32_t flow_capacity(const struct flow_table *table)
{
    return table->flows_max;
}

uint32_t flow_count(const struct flow_table *table)
{
    return table->count;
}

struct flow *flow_at(const struct flow_table *table, uint32_t number)
{
    return &table->flows[number];
}

static bool is_reverse(const struct flow *flow, const struct flow_key *key)
{
    return memcmp(flow->key.source, key->destination, sizeof key->source) == 0 &&
           memcmp(flow->key.destination, key->source, sizeof key->source) == 0 && flow->key.port == key->port &&
           encapsulation_may_answer(&flow->key, key);
}

struct flow *flow_next_reverse(struct flow_table *table, const struct flow_key *key, struct flow *flow)
{
    uint32_t number = 0;

    if (flow == NULL)
        number = table->pairs[hash_pair(table, key->destination, key->source) & table->slots_mask];
    else
        number = flow->next_of_pair;
    while (number != 0 && !is_reverse(flow_at(table, number), key))
        number = flow_at(table, number)->next_of_pair;
    return number == 0 ? NULL : flow_at(table, number);
}

const struct sequence *flow_sequence(struct flow *flow)
{
    struct sequence *sequence = &flow->streams[FLOW_REQUESTS].sequence;

    if (flow->train.frames_before != 0)
        sequence->highest = (glance_psn(flow->next_sign) - 1) & FRAME_PSN_MASK;
    return sequence;
}

struct window_sums flow_data(const struct flow *flow)
{
    struct window_sums data = flow->windows.sums;

    data.frames += flow->odd.repeated_frames;
    data.wire_bytes += flow->odd.repeated_wire_bytes;
    data.payload_bytes += flow->odd.repeated_payload_bytes;
    return data;
}

uint64_t flow_last_ns(const struct flow *flow)
{
    return flow->data_ns > flow->last_ns ? flow->data_ns : flow->last_ns;
}

void flow_record(const struct flow *flow, struct record_flow *record)
{
    *record = (struct record_flow){
        .header.source = flow->number,
        .flow = flow->number,
        .generation = flow->generation,
        .destination_qpn = flow->key.destination_qpn,
        .udp_source_port = flow->look.udp_source_port,
        .vantage = flow->vantage,
        .dscp = flow->look.dscp,
        .port = flow->key.port,
        .first_ns = flow->first_ns,
    };
    encapsulation_describe(&flow->key, record);
    memcpy(record->source, flow->key.source, ADDRESS_BYTES);
    memcpy(record->destination, flow->key.destination, ADDRESS_BYTES);
}

static void add_recovery(const struct recovery *recovery, struct record_flow_total *record)
{
    record->retransmitted_frames -= recovery->reordered_frames;
    record->retransmitted_bytes -= recovery->reordered_bytes;
    record->reordered_frames += recovery->reordered_frames;
    record->late_unknown_frames += recovery->late_unknown_frames;
    record->duplicate_frames += recovery->duplicate_frames;
    record->timeouts += recovery->timeouts;
    uint64_t timeout_us = record->timeout_us + recovery->timeout_ns / 1000;
    record->timeout_us = timeout_us < UINT32_MAX ? (uint32_t)timeout_us : UINT32_MAX;
    record->pauses += recovery->pauses;
}

static void add_pair(const struct flow *flow, const struct flow *other, struct record_flow_total *record)
{
    const struct answers *answers = &other->answers;

    record->pair = other->number;
    record->paired_by = flow->pairing.by;
    record->source_qpn = other->key.destination_qpn;
    record->got_acks = answers->acks;
    memcpy(record->got_naks, answers->naks_by_code, sizeof record->got_naks);
    record->got_rnr_naks = answers->rnr_naks;
    record->got_cnps = answers->cnps;
    record->rnr_wait_ns = answers->rnr_wait_ns;
    record->rnr_last_ns = answers->rnr_last_ns;
}

void flow_total_record(struct flow_table *table, const struct flow *flow, struct record_flow_total *record)
{
    struct window_sums data = flow_data(flow);
    const struct flow_oddity *odd = &flow->odd;
    const struct flow *other = pairing_other(table, flow);

    *record = (struct record_flow_total){
        .header.source = flow->number,
        .data_frames = data.frames,
        .wire_bytes = data.wire_bytes,
        .payload_bytes = data.payload_bytes,
        .messages = flow->messages,
        .acks = flow->answers.acks,
        .naks = flow->answers.naks,
        .rnr_naks = flow->answers.rnr_naks,
        .cnps = flow->answers.cnps,
        .marked_frames = odd->marked_frames,
        .repeated_frames = odd->repeated_frames,
        .late_frames = odd->late_frames,
        .retransmitted_frames = odd->retransmitted_frames,
        .retransmitted_bytes = odd->retransmitted_bytes,
        .last_ns = flow_last_ns(flow),
        .covered_psns = flow->windows.sums.frames,
        .source_port_changes = flow->source_port_changes,
        .codepoints = flow->codepoints,
        .dscp = flow->look.dscp,
    };
    if (data.frames != 0)
        record->codepoints |= (uint8_t)(1u << flow->look.ecn);
    for (unsigned i = 0; i < FLOW_STREAMS_COUNT; i++)
        add_recovery(&flow->recovery[i], record);
    if (other != NULL)
        add_pair(flow, other, record);
}
