/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The joins. QPNs repeat over time and over machines, so a join asks for address and QPN of both ends and for a life at
 * the time; of several candidates the one made last is meant. Times of different emitters may be off by
 * naming->bound_ns each.
 */
#include "correlator/naming/naming_join.h"

#include <stdlib.h>
#include <string.h>

struct end { /* one end of a queue pair, for lookup */
    uint8_t address[ADDRESS_BYTES];
    uint32_t qpn;
    int32_t queue_pair;
};

struct ends {
    ARRAY(struct end) local;
    ARRAY(struct end) remote;
};

static const uint8_t nowhere[ADDRESS_BYTES];

static int end_order(const struct end *end, const uint8_t *address, uint32_t qpn)
{
    int order = memcmp(end->address, address, ADDRESS_BYTES);
    return order != 0 ? order : (end->qpn > qpn) - (end->qpn < qpn);
}

static int by_end(const void *a, const void *b)
{
    const struct end *right = b;
    return end_order(a, right->address, right->qpn);
}

static size_t first_end(const struct end *ends, size_t count, const uint8_t *address, uint32_t qpn)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (end_order(&ends[middle], address, qpn) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void index_ends(struct ends *ends, const struct naming *naming)
{
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        const struct record_queue_pair *record = &naming->queue_pairs.items[i].record;
        struct end *local = array_add(&ends->local);
        memcpy(local->address, record->address, ADDRESS_BYTES);
        local->qpn = record->qpn;
        local->queue_pair = (int32_t)i;
        if (record->remote_qpn == 0)
            continue;
        struct end *remote = array_add(&ends->remote);
        memcpy(remote->address, record->remote_address, ADDRESS_BYTES);
        remote->qpn = record->remote_qpn;
        remote->queue_pair = (int32_t)i;
    }
    array_sort(&ends->local, by_end);
    array_sort(&ends->remote, by_end);
}

static bool alive(const struct queue_pair *pair, uint64_t from_ns, uint64_t to_ns, uint64_t slack_ns)
{
    bool made = pair->created_ns <= to_ns + slack_ns;
    bool gone = pair->destroyed_ns != 0 && pair->destroyed_ns + slack_ns < from_ns;
    return made && !gone;
}

static bool same_address(const uint8_t *known, const uint8_t *wanted)
{
    return memcmp(known, wanted, ADDRESS_BYTES) == 0 || memcmp(known, nowhere, ADDRESS_BYTES) == 0;
}

static int32_t later(const struct naming *naming, int32_t best, int32_t candidate)
{
    if (best < 0 || naming->queue_pairs.items[candidate].created_ns > naming->queue_pairs.items[best].created_ns)
        return candidate;
    return best;
}

static int32_t find_peer(const struct naming *naming, const struct ends *ends, const struct queue_pair *pair)
{
    const struct record_queue_pair *own = &pair->record;
    uint64_t until = pair->destroyed_ns != 0 ? pair->destroyed_ns : UINT64_MAX / 2;
    int32_t best = -1;

    if (own->remote_qpn == 0)
        return -1;
    for (size_t i = first_end(ends->local.items, ends->local.count, own->remote_address, own->remote_qpn);
         i < ends->local.count && end_order(&ends->local.items[i], own->remote_address, own->remote_qpn) == 0; i++) {
        const struct queue_pair *other = &naming->queue_pairs.items[ends->local.items[i].queue_pair];
        if (other->record.remote_qpn == own->qpn && same_address(own->address, other->record.remote_address) &&
            alive(other, pair->created_ns, until, 2 * naming->bound_ns))
            best = later(naming, best, ends->local.items[i].queue_pair);
    }
    return best;
}

static int32_t find_sender(const struct naming *naming, const struct ends *ends, const struct flow *flow)
{
    const struct record_flow *record = &flow->record;
    int32_t best = -1;

    for (size_t i = first_end(ends->remote.items, ends->remote.count, record->destination, record->destination_qpn);
         i < ends->remote.count && end_order(&ends->remote.items[i], record->destination, record->destination_qpn) == 0;
         i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[ends->remote.items[i].queue_pair];
        if (same_address(pair->record.address, record->source) &&
            alive(pair, flow->first_ns, flow->first_ns, 2 * naming->bound_ns))
            best = later(naming, best, ends->remote.items[i].queue_pair);
    }
    return best;
}

static int32_t find_receiver(const struct naming *naming, const struct ends *ends, const struct flow *flow)
{
    const struct record_flow *record = &flow->record;
    int32_t best = -1;

    for (size_t i = first_end(ends->local.items, ends->local.count, record->destination, record->destination_qpn);
         i < ends->local.count && end_order(&ends->local.items[i], record->destination, record->destination_qpn) == 0;
         i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[ends->local.items[i].queue_pair];
        bool other_way = pair->record.remote_qpn != 0 && !same_address(pair->record.remote_address, record->source);
        if (!other_way && alive(pair, flow->first_ns, flow->first_ns, 2 * naming->bound_ns))
            best = later(naming, best, ends->local.items[i].queue_pair);
    }
    return best;
}

/* With whom a late queue pair is connected, only the wire shows: the receiver knows the sender's QPN, and each end's
 * agrees with the other's. */
static int32_t find_late_sender(const struct naming *naming, const struct ends *ends, const struct flow *flow)
{
    const uint32_t qpn = flow->receiver < 0 ? 0 : naming->queue_pairs.items[flow->receiver].record.remote_qpn;
    const uint8_t *source = flow->record.source;
    int32_t best = -1;

    for (size_t i = first_end(ends->local.items, ends->local.count, source, qpn);
         qpn != 0 && i < ends->local.count && end_order(&ends->local.items[i], source, qpn) == 0; i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[ends->local.items[i].queue_pair];
        if ((pair->record.flags & QUEUE_PAIR_LATE) != 0 && pair->record.remote_qpn == flow->record.destination_qpn &&
            alive(pair, flow->first_ns, flow->first_ns, 2 * naming->bound_ns))
            best = later(naming, best, ends->local.items[i].queue_pair);
    }
    return best;
}

static void join_peers(struct naming *naming, const struct flow *flow)
{
    if (flow->sender < 0 || flow->receiver < 0)
        return;
    struct queue_pair *sender = &naming->queue_pairs.items[flow->sender];
    struct queue_pair *receiver = &naming->queue_pairs.items[flow->receiver];
    sender->peer = sender->peer < 0 ? flow->receiver : sender->peer;
    receiver->peer = receiver->peer < 0 ? flow->sender : receiver->peer;
}

struct sighting { /* of a flow, to be compared with others */
    const struct record_flow *record;
    size_t stream;
    int32_t flow;
};

/* All that tells flows apart but the network that they are in; what mirrored them is another view of the same. */
static int sighting_order(const struct sighting *a, const struct sighting *b)
{
    const struct record_flow *left = a->record, *right = b->record;
    int order = memcmp(left->source, right->source, ADDRESS_BYTES);

    if (order == 0)
        order = memcmp(left->destination, right->destination, ADDRESS_BYTES);
    if (order == 0)
        order = (left->destination_qpn > right->destination_qpn) - (left->destination_qpn < right->destination_qpn);
    if (order == 0)
        order = (left->port > right->port) - (left->port < right->port);
    return order != 0 ? order : (a->stream > b->stream) - (a->stream < b->stream);
}

static int by_sighting(const void *a, const void *b)
{
    return sighting_order(a, b);
}

static bool same_network(const struct record_flow *a, const struct record_flow *b)
{
    return a->vlans == b->vlans && a->tunnel_kind == b->tunnel_kind && a->tunnel == b->tunnel;
}

/* Two networks may use the same addresses and QPNs. The host does not say in which of them its queue pair is, so where
 * a port sees both, neither is attributed. */
static void find_contested(struct naming *naming)
{
    ARRAY(struct sighting) seen = {0};

    for (size_t i = 0; i < naming->flows.count; i++) {
        const struct flow *flow = &naming->flows.items[i];
        *(struct sighting *)array_add(&seen) = (struct sighting){&flow->record, flow->stream, (int32_t)i};
    }
    array_sort(&seen, by_sighting);
    for (size_t begin = 0, end; begin < seen.count; begin = end) {
        bool is_contested = false;
        for (end = begin; end < seen.count && sighting_order(&seen.items[begin], &seen.items[end]) == 0; end++)
            is_contested = is_contested || !same_network(seen.items[begin].record, seen.items[end].record);
        for (size_t i = begin; i < end; i++)
            naming->flows.items[seen.items[i].flow].is_contested = is_contested;
    }
    array_fini(&seen);
}

static void join_ends(struct naming *naming)
{
    struct ends ends = {0};

    index_ends(&ends, naming);
    find_contested(naming);
    for (size_t i = 0; i < naming->queue_pairs.count; i++)
        naming->queue_pairs.items[i].peer = find_peer(naming, &ends, &naming->queue_pairs.items[i]);
    for (size_t i = 0; i < naming->flows.count; i++) {
        struct flow *flow = &naming->flows.items[i];
        flow->sender = flow->is_contested ? -1 : find_sender(naming, &ends, flow);
        flow->receiver = flow->sender >= 0 ? naming->queue_pairs.items[flow->sender].peer : -1;
        if (flow->receiver < 0 && !flow->is_contested)
            flow->receiver = find_receiver(naming, &ends, flow);
        if (flow->sender < 0)
            flow->sender = find_late_sender(naming, &ends, flow);
        join_peers(naming, flow);
        if (flow->sender >= 0)
            *(int32_t *)array_add(&naming->queue_pairs.items[flow->sender].flows_out) = (int32_t)i;
        if (flow->receiver >= 0)
            *(int32_t *)array_add(&naming->queue_pairs.items[flow->receiver].flows_in) = (int32_t)i;
    }
    array_fini(&ends.local);
    array_fini(&ends.remote);
}

static bool flows_have(const struct naming *naming, const int32_t *flows, size_t count, uint8_t role)
{
    for (size_t i = 0; i < count; i++) {
        const struct flow *flow = &naming->flows.items[flows[i]];
        for (size_t j = 0; j < flow->messages.count; j++)
            if (naming->messages.items[flow->messages.items[j]].role == role)
                return true;
    }
    return false;
}

static enum queue_pair_role role_of(const struct naming *naming, const struct queue_pair *pair)
{
    if ((pair->record.flags & QUEUE_PAIR_FLUSH) != 0)
        return QUEUE_PAIR_ROLE_FLUSH;
    if ((pair->record.flags & QUEUE_PAIR_FOREIGN) != 0)
        return QUEUE_PAIR_ROLE_FOREIGN;
    if (flows_have(naming, pair->flows_out.items, pair->flows_out.count, ROLE_DATA) ||
        flows_have(naming, pair->flows_in.items, pair->flows_in.count, ROLE_CREDIT))
        return QUEUE_PAIR_ROLE_SENDER;
    if (flows_have(naming, pair->flows_out.items, pair->flows_out.count, ROLE_CREDIT) ||
        flows_have(naming, pair->flows_in.items, pair->flows_in.count, ROLE_DATA))
        return QUEUE_PAIR_ROLE_RECEIVER;
    return naming->flows.count == 0 ? QUEUE_PAIR_ROLE_UNKNOWN : QUEUE_PAIR_ROLE_UNUSED;
}

static void find_roles(struct naming *naming)
{
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        struct queue_pair *pair = &naming->queue_pairs.items[i];
        pair->role = role_of(naming, pair);
        if (pair->member < 0 && pair->process >= 0 &&
            (pair->role == QUEUE_PAIR_ROLE_SENDER || pair->role == QUEUE_PAIR_ROLE_RECEIVER))
            naming->processes.items[pair->process].has_ownerless = true;
    }
}

static void name_unidentified(struct member *member)
{
    static const uint8_t none[IDENTITY_BYTES];
    uint64_t stream = member->stream;

    if (memcmp(member->record.identity, none, sizeof none) != 0)
        return;
    member->record.flags |= COMMUNICATOR_LATE;
    memcpy(member->record.identity, &stream, 4);
    memcpy(member->record.identity + 4, &member->record.communicator, 4);
}

static int32_t communicator_of(struct naming *naming, const struct member *member)
{
    for (size_t i = 0; i < naming->communicators.count; i++)
        if (memcmp(naming->communicators.items[i].identity, member->record.identity, IDENTITY_BYTES) == 0)
            return (int32_t)i;
    return -1;
}

static void add_member(struct communicator *communicator, const struct member *member)
{
    bool first = communicator->ranks_seen == 0;

    if (member->record.ranks_count > communicator->ranks_count)
        communicator->ranks_count = member->record.ranks_count;
    if (communicator->created_ns == 0 || (member->created_ns != 0 && member->created_ns < communicator->created_ns))
        communicator->created_ns = member->created_ns;
    if (first || (communicator->destroyed_ns != 0 && member->destroyed_ns == 0))
        communicator->destroyed_ns = member->destroyed_ns;
    else if (communicator->destroyed_ns != 0 && member->destroyed_ns > communicator->destroyed_ns)
        communicator->destroyed_ns = member->destroyed_ns;
    communicator->ranks_seen++;
}

static int by_creation(const void *a, const void *b)
{
    const struct communicator *left = a;
    const struct communicator *right = b;

    if (left->created_ns != right->created_ns)
        return left->created_ns < right->created_ns ? -1 : 1;
    return memcmp(left->identity, right->identity, IDENTITY_BYTES);
}

static void join_communicators(struct naming *naming)
{
    for (size_t i = 0; i < naming->members.count; i++) {
        struct member *member = &naming->members.items[i];
        name_unidentified(member);
        int32_t at = communicator_of(naming, member);
        if (at < 0) {
            at = (int32_t)naming->communicators.count;
            memcpy(((struct communicator *)array_add(&naming->communicators))->identity, member->record.identity,
                   IDENTITY_BYTES);
        }
        add_member(&naming->communicators.items[at], member);
    }
    array_sort(&naming->communicators, by_creation);
    for (size_t i = 0; i < naming->members.count; i++)
        naming->members.items[i].communicator = communicator_of(naming, &naming->members.items[i]);
}

struct dated { /* an index with the time to sort it by */
    uint64_t ns;
    int32_t index;
};

static int by_date(const void *a, const void *b)
{
    const struct dated *left = a;
    const struct dated *right = b;

    if (left->ns != right->ns)
        return left->ns < right->ns ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static void sort_indices(int32_t *indices, size_t count, const void *items, size_t item_bytes, size_t time_offset)
{
    struct dated *dated = array_zeroed(count * sizeof *dated);

    for (size_t i = 0; i < count; i++) {
        dated[i].index = indices[i];
        memcpy(&dated[i].ns, (const char *)items + (size_t)indices[i] * item_bytes + time_offset, sizeof dated[i].ns);
    }
    array_order(dated, count, sizeof *dated, by_date);
    for (size_t i = 0; i < count; i++)
        indices[i] = dated[i].index;
    free(dated);
}

static void sort_calls(struct naming *naming)
{
    for (size_t i = 0; i < naming->members.count; i++)
        sort_indices(naming->members.items[i].calls.items, naming->members.items[i].calls.count, naming->calls.items,
                     sizeof(struct call), offsetof(struct call, enqueued_ns));
}

static int by_flow_and_start(const void *a, const void *b)
{
    const struct window *left = a;
    const struct window *right = b;

    if (left->flow != right->flow)
        return left->flow < right->flow ? -1 : 1;
    return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

/* Two requests may have asked for the same window: it is kept once. */
static void sort_windows(struct naming *naming)
{
    size_t kept = 0;

    array_sort(&naming->windows, by_flow_and_start);
    for (size_t i = 0; i < naming->windows.count; i++)
        if (kept == 0 || by_flow_and_start(&naming->windows.items[kept - 1], &naming->windows.items[i]) != 0)
            naming->windows.items[kept++] = naming->windows.items[i];
    naming->windows.count = kept;
}

static int by_flow_and_metric(const void *a, const void *b)
{
    const struct flow_event *left = a;
    const struct flow_event *right = b;

    if (left->flow != right->flow)
        return left->flow < right->flow ? -1 : 1;
    if (left->metric != right->metric)
        return left->metric < right->metric ? -1 : 1;
    return (left->to_ns > right->to_ns) - (left->to_ns < right->to_ns);
}

void naming_join(struct naming *naming)
{
    sort_windows(naming);
    array_sort(&naming->flow_events, by_flow_and_metric);
    sort_calls(naming);
    join_communicators(naming);
    naming_number(naming);
    join_ends(naming);
    naming_own(naming);
    naming_check_connections(naming);
    naming_share(naming);
    naming_originate(naming);
    find_roles(naming);
    naming_rank(naming);
}

int32_t naming_member(const struct naming *naming, const uint8_t *identity, int32_t communicator_rank)
{
    for (size_t i = 0; i < naming->members.count; i++) {
        const struct record_communicator *record = &naming->members.items[i].record;
        if (record->rank == communicator_rank && memcmp(record->identity, identity, IDENTITY_BYTES) == 0)
            return (int32_t)i;
    }
    return -1;
}

int32_t naming_peer_member(const struct naming *naming, int32_t queue_pair)
{
    int32_t peer = queue_pair < 0 ? -1 : naming->queue_pairs.items[queue_pair].peer;
    return peer < 0 ? -1 : naming->queue_pairs.items[peer].member;
}

static int view_worth(uint8_t vantage, enum vantage wanted)
{
    return vantage == wanted ? 2 : vantage == VANTAGE_MIDDLE ? 1 : 0;
}

int32_t naming_view(const struct naming *naming, const int32_t *flows, size_t count, enum vantage wanted)
{
    int32_t best = -1;
    int worth = -1;

    for (size_t i = 0; i < count; i++) {
        const struct flow *flow = &naming->flows.items[flows[i]];
        int here = view_worth(flow->record.vantage, wanted);
        bool more = here == worth && flow->messages.count > naming->flows.items[best].messages.count;
        if (here > worth || more) {
            best = flows[i];
            worth = here;
        }
    }
    return best;
}
