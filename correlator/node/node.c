/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node stage. Invariant: members are done one after the other, each with its own lanes; a record's times come from
 * the frames of its own slots and credits alone.
 */
#include "correlator/node/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/node/division.h"
#include "correlator/node/operation.h"
#include "correlator/node/passing.h"
#include "correlator/node/replay.h"

#define HOLDING_NS 1000000000ULL /* longer than any pause within an operation that goes on */

struct node {
    rank_operation_records *records;
    struct naming *naming;
    struct lane_losses losses;
    unsigned *channels; /* of each communicator, 0 = unknown */
    int32_t member;
    bool has_neighbour;
    bool passes_inside;
    lane_list lanes[2];
    operation_cut_list cuts;
};

static const struct member *member_of(const struct node *node)
{
    return &node->naming->members.items[node->member];
}

static struct call *call_of(const struct node *node, size_t index)
{
    return &node->naming->calls.items[member_of(node)->calls.items[index]];
}

struct interval {
    uint64_t from_ns;
    uint64_t to_ns;
};
typedef ARRAY(struct interval) interval_list;

static int by_start(const void *a, const void *b)
{
    uint64_t left = ((const struct interval *)a)->from_ns;
    uint64_t right = ((const struct interval *)b)->from_ns;
    return (left > right) - (left < right);
}

/* The time that at least one of the part's messages was under way. */
static uint64_t active_time(const struct part *part, const lane_list *lanes)
{
    interval_list intervals = {0};
    uint64_t active = 0;
    uint64_t until = 0;

    for (size_t i = 0; i < part->shares.count; i++) {
        const struct share *share = &part->shares.items[i];
        for (size_t slot = share->from; slot < share->to; slot++) {
            const struct slot *of = &lanes->items[share->lane].slots.items[slot];
            *(struct interval *)array_add(&intervals) =
                (struct interval){.from_ns = of->first_ns, .to_ns = of->data_last_ns};
        }
    }
    array_sort(&intervals, by_start);
    for (size_t i = 0; i < intervals.count; i++) {
        uint64_t from = intervals.items[i].from_ns > until ? intervals.items[i].from_ns : until;
        if (intervals.items[i].to_ns > from)
            active += intervals.items[i].to_ns - from;
        until = intervals.items[i].to_ns > until ? intervals.items[i].to_ns : until;
    }
    array_fini(&intervals);
    return active;
}

struct totals { /* of one part */
    uint64_t bytes;
    uint64_t first_ns;
    uint64_t last_ns;
    uint32_t retransmitted;
    int32_t peer;      /* -1: several or unknown */
    size_t first_lane; /* of the slot that came first */
    size_t first_slot;
    bool any;
};

static void add_slot(struct totals *totals, const struct slot *slot, size_t lane, size_t index)
{
    if (!totals->any || slot->first_ns < totals->first_ns) {
        totals->first_ns = slot->first_ns;
        totals->first_lane = lane;
        totals->first_slot = index;
    }
    if (slot->last_ns > totals->last_ns)
        totals->last_ns = slot->last_ns;
    totals->bytes += slot->bytes;
    totals->retransmitted += slot->retransmitted;
    totals->any = true;
}

static struct totals total_of(const struct part *part, const lane_list *lanes)
{
    struct totals totals = {.peer = -1};
    bool several = false;

    for (size_t i = 0; i < part->shares.count; i++) {
        const struct share *share = &part->shares.items[i];
        const struct lane *lane = &lanes->items[share->lane];
        for (size_t slot = share->from; slot < share->to; slot++)
            add_slot(&totals, &lane->slots.items[slot], share->lane, slot);
        if (share->to == share->from)
            continue;
        several |= totals.peer >= 0 && totals.peer != lane->peer_rank;
        totals.peer = lane->peer_rank;
    }
    if (several)
        totals.peer = -1;
    return totals;
}

/* The first credit that the rank gave in the operation: its host was ready. */
static uint64_t host_ready(struct node *node, const struct part *part, uint64_t enqueued_ns)
{
    uint64_t not_before = enqueued_ns > node->naming->bound_ns ? enqueued_ns - node->naming->bound_ns : 0;
    uint64_t ready = 0;

    for (size_t i = 0; i < part->shares.count; i++) {
        const struct share *share = &part->shares.items[i];
        struct lane *lane = &node->lanes[LANE_RECEIVE].items[share->lane];
        if (share->from == share->to)
            continue;
        int64_t credit = lane_credit(lane, share->from, not_before);
        if (credit >= 0 && (ready == 0 || lane->credits.items[credit].ns < ready))
            ready = lane->credits.items[credit].ns;
    }
    return ready;
}

/* What comes to the rank first in a chain came from a neighbour, unseen, where nothing came over the wire. */
static bool comes_from_neighbour(const struct node *node, const struct operation_cut *cut, uint64_t passed_ns)
{
    return node->has_neighbour && passed_ns == 0 && cut->work.peer != member_of(node)->record.rank;
}

/* When the rank held the credit for its first data, and in a chain or tree what it passes on; 0 = unknown. */
static uint64_t held_since(struct node *node, const struct operation_cut *cut, const struct totals *sent)
{
    bool is_chain = cut->work.kind == OPERATION_BROADCAST || cut->work.kind == OPERATION_REDUCE;
    struct lane *lane = &node->lanes[LANE_SEND].items[sent->first_lane];
    int64_t credit = lane_credit(lane, sent->first_slot, 0);
    uint64_t held = credit < 0 ? 0 : lane->credits.items[credit].ns;
    uint64_t passed_ns = 0;

    if (cut->parts[LANE_SEND].is_tree && node->has_neighbour)
        return 0;
    if (cut->parts[LANE_SEND].is_tree || is_chain)
        passed_ns = passing_ns(cut, &node->lanes[LANE_RECEIVE], lane->channel, sent->first_ns);
    if (is_chain && comes_from_neighbour(node, cut, passed_ns))
        return 0;
    if (is_chain && passed_ns == 0)
        passed_ns = passing_ns(cut, &node->lanes[LANE_RECEIVE], -1, UINT64_MAX);
    return passed_ns > held ? passed_ns : held;
}

/* True when a send or receive stays in the machine: the peer is there too, and no queue pair leads to it. */
static bool stays_inside(const struct node *node, const struct work *work)
{
    const struct member *member = member_of(node);

    if (work->kind != OPERATION_SEND && work->kind != OPERATION_RECV)
        return false;
    int32_t peer = naming_member(node->naming, member->record.identity, work->peer);
    if (peer < 0 || node->naming->members.items[peer].stream != member->stream)
        return false;
    for (size_t i = 0; i < member->queue_pairs.count; i++) {
        int32_t index = member->queue_pairs.items[i];
        if (node->naming->queue_pairs.items[index].role == QUEUE_PAIR_ROLE_FLUSH)
            continue;
        int32_t far = naming_peer_member(node->naming, index);
        if (far == peer || far < 0)
            return false;
    }
    return true;
}

/* True when a ring collective has nothing at all in a direction in which it should: its queue pairs are not known. */
static bool lacks_direction(const struct node *node, const struct operation_cut *cut)
{
    int32_t rank = member_of(node)->record.rank;

    return cut->work.ring && ((cut->parts[LANE_SEND].state == PART_NONE && work_passes(&cut->work, rank, -1)) ||
                              (cut->parts[LANE_RECEIVE].state == PART_NONE && work_passes(&cut->work, -1, rank)));
}

static bool has_data(const struct naming *naming, const struct queue_pair *pair)
{
    const int32_t *flows[] = {pair->flows_out.items, pair->flows_in.items};
    const size_t counts[] = {pair->flows_out.count, pair->flows_in.count};

    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < counts[side]; i++) {
            const struct flow *flow = &naming->flows.items[flows[side][i]];
            for (size_t j = 0; j < flow->messages.count; j++)
                if (naming->messages.items[flow->messages.items[j]].role == ROLE_DATA)
                    return true;
        }
    return false;
}

/* Whether queue pairs for collectives of the communicator ever carried data, at any of its members. */
static bool carries_collectives(const struct node *node, int32_t communicator)
{
    for (size_t i = 0; i < node->naming->members.count; i++) {
        const struct member *member = &node->naming->members.items[i];
        for (size_t j = 0; member->communicator == communicator && j < member->queue_pairs.count; j++) {
            const struct queue_pair *pair = &node->naming->queue_pairs.items[member->queue_pairs.items[j]];
            if (!lane_is_point_to_point(node->naming, member, pair) && has_data(node->naming, pair))
                return true;
        }
    }
    return false;
}

/*
 * True when the member's collectives pass through neighbours in its machine only: none of its queue pairs for them, at
 * ports that are watched, ever carried anything, while others' did.
 */
static bool passes_inside(const struct node *node)
{
    const struct member *member = member_of(node);

    for (enum lane_direction direction = LANE_SEND; direction <= LANE_RECEIVE; direction++)
        for (size_t i = 0; i < node->lanes[direction].count; i++)
            if (!node->lanes[direction].items[i].point_to_point && node->lanes[direction].items[i].slots.count > 0)
                return false;
    if (!node->has_neighbour || member->communicator < 0 || !carries_collectives(node, member->communicator))
        return false;
    for (size_t i = 0; i < member->queue_pairs.count; i++) {
        const struct queue_pair *pair = &node->naming->queue_pairs.items[member->queue_pairs.items[i]];
        bool watched = false;
        for (size_t j = 0; j < node->naming->ports.count; j++)
            watched |= memcmp(node->naming->ports.items[j].record.address, pair->record.address, ADDRESS_BYTES) == 0;
        if (!watched)
            return false;
    }
    return true;
}

static uint16_t flags_of(const struct node *node, const struct operation_cut *cut)
{
    enum part_state out = cut->parts[LANE_SEND].state;
    enum part_state in = cut->parts[LANE_RECEIVE].state;
    const struct member *member = member_of(node);
    bool ownerless = member->process >= 0 && node->naming->processes.items[member->process].has_ownerless;

    if (!cut->work.ring && cut->work.bytes == 0)
        return RANK_OPERATION_NO_WIRE;
    if (out == PART_BROKEN || in == PART_BROKEN || (ownerless && lacks_direction(node, cut)))
        return RANK_OPERATION_INCOMPLETE;
    if (out == PART_UNKNOWN || in == PART_UNKNOWN)
        return RANK_OPERATION_UNKNOWN_ALGORITHM;
    if (out <= PART_SILENT && in <= PART_SILENT && out + in > PART_NONE)
        return RANK_OPERATION_NO_WIRE;
    if (out == PART_NONE && in == PART_NONE)
        return ownerless || (member->queue_pairs.count > 0 && !stays_inside(node, &cut->work) &&
                             !(cut->work.ring && node->passes_inside))
                   ? RANK_OPERATION_INCOMPLETE
                   : RANK_OPERATION_NO_WIRE;
    return 0;
}

static void fill_expected(struct record_rank_operation *record, const struct operation_cut *cut)
{
    switch (cut->parts[LANE_SEND].state) {
    case PART_WHOLE:
        record->expected_bytes = record->observed_bytes;
        break;
    case PART_NONE:
    case PART_SILENT:
        record->expected_bytes = 0;
        break;
    default:
        record->expected_bytes = cut->work.ring ? shape_volume(&cut->work.collective) : cut->parts[LANE_SEND].bytes;
        break;
    }
    if ((record->flags & RANK_OPERATION_UNKNOWN_ALGORITHM) != 0)
        record->flags |= RANK_OPERATION_EXPECTED_UNKNOWN;
}

static void fill_wire(struct node *node, struct record_rank_operation *record, const struct operation_cut *cut)
{
    struct totals sent = total_of(&cut->parts[LANE_SEND], &node->lanes[LANE_SEND]);
    struct totals received = total_of(&cut->parts[LANE_RECEIVE], &node->lanes[LANE_RECEIVE]);

    record->observed_bytes = sent.bytes;
    record->received_bytes = received.bytes;
    record->first_data_ns = sent.first_ns;
    record->last_data_ns = sent.last_ns;
    record->end_ns = sent.last_ns > received.last_ns ? sent.last_ns : received.last_ns;
    record->received_ns = received.last_ns;
    record->retransmitted_frames = sent.retransmitted;
    record->next = sent.peer;
    record->previous = received.peer;
    record->active_ns = active_time(&cut->parts[LANE_SEND], &node->lanes[LANE_SEND]);
    record->receive_active_ns = active_time(&cut->parts[LANE_RECEIVE], &node->lanes[LANE_RECEIVE]);
    record->host_ready_ns = host_ready(node, &cut->parts[LANE_RECEIVE], cut->work.enqueued_ns);
    if (sent.any) {
        struct leaf_slot leaf;
        if (cut->parts[LANE_SEND].is_tree &&
            passing_leaf(cut, &node->lanes[LANE_SEND], &node->lanes[LANE_RECEIVE], &leaf)) {
            sent.first_ns = leaf.first_ns;
            sent.first_lane = leaf.lane;
            sent.first_slot = leaf.slot;
        }
        record->gpu_ready_ns = sent.first_ns;
        record->held_ns = held_since(node, cut, &sent);
    }
}

/* Nothing of it was sent, and all of the ring collective before was: what lies ready is for this one. */
static bool is_next(const struct node *node, size_t index)
{
    while (index-- > 0) {
        const struct operation_cut *before = &node->cuts.items[index];
        if (before->work.ring && before->parts[LANE_SEND].state > PART_SILENT)
            return before->parts[LANE_SEND].state == PART_WHOLE;
    }
    return false;
}

/* What it has begun, or would begin next, waits on each of its connections, and not for buffers. */
static bool holds_credit(const struct node *node, size_t index)
{
    const struct operation_cut *cut = &node->cuts.items[index];
    const struct part *part = &cut->parts[LANE_SEND];
    size_t sent = 0;

    for (size_t i = 0; i < part->shares.count; i++) {
        const struct share *share = &part->shares.items[i];
        if (share->to > share->from && share->to != node->lanes[LANE_SEND].items[share->lane].slots.count)
            return false;
        sent += share->to - share->from;
    }
    for (size_t i = 0; i < node->lanes[LANE_SEND].count; i++) {
        const struct lane *lane = &node->lanes[LANE_SEND].items[i];
        if (!lane->point_to_point && !lane_holds_credit(lane, HOLDING_NS))
            return false;
    }
    return cut->work.ring && part->state == PART_BROKEN && (sent > 0 || is_next(node, index));
}

static void fill_device(const struct node *node, struct record_rank_operation *record)
{
    for (enum lane_direction direction = LANE_SEND; direction <= LANE_RECEIVE; direction++) {
        if (node->lanes[direction].count == 0)
            continue;
        const struct record_queue_pair *pair =
            &node->naming->queue_pairs.items[node->lanes[direction].items[0].queue_pair].record;
        char text[DEVICE_NAME_BYTES + 8] = {0}; /* what is behind its end is sent too */
        snprintf(text, sizeof text, "%.*s/%u", (int)strnlen(pair->device, sizeof pair->device), pair->device,
                 pair->port);
        memcpy(record->device, text, sizeof record->device);
        return;
    }
}

static void add_record(struct node *node, size_t index, uint64_t group)
{
    const struct member *member = member_of(node);
    const struct operation_cut *cut = &node->cuts.items[index];
    struct call *call = call_of(node, index);

    call->rank_operation = (int32_t)node->records->count;
    struct record_rank_operation *record = array_add(node->records);
    record->header.kind = RECORD_RANK_OPERATION;
    record->header.length_bytes = sizeof *record;
    memcpy(record->communicator, member->record.identity, IDENTITY_BYTES);
    record->sequence = call->record.sequence;
    record->rank = member->record.rank;
    record->ranks_count = member->record.ranks_count;
    record->peer = call->record.peer;
    record->operation = call->record.operation;
    record->datatype = call->record.datatype;
    record->buffer_bytes = call->record.count * datatype_bytes(call->record.datatype);
    record->enqueued_ns = call->enqueued_ns;
    record->bound_ns = node->naming->bound_ns;
    record->frames_bound_ns = node->naming->frames_bound_ns;
    record->group = group;
    record->flags = flags_of(node, cut) | (call->is_inferred ? RANK_OPERATION_ENQUEUE_UNKNOWN : 0);
    bool known = (record->flags & (RANK_OPERATION_NO_WIRE | RANK_OPERATION_UNKNOWN_ALGORITHM)) == 0;
    bool between_pairs = work_is_between_pairs(record->operation);
    bool tree = cut->parts[LANE_SEND].is_tree || cut->parts[LANE_RECEIVE].is_tree;
    record->algorithm = !known          ? ALGORITHM_UNKNOWN
                        : between_pairs ? ALGORITHM_POINT_TO_POINT
                        : tree          ? ALGORITHM_TREE
                                        : ALGORITHM_RING;
    fill_wire(node, record, cut);
    fill_expected(record, cut);
    if (holds_credit(node, index))
        record->flags |= RANK_OPERATION_HOLDS_CREDIT;
    fill_device(node, record);
}

static bool is_point_to_point(uint8_t operation)
{
    return operation == OPERATION_SEND || operation == OPERATION_RECV;
}

static void add_records(struct node *node)
{
    uint64_t group = 0;
    uint32_t last = 0;

    for (size_t i = 0; i < node->cuts.count; i++) {
        const struct record_call *record = &call_of(node, i)->record;
        bool point_to_point = is_point_to_point(record->operation);
        if (point_to_point && (record->group == 0 || record->group != last))
            group++;
        last = point_to_point ? record->group : last;
        add_record(node, i, point_to_point ? group : 0);
    }
}

/* Which record each slot of a lane belongs to, -1 = none. */
static int32_t *slot_owners(const struct node *node, enum lane_direction direction, size_t lane)
{
    size_t count = node->lanes[direction].items[lane].slots.count;
    int32_t *owners = array_zeroed(count * sizeof *owners);

    for (size_t i = 0; i < count; i++)
        owners[i] = -1;
    for (size_t i = 0; i < node->cuts.count; i++) {
        const share_list *shares = &node->cuts.items[i].parts[direction].shares;
        for (size_t j = 0; j < shares->count; j++)
            for (size_t slot = shares->items[j].from; shares->items[j].lane == lane && slot < shares->items[j].to;
                 slot++)
                owners[slot] = call_of(node, i)->rank_operation;
    }
    return owners;
}

/* Sent data, and the credits that were given, belong to the sender's record. */
static void mark_messages(struct node *node)
{
    for (size_t i = 0; i < node->lanes[LANE_SEND].count; i++) {
        const struct lane *lane = &node->lanes[LANE_SEND].items[i];
        int32_t *owners = slot_owners(node, LANE_SEND, i);
        for (size_t j = 0; j < lane->messages.count; j++)
            node->naming->messages.items[lane->messages.items[j].message].rank_operation =
                owners[lane->messages.items[j].slot];
        free(owners);
    }
    for (size_t i = 0; i < node->lanes[LANE_RECEIVE].count; i++) {
        const struct lane *lane = &node->lanes[LANE_RECEIVE].items[i];
        int32_t *owners = slot_owners(node, LANE_RECEIVE, i);
        for (int64_t j = 0; j < (int64_t)lane->credits.count; j++)
            if (j >= lane->shift && j - lane->shift < (int64_t)lane->slots.count)
                node->naming->messages.items[lane->credits.items[j].message].rank_operation = owners[j - lane->shift];
        free(owners);
    }
}

static bool same_group(const struct node *node, size_t one, size_t other)
{
    const struct record_call *record = &call_of(node, one)->record;

    return record->group != 0 && record->group == call_of(node, other)->record.group;
}

static void add_works(struct node *node)
{
    const struct member *member = member_of(node);

    for (size_t i = 0; i < member->calls.count; i++) {
        struct work *work = &((struct operation_cut *)array_add(&node->cuts))->work;
        work_of_call(work, call_of(node, i), member->record.ranks_count);
        work->has_company =
            (i > 0 && same_group(node, i - 1, i)) || (i + 1 < member->calls.count && same_group(node, i, i + 1));
    }
}

static void run_member(struct node *node)
{
    const struct member *member = member_of(node);
    const struct matched of = {.rank = member->record.rank,
                               .channels = member->communicator < 0 ? 0 : node->channels[member->communicator],
                               .has_neighbour = node->has_neighbour,
                               .division = division_of_version(member->record.library_version)};

    for (enum lane_direction direction = LANE_SEND; direction <= LANE_RECEIVE; direction++)
        lane_build(&node->lanes[direction], node->naming, node->member, direction, &node->losses);
    node->passes_inside = passes_inside(node);
    add_works(node);
    for (enum lane_direction direction = LANE_SEND; direction <= LANE_RECEIVE; direction++)
        operation_cut(&node->cuts, &node->lanes[direction], direction, &of, node->naming->bound_ns, &node->losses);
    add_records(node);
    mark_messages(node);
    for (size_t i = 0; i < node->cuts.count; i++)
        for (enum lane_direction direction = LANE_SEND; direction <= LANE_RECEIVE; direction++)
            array_fini(&node->cuts.items[i].parts[direction].shares);
    array_fini(&node->cuts);
    for (enum lane_direction direction = LANE_SEND; direction <= LANE_RECEIVE; direction++)
        lane_fini(&node->lanes[direction]);
}

static uint64_t covered_from(const struct intake *intake, const struct timeline *timeline)
{
    uint64_t earliest = UINT64_MAX;

    for (size_t i = 0; i < intake->streams.count; i++) {
        const struct intake_stream *stream = &intake->streams.items[i];
        if (stream->kind != EMITTER_NIC || !stream->greeted)
            continue;
        uint64_t started = timeline_map(timeline, i, stream->hello.started_ns).ns;
        if (started != 0 && started < earliest)
            earliest = started;
    }
    return earliest == UINT64_MAX ? 0 : earliest;
}

void node_run(rank_operation_records *records, struct naming *naming, const struct intake *intake,
              const struct timeline *timeline, const gap_list *gaps)
{
    struct node node = {
        .records = records,
        .naming = naming,
        .channels = array_zeroed(naming->communicators.count * sizeof *node.channels),
        .losses = {.gaps = gaps,
                   .intake = intake,
                   .timeline = timeline,
                   .covered_from_ns = covered_from(intake, timeline)},
    };

    lane_channels(node.channels, naming);
    replay_find(naming, &node.losses, node.channels);
    for (size_t i = 0; i < naming->members.count; i++) {
        node.member = (int32_t)i;
        node.has_neighbour = naming_has_neighbour(naming, (int32_t)i);
        run_member(&node);
    }
    free(node.channels);
}
