/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings go node by node; within a node each channel begins at another GPU, so that channels use different NICs. Where a
 * node has one rank of the group all channels use its NIC. Queue pairs of the rings are there when the communicator is
 * ready, those of trees and pairs when they are first used, as NCCL does it.
 */
#include "tests/simulation/group.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulation/chance.h"

#define INIT_NS 80000000ULL
#define QPS_NS  5000000ULL

struct ends { /* queue pairs' numbers; 0: NVLink */
    uint32_t sender_qpn, receiver_qpn;
};

#define PAIR_CALLS 0u /* a pair's use: sends and receives; or a tree's edge on channel use - 1 */

struct pair {
    uint32_t peer, use;
    uint32_t sends, receives; /* calls so far */
    struct connection *to;    /* the peer; NULL: not made yet */
    struct ends ends;
    bool told, told_peer; /* its queue pairs */
    struct pair *next;
};

struct member {
    uint32_t world_rank, number, collectives;
    struct pair *pairs;
};

struct channel {
    uint32_t *order;           /* place in the ring: rank */
    uint32_t *place;           /* rank: place */
    struct connection **rings; /* from the place to the next one */
};

struct group {
    struct world *world;
    uint32_t number, count;
    struct member *members;
    uint32_t channels_count;
    struct channel *channels;
};

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);

    if (memory == NULL)
        abort();
    return memory;
}

static uint32_t node_of(const struct group *group, uint32_t rank)
{
    return group->members[rank].world_rank / (uint32_t)world_setting(group->world)->gpus;
}

/* Whose NIC and process send what `from` has for `to`: with PXN those of its neighbour in the receiver's place. */
static uint32_t carrier_of(const struct group *group, uint32_t from, uint32_t to)
{
    uint32_t gpus = (uint32_t)world_setting(group->world)->gpus, own = group->members[from].world_rank;
    int32_t carrier = group_rank(group, own / gpus * gpus + group->members[to].world_rank % gpus);

    return world_setting(group->world)->pxn && carrier >= 0 ? (uint32_t)carrier : from;
}

/* Of the connection from `from` to `to`: the sender's queue pair, or the receiver's. */
static void tell_queue_pair(struct group *group, uint32_t from, uint32_t to, const struct ends *ends, uint32_t channel,
                            bool receiver)
{
    uint32_t carrier = carrier_of(group, from, to);
    const struct member *own = &group->members[receiver ? to : carrier],
                        *far = &group->members[receiver ? carrier : to];
    struct host *host = world_host(group->world, own->world_rank);
    struct host_queue_pair pair = {
        .world_rank = own->world_rank,
        .communicator = own->number,
        .qpn = receiver ? ends->receiver_qpn : ends->sender_qpn,
        .remote_qpn = receiver ? ends->sender_qpn : ends->receiver_qpn,
        .nic = world_nic(group->world, own->world_rank),
        .remote_nic = world_nic(group->world, far->world_rank),
        .channel = channel,
        .far_rank = (int32_t)(receiver ? from : to),
        .origin_rank = receiver || carrier == from ? -1 : (int32_t)from,
        .side = receiver ? QUEUE_PAIR_SIDE_RECEIVER : QUEUE_PAIR_SIDE_SENDER,
    };

    pair.connection = 0x5500000000ULL + (uint64_t)pair.qpn * 256;
    if (host != NULL && pair.qpn != 0)
        host_add_queue_pair(host, &pair, world_now_ns(group->world));
}

static struct connection *connect_ranks(struct group *group, uint32_t from, uint32_t to, struct ends *ends)
{
    struct world *world = group->world;
    uint32_t sender = group->members[carrier_of(group, from, to)].world_rank, receiver = group->members[to].world_rank;
    struct connection_options options = {
        .setting = world_setting(world),
        .agenda = world_agenda(world),
        .fabric = world_fabric(world),
        .is_local = node_of(group, from) == node_of(group, to),
        .name = world_name(world),
        .sender_woken = kernel_woken,
        .receiver_woken = kernel_woken,
    };

    options.sender = (struct connection_end){.nic = world_nic(world, sender), .view = world_view(world, sender)};
    options.receiver = (struct connection_end){.nic = world_nic(world, receiver), .view = world_view(world, receiver)};
    if (!options.is_local) {
        options.sender.qpn = world_qpn(world, options.sender.nic);
        options.receiver.qpn = world_qpn(world, options.receiver.nic);
    }
    *ends = (struct ends){options.sender.qpn, options.receiver.qpn};
    return connection_create(&options);
}

/* Ranks of one node are neighbours; each channel turns them by one. */
static void order_ring(struct group *group, uint32_t channel)
{
    struct channel *ring = &group->channels[channel];

    for (uint32_t first = 0, end; first < group->count; first = end) {
        for (end = first; end < group->count && node_of(group, end) == node_of(group, first);)
            end++;
        for (uint32_t i = 0; i < end - first; i++)
            ring->order[first + i] = first + (i + channel) % (end - first);
    }
    for (uint32_t place = 0; place < group->count; place++)
        ring->place[ring->order[place]] = place;
}

static void make_channel(struct group *group, uint32_t channel)
{
    struct channel *ring = &group->channels[channel];

    ring->order = zeroed(group->count, sizeof *ring->order);
    ring->place = zeroed(group->count, sizeof *ring->place);
    ring->rings = zeroed(group->count, sizeof(struct connection *));
    order_ring(group, channel);
    for (uint32_t place = 0; place < group->count; place++) {
        uint32_t from = ring->order[place], to = ring->order[(place + 1) % group->count];
        struct ends ends;
        ring->rings[place] = connect_ranks(group, from, to, &ends);
        tell_queue_pair(group, from, to, &ends, channel, false);
        tell_queue_pair(group, from, to, &ends, channel, true);
    }
}

uint64_t group_identity(const struct group *group)
{
    return chance_bits(world_setting(group->world)->seed + 4, CHANCE_IDENTITY, group->number);
}

static void tell_member(struct group *group, uint32_t rank)
{
    struct member *member = &group->members[rank];
    struct host *host = world_host(group->world, member->world_rank);
    uint64_t now_ns = world_now_ns(group->world);
    struct host_member told = {
        .world_rank = member->world_rank,
        .rank = rank,
        .ranks_count = group->count,
        .identity = group_identity(group),
        .created_ns = now_ns - INIT_NS,
        .ready_ns = now_ns + QPS_NS,
    };

    if (host != NULL)
        member->number = host_add_communicator(host, &told, now_ns);
}

struct group *group_create(struct world *world, const uint32_t *ranks, uint32_t count, uint32_t number)
{
    struct group *group = zeroed(1, sizeof *group);

    group->world = world;
    group->number = number;
    group->count = count;
    group->members = zeroed(count, sizeof *group->members);
    group->channels_count = (uint32_t)world_setting(world)->channels;
    group->channels = zeroed(group->channels_count, sizeof *group->channels);
    for (uint32_t rank = 0; rank < count; rank++)
        group->members[rank].world_rank = ranks[rank];
    for (uint32_t rank = 0; rank < count; rank++)
        tell_member(group, rank);
    for (uint32_t channel = 0; count > 1 && channel < group->channels_count; channel++)
        make_channel(group, channel);
    return group;
}

static void fini_channel(struct group *group, struct channel *channel)
{
    for (uint32_t place = 0; channel->rings != NULL && place < group->count; place++)
        connection_destroy(channel->rings[place]);
    free(channel->rings);
    free(channel->order);
    free(channel->place);
}

void group_destroy(struct group *group)
{
    for (uint32_t channel = 0; channel < group->channels_count; channel++)
        fini_channel(group, &group->channels[channel]);
    for (uint32_t rank = 0; rank < group->count; rank++) {
        for (struct pair *pair = group->members[rank].pairs, *next; pair != NULL; pair = next) {
            next = pair->next;
            if (pair->to != NULL)
                connection_destroy(pair->to);
            free(pair);
        }
    }
    free(group->channels);
    free(group->members);
    free(group);
}

uint32_t group_count(const struct group *group)
{
    return group->count;
}

int32_t group_rank(const struct group *group, uint32_t world_rank)
{
    for (uint32_t rank = 0; rank < group->count; rank++)
        if (group->members[rank].world_rank == world_rank)
            return (int32_t)rank;
    return -1;
}

uint32_t group_world_rank(const struct group *group, uint32_t rank)
{
    return group->members[rank].world_rank;
}

uint32_t group_number(const struct group *group, uint32_t rank)
{
    return group->members[rank].number;
}

static struct pair *find_pair(struct group *group, uint32_t rank, uint32_t peer, uint32_t use)
{
    struct pair **at = &group->members[rank].pairs;

    while (*at != NULL && ((*at)->peer != peer || (*at)->use != use))
        at = &(*at)->next;
    if (*at == NULL) {
        *at = zeroed(1, sizeof **at);
        (*at)->peer = peer;
        (*at)->use = use;
    }
    return *at;
}

/* Made by the first end that calls; each end's host tells of its own queue pair at its own first call. */
static struct connection *find_connection(struct group *group, uint32_t from, uint32_t to, uint32_t use, bool receiver)
{
    struct pair *pair = find_pair(group, from, to, use);
    bool *told = receiver ? &pair->told_peer : &pair->told;

    if (pair->to == NULL)
        pair->to = connect_ranks(group, from, to, &pair->ends);
    if (!*told)
        tell_queue_pair(group, from, to, &pair->ends, use == PAIR_CALLS ? 0 : use - 1, receiver);
    *told = true;
    return pair->to;
}

static struct slicing_options cutting(const struct group *group, const struct group_call *call)
{
    const struct setting *setting = world_setting(group->world);

    return (struct slicing_options){.buffer_bytes = (uint32_t)setting->buffer_bytes,
                                    .round_bytes = (uint32_t)setting->round_bytes,
                                    .message_bytes = (uint32_t)setting->message_bytes,
                                    .protocol = (enum slicing_protocol)setting->protocol,
                                    .tree = call->tree && call->operation == OPERATION_ALL_REDUCE,
                                    .version = setting_shares(setting) ? setting_version(setting) : 0};
}

/* What a rank does of a collective on a channel: none of it when its count is 0. */
static struct slicing slicing_on(const struct group *group, const struct group_call *call, uint32_t channel)
{
    struct slicing_options options = cutting(group, call);
    struct slicing slicing;

    slicing_init(&slicing, &options, call->operation, call->bytes, group->count, group->channels_count);
    slicing_narrow(&slicing, &options, channel);
    return slicing;
}

static void add_exchanges(struct group *group, uint32_t rank, const struct group_call *call, struct kernel *kernel)
{
    struct slicing_options options = cutting(group, call);

    for (uint32_t i = 0; i < call->exchanges_count; i++) {
        const struct group_exchange *exchange = &call->exchanges[i];
        struct kernel_lane lane = {.lag = 0};
        slicing_init(&lane.slicing, &options, OPERATION_SEND, exchange->bytes, 2, 1);
        if (exchange->receives)
            lane.receives[0] = find_connection(group, exchange->peer, rank, PAIR_CALLS, true);
        else
            lane.sends[0] = find_connection(group, rank, exchange->peer, PAIR_CALLS, false);
        kernel_add(kernel, &lane);
    }
}

static void add_ring(struct group *group, uint32_t rank, const struct group_call *call, struct kernel *kernel)
{
    for (uint32_t channel = 0; channel < group->channels_count; channel++) {
        struct channel *ring = &group->channels[channel];
        uint32_t place = ring->place[rank];
        struct kernel_lane lane = {.place = place, .channel = channel, .slicing = slicing_on(group, call, channel)};
        if (lane.slicing.count == 0)
            continue;
        lane.lag = lane.slicing.slices_a_chunk;
        lane.sends[0] = ring->rings[place];
        lane.receives[0] = ring->rings[(place + group->count - 1) % group->count];
        kernel_add(kernel, &lane);
    }
}

/* From the root's place on along the ring: nobody sends to the root. */
static void add_chain(struct group *group, uint32_t rank, const struct group_call *call, struct kernel *kernel)
{
    for (uint32_t channel = 0; channel < group->channels_count; channel++) {
        struct channel *ring = &group->channels[channel];
        uint32_t place = ring->place[rank], next = (place + 1) % group->count, root = ring->place[GROUP_ROOT];
        struct kernel_lane lane = {.place = place, .channel = channel, .slicing = slicing_on(group, call, channel)};
        if (lane.slicing.count == 0)
            continue;
        lane.sends[0] = next == root ? NULL : ring->rings[place];
        lane.receives[0] = place == root ? NULL : ring->rings[(place + group->count - 1) % group->count];
        kernel_add(kernel, &lane);
    }
}

struct branch { /* a rank's place in a tree; -1: none */
    int64_t parent, children[KERNEL_ENDS_MAX];
    uint32_t children_count;
};

static uint32_t first_of_node(const struct group *group, uint32_t rank)
{
    while (rank > 0 && node_of(group, rank - 1) == node_of(group, rank))
        rank--;
    return rank;
}

/* The first rank of the group's n-th node, counted from the other end in every second tree; -1: there is none. */
static int64_t head_of(const struct group *group, uint64_t number, uint32_t channel)
{
    uint32_t heads = 0;

    for (uint32_t rank = 0; rank < group->count; rank++)
        heads += first_of_node(group, rank) == rank;
    if (number >= heads)
        return -1;
    uint64_t wanted = channel % 2 == 0 ? number : heads - 1 - number;
    for (uint32_t rank = 0;; rank++)
        if (first_of_node(group, rank) == rank && wanted-- == 0)
            return rank;
}

/* Nodes' first ranks are a binary tree; the others hang behind them in a chain. */
static struct branch find_branch(const struct group *group, uint32_t rank, uint32_t channel)
{
    struct branch branch = {.parent = -1};
    uint64_t number = 0;

    if (rank + 1 < group->count && node_of(group, rank + 1) == node_of(group, rank))
        branch.children[branch.children_count++] = rank + 1;
    if (first_of_node(group, rank) != rank) {
        branch.parent = rank - 1;
        return branch;
    }
    while (head_of(group, number, channel) != rank)
        number++;
    if (number > 0)
        branch.parent = head_of(group, (number - 1) / 2, channel);
    for (uint64_t child = 2 * number + 1; child <= 2 * number + 2; child++)
        if (head_of(group, child, channel) >= 0)
            branch.children[branch.children_count++] = head_of(group, child, channel);
    return branch;
}

/* What comes up from the children goes to the parent, what comes down from it to them; the root turns it round. */
static void add_tree(struct group *group, uint32_t rank, const struct group_call *call, struct kernel *kernel)
{
    for (uint32_t channel = 0; channel < group->channels_count; channel++) {
        struct branch branch = find_branch(group, rank, channel);
        struct kernel_lane up = {.channel = channel, .slicing = slicing_on(group, call, channel)}, down = up;
        uint32_t use = channel + 1;
        if (up.slicing.count == 0)
            continue;
        for (uint32_t i = 0; i < branch.children_count; i++) {
            uint32_t child = (uint32_t)branch.children[i];
            up.receives[i] = find_connection(group, child, rank, use, true);
            down.sends[i] = find_connection(group, rank, child, use, false);
        }
        if (branch.parent < 0) {
            memcpy(up.sends, down.sends, sizeof up.sends);
            kernel_add(kernel, &up);
            continue;
        }
        up.sends[0] = find_connection(group, rank, (uint32_t)branch.parent, use, false);
        down.receives[0] = find_connection(group, (uint32_t)branch.parent, rank, use, true);
        kernel_add(kernel, &up);
        kernel_add(kernel, &down);
    }
}

void group_add_lanes(struct group *group, uint32_t rank, const struct group_call *call, struct kernel *kernel)
{
    if (group->count < 2)
        return;
    if (call->operation == OPERATION_SEND)
        add_exchanges(group, rank, call, kernel);
    else if (call->tree && call->operation == OPERATION_ALL_REDUCE)
        add_tree(group, rank, call, kernel);
    else if (call->operation == OPERATION_BROADCAST)
        add_chain(group, rank, call, kernel);
    else
        add_ring(group, rank, call, kernel);
}

uint32_t group_count_collective(struct group *group, uint32_t rank)
{
    return group->members[rank].collectives++;
}

uint32_t group_count_exchange(struct group *group, uint32_t rank, const struct group_exchange *exchange)
{
    struct pair *pair = find_pair(group, rank, exchange->peer, PAIR_CALLS);

    return exchange->receives ? pair->receives++ : pair->sends++;
}

const struct connection_sum *group_ring_sum(const struct group *group, uint32_t rank, uint32_t channel)
{
    return connection_sum(group->channels[channel].rings[group->channels[channel].place[rank]]);
}
