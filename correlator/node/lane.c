/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lanes. Invariant: slots are in the order in which the library sent them, credits in order of time; where queue pairs
 * of a connection overtake each other, a slot may have begun before the one in front of it.
 */
#include "correlator/node/lane.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/node/work.h"

#define CREDITS_AHEAD 16  /* may be there for slots that have not come */
#define CREDIT_BYTES  64  /* a credit names one receive in each 64 bytes */
#define CREDITS_MAX   256 /* in one message, merged or not */
#define CHANNELS_MAX  128 /* of a communicator; more is damage */

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

static int by_credit_time(const void *a, const void *b)
{
    uint64_t left = ((const struct credit *)a)->ns;
    uint64_t right = ((const struct credit *)b)->ns;
    return (left > right) - (left < right);
}

static bool lived_together(const struct queue_pair *a, const struct queue_pair *b)
{
    return (a->destroyed_ns == 0 || a->destroyed_ns >= b->created_ns) &&
           (b->destroyed_ns == 0 || b->destroyed_ns >= a->created_ns);
}

/*
 * The library gives the queue pairs of one connection the same context (NCCL from 2.23.4 on), and those of one device
 * the same completion queue.
 */
static bool same_connection(const struct queue_pair *a, const struct queue_pair *b)
{
    if (a->role != b->role || !lived_together(a, b))
        return false;
    if (a->record.context != 0 && b->record.context != 0)
        return a->record.context == b->record.context;
    return a->record.connection != 0 && a->record.connection == b->record.connection &&
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
    return last != NULL && work_is_between_pairs(last->record.operation);
}

bool lane_is_point_to_point(const struct naming *naming, const struct member *member, const struct queue_pair *pair)
{
    return pair->is_between_pairs || made_for_point_to_point(naming, member, pair->created_ns);
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

static void add_pair(pair_list *pairs, const struct naming *naming, int32_t index, enum lane_direction direction)
{
    enum queue_pair_role role = direction == LANE_SEND ? QUEUE_PAIR_ROLE_SENDER : QUEUE_PAIR_ROLE_RECEIVER;
    const struct queue_pair *pair = &naming->queue_pairs.items[index];

    if (pair->role == role)
        *(const struct queue_pair **)array_add(pairs) = pair;
}

/* The queue pairs that send the member's data, its own or a neighbour's, or receive for it. */
static void pairs_of(pair_list *pairs, const struct naming *naming, int32_t member, enum lane_direction direction)
{
    const struct member *owner = &naming->members.items[member];

    for (size_t i = 0; i < owner->queue_pairs.count; i++) {
        int32_t index = owner->queue_pairs.items[i];
        if (direction == LANE_RECEIVE || naming->queue_pairs.items[index].origin == member)
            add_pair(pairs, naming, index, direction);
    }
    for (size_t i = 0; i < owner->borrowed.count && direction == LANE_SEND; i++)
        add_pair(pairs, naming, owner->borrowed.items[i], direction);
    array_sort(pairs, by_creation);
}

/* The communicator rank that receives what a queue pair sends, or whose data it receives. */
static int32_t peer_rank_of(const struct naming *naming, const struct queue_pair *pair, enum lane_direction direction)
{
    if (pair->peer < 0)
        return -1;
    const struct queue_pair *peer = &naming->queue_pairs.items[pair->peer];
    int32_t member = direction == LANE_SEND ? peer->member : peer->origin;
    return member < 0 ? -1 : naming->members.items[member].record.rank;
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

static int by_outage(const void *a, const void *b)
{
    uint64_t left = ((const struct outage *)a)->from_ns;
    uint64_t right = ((const struct outage *)b)->from_ns;
    return (left > right) - (left < right);
}

static void add_outage(outage_list *outages, uint64_t from_ns, uint64_t to_ns)
{
    *(struct outage *)array_add(outages) = (struct outage){from_ns, to_ns};
}

static void join_outages(outage_list *outages)
{
    size_t kept = 0;

    array_sort(outages, by_outage);
    for (size_t i = 0; i < outages->count; i++) {
        struct outage *last = &outages->items[kept == 0 ? 0 : kept - 1];
        const struct outage now = outages->items[i];
        if (kept == 0 || now.from_ns > last->to_ns)
            outages->items[kept++] = now;
        else if (now.to_ns > last->to_ns)
            last->to_ns = now.to_ns;
    }
    outages->count = kept;
}

/* When what the strands carried is not known one by one: gaps of who saw them, damaged pieces and bursts. */
static void find_outages(outage_list *outages, const struct rotation *rotation, const struct lane_losses *losses)
{
    for (size_t i = 0; i < rotation->count; i++) {
        const struct strand *strand = &rotation->strands[i];
        for (size_t j = 0; j < strand->pieces.count; j++)
            if (!strand->pieces.items[j].slot.whole)
                add_outage(outages, strand->pieces.items[j].slot.first_ns, strand->pieces.items[j].slot.last_ns);
        for (size_t j = 0; j < losses->gaps->count; j++)
            if (losses->gaps->items[j].stream == strand->stream && strand->pieces.count > 0)
                add_outage(outages, losses->gaps->items[j].from_ns, losses->gaps->items[j].to_ns);
    }
    join_outages(outages);
}

static void add_messages(struct lane *lane, const struct strand *strand)
{
    for (size_t i = 0; i < strand->messages.count; i++) {
        struct slot_message *of = array_add(&lane->messages);
        of->slot = strand->pieces.items[strand->messages.items[i].slot].place;
        of->message = strand->messages.items[i].message;
    }
}

struct builder {
    lane_list *lanes;
    const struct naming *naming;
    const struct member *owner;
    enum lane_direction direction;
    const struct lane_losses *losses;
};

/* The data of a connection's queue pairs, and the credits for it. */
static void build_strands(const struct builder *builder, struct lane *lane, struct rotation *rotation,
                          const struct queue_pair *const *pairs)
{
    const struct naming *naming = builder->naming;
    bool sends = builder->direction == LANE_SEND;

    for (size_t i = 0; i < rotation->count; i++) {
        int32_t out = naming_view(naming, pairs[i]->flows_out.items, pairs[i]->flows_out.count, VANTAGE_TX);
        int32_t in = naming_view(naming, pairs[i]->flows_in.items, pairs[i]->flows_in.count, VANTAGE_RX);
        add_credits(lane, naming, sends ? in : out);
        strand_build(&rotation->strands[i], naming, sends ? out : in);
    }
    array_sort(&lane->credits, by_credit_time);
}

/* Whether anything may have been missed by who saw the strands, ever: then credits cannot be counted. */
static bool missed_any(const struct lane_losses *losses, const struct rotation *rotation)
{
    for (size_t i = 0; i < losses->gaps->count; i++)
        for (size_t j = 0; j < rotation->count; j++)
            if (rotation->strands[j].pieces.count > 0 && losses->gaps->items[i].stream == rotation->strands[j].stream)
                return true;
    return false;
}

static bool each_has_credit(const struct lane *lane)
{
    if (lane->credits.count < lane->slots.count || lane->credits.count > lane->slots.count + CREDITS_AHEAD)
        return false;
    for (size_t i = 0; i < lane->slots.count; i++)
        if (lane->credits.items[i].ns > lane->slots.items[i].first_ns)
            return false;
    return true;
}

bool lane_may_begin(const struct lane *lane, size_t slot)
{
    return !lane->is_credited || slot == 0 || slot >= lane->credits.count || slot > lane->slots.count ||
           lane->credits.items[slot].ns >= lane->slots.items[slot - 1].first_ns;
}

/* Only where each slot is known to have its own credit: what is behind these is left. */
bool lane_holds_credit(const struct lane *lane, uint64_t for_ns)
{
    size_t used = lane->slots.count;

    return lane->is_credited && used != 0 && lane->credits.count > used &&
           lane->watched_to_ns >= lane->slots.items[used - 1].last_ns + for_ns &&
           lane->watched_to_ns >= lane->credits.items[used].ns + for_ns;
}

/* Until the first of those who saw anything of it was heard of no more. */
static uint64_t watched_to(const struct lane_losses *losses, const struct rotation *rotation)
{
    uint64_t to_ns = 0;

    for (size_t i = 0; i < rotation->count && losses->timeline != NULL; i++) {
        size_t stream = rotation->strands[i].stream;
        if (rotation->strands[i].pieces.count == 0)
            continue;
        uint64_t last_ns = timeline_map(losses->timeline, stream, losses->intake->streams.items[stream].last_ns).ns;
        to_ns = to_ns == 0 || last_ns < to_ns ? last_ns : to_ns;
    }
    return to_ns;
}

static void build_lane(const struct builder *builder, const struct queue_pair *const *pairs, size_t serving)
{
    const struct naming *naming = builder->naming;
    struct lane *lane = array_add(builder->lanes);
    outage_list outages = {0};
    struct rotation rotation = {.strands = array_zeroed(serving * sizeof *rotation.strands),
                                .count = serving,
                                .outages = &outages,
                                .seen_from_start = pairs[0]->created_ns != 0 && builder->losses->covered_from_ns != 0 &&
                                                   pairs[0]->created_ns >= builder->losses->covered_from_ns};

    lane->direction = builder->direction;
    lane->queue_pair = (int32_t)(pairs[0] - naming->queue_pairs.items);
    lane->point_to_point = lane_is_point_to_point(naming, builder->owner, pairs[0]);
    lane->peer_rank = peer_rank_of(naming, pairs[0], builder->direction);
    lane->channel = pairs[0]->record.channel;
    build_strands(builder, lane, &rotation, pairs);
    if (serving > 1)
        find_outages(&outages, &rotation, builder->losses);
    unsigned parts = serving > 1 ? rotation_parts(&rotation) : 1;
    rotation_weave(&lane->slots, &rotation, parts == 0 ? 1 : parts);
    lane->is_credited = rotation.seen_from_start && !missed_any(builder->losses, &rotation) && each_has_credit(lane);
    lane->watched_to_ns = watched_to(builder->losses, &rotation);
    for (size_t i = 0; i < serving; i++) {
        add_messages(lane, &rotation.strands[i]);
        strand_fini(&rotation.strands[i]);
    }
    free(rotation.strands);
    array_fini(&outages);
}

void lane_build(lane_list *lanes, const struct naming *naming, int32_t member, enum lane_direction direction,
                const struct lane_losses *losses)
{
    const struct builder builder = {lanes, naming, &naming->members.items[member], direction, losses};
    pair_list pairs = {0};
    size_t serving;

    pairs_of(&pairs, naming, member, direction);
    for (size_t i = 0; i < pairs.count; i += serving) {
        serving = gather(&pairs, i);
        build_lane(&builder, &pairs.items[i], serving);
    }
    array_fini(&pairs);
}

void lane_channels(unsigned *channels, const struct naming *naming)
{
    memset(channels, 0, naming->communicators.count * sizeof *channels);
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[i];
        bool carries = pair->role == QUEUE_PAIR_ROLE_SENDER || pair->role == QUEUE_PAIR_ROLE_RECEIVER;
        if (pair->member < 0 || !carries || pair->record.channel >= CHANNELS_MAX)
            continue;
        const struct member *member = &naming->members.items[pair->member];
        if (member->communicator >= 0 && pair->record.channel >= (int32_t)channels[member->communicator] &&
            !made_for_point_to_point(naming, member, pair->created_ns))
            channels[member->communicator] = (unsigned)pair->record.channel + 1;
    }
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
