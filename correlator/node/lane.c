/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lanes. A slot ends with the message that carries immediate data: a big one is a write and a 0-byte write with
 * immediate, a small one a single write with immediate. Invariant: slots and credits are in order of time.
 */
#include "correlator/node/lane.h"

#include <stdlib.h>
#include <string.h>

#define CREDIT_BYTES 64  /* a credit names one receive in each 64 bytes */
#define CREDITS_MAX  256 /* in one message, merged or not */

static uint32_t swapped(uint32_t value)
{
    return __builtin_bswap32(value);
}

/* The size in the immediate data is in the sender's byte order up to NCCL 2.29, big-endian after. */
static bool says(uint32_t immediate, uint64_t bytes)
{
    return immediate == bytes || swapped(immediate) == bytes;
}

static struct slot *open_slot(struct lane *lane, bool *open, const struct message *message)
{
    if (*open)
        return &lane->slots.items[lane->slots.count - 1];
    struct slot *slot = array_add(&lane->slots);
    slot->first_ns = message->first_ns;
    slot->data_last_ns = message->first_ns;
    slot->whole = true;
    *open = true;
    return slot;
}

/* A burst stands for itself: where one slot ends in it and the next begins is not known. */
static void add_data(struct lane *lane, bool *open, const struct message *message, int32_t index, bool alone)
{
    bool is_burst = (message->flags & MESSAGE_MERGED) != 0;

    if (is_burst && *open)
        lane->slots.items[lane->slots.count - 1].whole = false;
    *open &= !is_burst;
    struct slot *slot = open_slot(lane, open, message);
    struct slot_message *of = array_add(&lane->messages);

    of->slot = lane->slots.count - 1;
    of->message = index;
    slot->last_ns = message->last_ns;
    slot->bytes += message->payload_bytes;
    if (message->payload_bytes > 0)
        slot->data_last_ns = message->last_ns;
    if ((message->flags & (MESSAGE_INCOMPLETE | MESSAGE_MERGED)) != 0)
        slot->whole = false;
    if ((message->flags & MESSAGE_RETRANSMITTED) != 0)
        slot->retransmitted++;
    *open &= !is_burst;
    if ((message->flags & MESSAGE_IMMEDIATE) != 0) {
        *open = false;
        if (alone && !says(message->immediate, slot->bytes))
            slot->whole = false;
    }
}

struct timed {
    uint64_t first_ns;
    int32_t message;
};
typedef ARRAY(struct timed) timed_list;

static int by_first(const void *a, const void *b)
{
    const struct timed *left = a;
    const struct timed *right = b;

    if (left->first_ns != right->first_ns)
        return left->first_ns < right->first_ns ? -1 : 1;
    return (left->message > right->message) - (left->message < right->message);
}

/* Data in the order in which it was begun: what was lost and sent again ends after what was sent behind it. */
static void sort_data(timed_list *list, const struct naming *naming, const struct flow *flow)
{
    for (size_t i = 0; i < flow->messages.count; i++) {
        int32_t index = flow->messages.items[i];
        const struct message *message = &naming->messages.items[index];
        if (message->role == ROLE_DATA)
            *(struct timed *)array_add(list) = (struct timed){message->first_ns, index};
    }
    array_sort(list, by_first);
}

static void add_slots(struct lane *lane, const struct naming *naming, int32_t flow, bool alone)
{
    timed_list data = {0};
    bool open = false;

    if (flow < 0)
        return;
    sort_data(&data, naming, &naming->flows.items[flow]);
    for (size_t i = 0; i < data.count; i++) {
        int32_t index = data.items[i].message;
        add_data(lane, &open, &naming->messages.items[index], index, alone);
    }
    array_fini(&data);
    if (open)
        lane->slots.items[lane->slots.count - 1].whole = false;
}

static uint32_t credits_in(const struct message *message)
{
    uint32_t count = message->role == ROLE_CREDIT ? message->payload_bytes / CREDIT_BYTES : 0;

    return count < CREDITS_MAX ? count : CREDITS_MAX;
}

static void add_credits(struct lane *lane, const struct naming *naming, int32_t flow)
{
    if (flow < 0)
        return;
    for (size_t i = 0; i < naming->flows.items[flow].messages.count; i++) {
        int32_t index = naming->flows.items[flow].messages.items[i];
        const struct message *message = &naming->messages.items[index];
        for (uint32_t n = 0; n < credits_in(message); n++) {
            struct credit *credit = array_add(&lane->credits);
            credit->ns = message->last_ns;
            credit->message = index;
        }
    }
}

/* Lays the slots of a further queue pair of the same connection onto those that are there. */
static void stripe(struct lane *lane, const struct lane *other)
{
    for (size_t i = 0; i < other->slots.count; i++) {
        const struct slot *from = &other->slots.items[i];
        if (i == lane->slots.count) {
            *(struct slot *)array_add(&lane->slots) = *from;
            lane->slots.items[i].whole = false;
            continue;
        }
        struct slot *slot = &lane->slots.items[i];
        slot->first_ns = from->first_ns < slot->first_ns ? from->first_ns : slot->first_ns;
        slot->last_ns = from->last_ns > slot->last_ns ? from->last_ns : slot->last_ns;
        slot->data_last_ns = from->data_last_ns > slot->data_last_ns ? from->data_last_ns : slot->data_last_ns;
        slot->bytes += from->bytes;
        slot->retransmitted += from->retransmitted;
        slot->whole &= from->whole;
    }
    for (size_t i = other->slots.count; i < lane->slots.count; i++)
        lane->slots.items[i].whole = false;
    for (size_t i = 0; i < other->messages.count; i++)
        *(struct slot_message *)array_add(&lane->messages) = other->messages.items[i];
}

static int by_credit_time(const void *a, const void *b)
{
    uint64_t left = ((const struct credit *)a)->ns;
    uint64_t right = ((const struct credit *)b)->ns;
    return (left > right) - (left < right);
}

static void add_queue_pair(struct lane *lane, const struct naming *naming, const struct queue_pair *pair, bool alone)
{
    bool sends = lane->direction == LANE_SEND;
    int32_t out = naming_view(naming, pair->flows_out.items, pair->flows_out.count, VANTAGE_TX);
    int32_t in = naming_view(naming, pair->flows_in.items, pair->flows_in.count, VANTAGE_RX);
    struct lane own = {.direction = lane->direction};

    add_credits(lane, naming, sends ? in : out);
    array_sort(&lane->credits, by_credit_time);
    if (lane->slots.count == 0) {
        add_slots(lane, naming, sends ? out : in, alone);
        return;
    }
    add_slots(&own, naming, sends ? out : in, alone);
    stripe(lane, &own);
    array_fini(&own.slots);
    array_fini(&own.messages);
}

static bool same_connection(const struct queue_pair *a, const struct queue_pair *b)
{
    return a->record.connection != 0 && a->record.connection == b->record.connection && a->role == b->role &&
           memcmp(a->record.remote_address, b->record.remote_address, ADDRESS_BYTES) == 0;
}

/*
 * Connections for point-to-point calls are made inside the first group with such a call, those for collectives with the
 * communicator or inside a collective: the call that was entered last tells.
 */
static bool made_for_point_to_point(const struct naming *naming, const struct member *member, uint64_t created_ns)
{
    const struct call *last = NULL;

    for (size_t i = 0; i < member->calls.count; i++) {
        const struct call *call = &naming->calls.items[member->calls.items[i]];
        if (call->entered_ns <= created_ns && (last == NULL || call->entered_ns > last->entered_ns))
            last = call;
    }
    return last != NULL && (last->record.operation == OPERATION_SEND || last->record.operation == OPERATION_RECV);
}

static int by_creation(const void *a, const void *b)
{
    const struct queue_pair *const *left = a;
    const struct queue_pair *const *right = b;

    if ((*left)->created_ns != (*right)->created_ns)
        return (*left)->created_ns < (*right)->created_ns ? -1 : 1;
    return ((*left)->record.queue_pair > (*right)->record.queue_pair) -
           ((*left)->record.queue_pair < (*right)->record.queue_pair);
}

typedef ARRAY(const struct queue_pair *) pair_list;

static void pairs_of(pair_list *pairs, const struct naming *naming, const struct member *member,
                     enum lane_direction direction)
{
    enum queue_pair_role role = direction == LANE_SEND ? QUEUE_PAIR_ROLE_SENDER : QUEUE_PAIR_ROLE_RECEIVER;

    for (size_t i = 0; i < member->queue_pairs.count; i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[member->queue_pairs.items[i]];
        if (pair->role == role)
            *(const struct queue_pair **)array_add(pairs) = pair;
    }
    array_sort(pairs, by_creation);
}

/* How many of the pairs from `from` on serve the connection of pairs[from]; they are moved to lie behind it. */
static size_t gather(pair_list *pairs, size_t from)
{
    size_t to = from + 1;

    for (size_t i = from + 1; i < pairs->count; i++) {
        const struct queue_pair *pair = pairs->items[i];
        if (!same_connection(pairs->items[from], pair))
            continue;
        memmove(&pairs->items[to + 1], &pairs->items[to], (i - to) * sizeof pairs->items[0]);
        pairs->items[to++] = pair;
    }
    return to - from;
}

void lane_build(lane_list *lanes, const struct naming *naming, int32_t member, enum lane_direction direction)
{
    const struct member *owner = &naming->members.items[member];
    pair_list pairs = {0};
    size_t serving;

    pairs_of(&pairs, naming, owner, direction);
    for (size_t i = 0; i < pairs.count; i += serving) {
        struct lane *lane = array_add(lanes);
        serving = gather(&pairs, i);
        lane->direction = direction;
        lane->queue_pair = (int32_t)(pairs.items[i] - naming->queue_pairs.items);
        lane->point_to_point = made_for_point_to_point(naming, owner, pairs.items[i]->created_ns);
        int32_t peer = naming_peer_member(naming, lane->queue_pair);
        lane->peer_rank = peer < 0 ? -1 : naming->members.items[peer].record.rank;
        for (size_t j = i; j < i + serving; j++)
            add_queue_pair(lane, naming, pairs.items[j], serving == 1);
    }
    array_fini(&pairs);
}

static bool credit_fits(const struct lane *lane, int64_t credit, size_t slot, uint64_t not_before_ns)
{
    return credit >= 0 && credit < (int64_t)lane->credits.count && lane->credits.items[credit].ns >= not_before_ns &&
           lane->credits.items[credit].ns <= lane->slots.items[slot].first_ns;
}

int64_t lane_credit(struct lane *lane, size_t slot, uint64_t not_before_ns)
{
    if (credit_fits(lane, (int64_t)slot + lane->shift, slot, not_before_ns))
        return (int64_t)slot + lane->shift;
    for (size_t i = 0; i < lane->credits.count; i++)
        if (credit_fits(lane, (int64_t)i, slot, not_before_ns)) {
            lane->shift = (int64_t)i - (int64_t)slot;
            return (int64_t)i;
        }
    return -1;
}

void lane_fini(lane_list *lanes)
{
    for (size_t i = 0; i < lanes->count; i++) {
        array_fini(&lanes->items[i].slots);
        array_fini(&lanes->items[i].credits);
        array_fini(&lanes->items[i].messages);
    }
    array_fini(lanes);
}
