/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adoption. Connections that can be read as the calls of the same several communicators are a group, which is tried as
 * a whole. Invariant: both ends of a connection are given together, to members of one communicator, and had no owner
 * before.
 */
#include "correlator/adoption/adoption.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/adoption/decoding.h"
#include "correlator/adoption/residents.h"
#include "correlator/hash.h"
#include "correlator/node/division.h"
#include "correlator/node/operation.h"

#define CHANNELS_MAX 8  /* of a communicator, between two processes */
#define WHOLE_LEAST  6  /* operations of each member */
#define SETS_MAX     64 /* collectives that differ; a job has a dozen */

#define BEGIN_PART      16   /* whole operations begin within this part of what was carried since the first call */
#define OPTIONS_MAX     4    /* communicators as whose calls a connection can be read */
#define CONNECTIONS_MAX 1024 /* of a job; the work grows with them and with the communicators */
#define NO_GROUP        SIZE_MAX

struct option { /* of a connection: a communicator, and its members at both ends */
    int32_t communicator;
    int32_t from;
    int32_t to;
    unsigned kinds; /* enum decoding_kind */
};

struct connection {
    int32_t sender; /* queue pairs */
    int32_t receiver;
    struct option options[OPTIONS_MAX]; /* by communicator */
    size_t options_count;
    size_t group;  /* NO_GROUP where there is one option; else the first connection with the same ones */
    int32_t owner; /* of a group's first: the communicator that it is given to, -1 = none */
    bool is_given;
};

struct route { /* processes */
    int32_t from;
    int32_t to;
};

struct adoption {
    struct naming *naming;
    const struct lane_losses *losses;
    struct book *books; /* by member, empty until it is needed */
    ARRAY(struct track_set) sets;
    ARRAY(struct connection) connections;
    ARRAY(struct route) routes; /* of wanted connections, sorted: one each */
    struct residents residents;
};

/* ---- what may be whose ---- */

static bool is_ownerless(const struct queue_pair *pair)
{
    return pair->member < 0 && (pair->record.flags & (QUEUE_PAIR_FOREIGN | QUEUE_PAIR_FLUSH)) == 0;
}

/* A connection's sender whose owner, and whose other end's, is looked for. */
static bool is_wanted(const struct naming *naming, const struct queue_pair *pair)
{
    return pair->role == QUEUE_PAIR_ROLE_SENDER && pair->peer >= 0 && is_ownerless(pair) &&
           is_ownerless(&naming->queue_pairs.items[pair->peer]) && pair->process >= 0 &&
           naming->queue_pairs.items[pair->peer].process >= 0;
}

static struct route route_of(const struct naming *naming, const struct queue_pair *pair)
{
    return (struct route){pair->process, naming->queue_pairs.items[pair->peer].process};
}

static int by_route(const void *a, const void *b)
{
    const struct route *left = a;
    const struct route *right = b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    return (left->to > right->to) - (left->to < right->to);
}

static void find_routes(struct adoption *adoption)
{
    const struct naming *naming = adoption->naming;

    for (size_t i = 0; i < naming->queue_pairs.count; i++)
        if (is_wanted(naming, &naming->queue_pairs.items[i]))
            *(struct route *)array_add(&adoption->routes) = route_of(naming, &naming->queue_pairs.items[i]);
    array_sort(&adoption->routes, by_route);
}

static unsigned channels_between(const struct adoption *adoption, const struct queue_pair *pair)
{
    struct route route = route_of(adoption->naming, pair);
    size_t low = 0, high = adoption->routes.count;
    unsigned count = 0;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (by_route(&adoption->routes.items[middle], &route) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (count < CHANNELS_MAX && low + count < adoption->routes.count &&
           by_route(&adoption->routes.items[low + count], &route) == 0)
        count++;
    return count;
}

/* ---- what was asked for ---- */

static int32_t set_of(struct adoption *adoption, const struct work *work, enum shape_division division)
{
    if (!work->ring)
        return -1;
    for (size_t i = 0; i < adoption->sets.count; i++) {
        const struct collective *known = &adoption->sets.items[i].collective;
        if (adoption->sets.items[i].division == division && known->kind == work->collective.kind &&
            known->elements == work->collective.elements && known->element_bytes == work->collective.element_bytes &&
            known->ranks == work->collective.ranks)
            return (int32_t)i;
    }
    if (adoption->sets.count == SETS_MAX)
        return -1;
    track_set_init(array_add(&adoption->sets), &work->collective, &(struct shape_range){CHANNELS_MAX, division});
    return (int32_t)adoption->sets.count - 1;
}

static const struct book *book_of(struct adoption *adoption, int32_t index)
{
    const struct member *member = &adoption->naming->members.items[index];
    struct book *book = &adoption->books[index];
    enum shape_division division = division_of_version(member->record.library_version);

    for (size_t i = book->works.count; i < member->calls.count; i++) {
        struct work *work = array_add(&book->works);
        work_of_call(work, &adoption->naming->calls.items[member->calls.items[i]], member->record.ranks_count);
        *(int32_t *)array_add(&book->sets) = set_of(adoption, work, division);
    }
    return book;
}

/* ---- what was carried ---- */

/* The data of one queue pair, as its port shows it. */
static void carried(slot_list *slots, const struct naming *naming, const struct queue_pair *pair,
                    enum lane_direction direction)
{
    const int32_t *flows = direction == LANE_SEND ? pair->flows_out.items : pair->flows_in.items;
    size_t count = direction == LANE_SEND ? pair->flows_out.count : pair->flows_in.count;
    const outage_list none = {0};
    struct strand strand = {0};

    strand_build(&strand, naming, naming_view(naming, flows, count, direction == LANE_SEND ? VANTAGE_TX : VANTAGE_RX));
    const struct rotation rotation = {.strands = &strand, .count = 1, .outages = &none};
    rotation_weave(slots, &rotation, 1);
    strand_fini(&strand);
}

static unsigned read_as(struct adoption *adoption, const slot_list *slots, enum lane_direction direction,
                        unsigned channels, const struct option *option)
{
    const struct member *members = adoption->naming->members.items;
    int32_t own = direction == LANE_SEND ? option->from : option->to;
    int32_t peer = direction == LANE_SEND ? option->to : option->from;
    const struct book *book = book_of(adoption, own); /* may add sets */
    const struct decoding decoding = {
        .book = book,
        .sets = adoption->sets.items,
        .sets_count = adoption->sets.count,
        .slots = slots,
        .direction = direction,
        .own = members[own].record.rank,
        .peer = members[peer].record.rank,
        .channels = channels,
        .bound_ns = adoption->naming->bound_ns,
    };

    return decoding_try(&decoding);
}

/* ---- what it can be read as ---- */

static bool lived_then(const struct member *member, const struct queue_pair *pair)
{
    return member->process == pair->process && member->record.rank >= 0 &&
           (member->destroyed_ns == 0 || member->destroyed_ns > pair->created_ns);
}

/* Member of the process at the other end, of the same communicator; -1: none. */
static int32_t counterpart(const struct adoption *adoption, const struct member *from, const struct queue_pair *pair)
{
    const struct residents *residents = &adoption->residents;

    for (size_t i = residents->begins[pair->process]; i < residents->begins[pair->process + 1]; i++) {
        const struct member *to = &adoption->naming->members.items[residents->members[i]];
        if (to->communicator == from->communicator && to != from && lived_then(to, pair))
            return residents->members[i];
    }
    return -1;
}

static int by_communicator(const void *a, const void *b)
{
    int32_t left = ((const struct option *)a)->communicator;
    int32_t right = ((const struct option *)b)->communicator;
    return (left > right) - (left < right);
}

/* False when there are none, or too many. */
static bool find_options(struct adoption *adoption, struct connection *connection)
{
    const struct naming *naming = adoption->naming;
    const struct queue_pair *sender = &naming->queue_pairs.items[connection->sender];
    const struct queue_pair *receiver = &naming->queue_pairs.items[connection->receiver];
    const struct residents *residents = &adoption->residents;
    unsigned channels = channels_between(adoption, sender);
    slot_list sent = {0}, received = {0};
    /* which of several ranks of a communicator in one process it would be is not told here */
    bool few = !residents->several[sender->process] && !residents->several[receiver->process];

    carried(&sent, naming, sender, LANE_SEND);
    carried(&received, naming, receiver, LANE_RECEIVE);
    for (size_t i = residents->begins[sender->process]; i < residents->begins[sender->process + 1] && few; i++) {
        const struct member *from = &naming->members.items[residents->members[i]];
        struct option option = {.communicator = from->communicator, .from = residents->members[i], .to = -1};
        if (!lived_then(from, sender) || (option.to = counterpart(adoption, from, receiver)) < 0)
            continue;
        option.kinds = read_as(adoption, &sent, LANE_SEND, channels, &option);
        if (option.kinds != DECODING_NONE)
            option.kinds &= read_as(adoption, &received, LANE_RECEIVE, channels, &option);
        if (option.kinds == DECODING_NONE)
            continue;
        few = connection->options_count < OPTIONS_MAX;
        if (few)
            connection->options[connection->options_count++] = option;
    }
    array_order(connection->options, connection->options_count, sizeof connection->options[0], by_communicator);
    array_fini(&sent);
    array_fini(&received);
    return few && connection->options_count > 0;
}

static bool same_options(const struct connection *a, const struct connection *b)
{
    bool same = a->options_count == b->options_count;

    for (size_t i = 0; i < a->options_count && same; i++)
        same = a->options[i].communicator == b->options[i].communicator;
    return same;
}

static uint64_t options_digest(const struct connection *connection)
{
    uint64_t digest = HASH_START;

    for (size_t i = 0; i < connection->options_count; i++)
        digest = hash_number(digest, (uint64_t)connection->options[i].communicator);
    return digest;
}

struct choice { /* of a connection with several options */
    uint64_t digest;
    size_t connection;
};

static int by_digest(const void *a, const void *b)
{
    const struct choice *left = a;
    const struct choice *right = b;

    return (left->digest > right->digest) - (left->digest < right->digest);
}

/* Those with the same options are a group, named after the first of them. */
static void find_groups(struct adoption *adoption)
{
    ARRAY(struct choice) choices = {0};

    for (size_t i = 0; i < adoption->connections.count; i++)
        if (adoption->connections.items[i].options_count > 1)
            *(struct choice *)array_add(&choices) = (struct choice){options_digest(&adoption->connections.items[i]), i};
    array_sort(&choices, by_digest);
    for (size_t i = 0; i < choices.count; i++) {
        struct connection *connection = &adoption->connections.items[choices.items[i].connection];
        const struct choice *before = i == 0 ? NULL : &choices.items[i - 1];
        const struct connection *alike = before == NULL ? NULL : &adoption->connections.items[before->connection];
        connection->group =
            alike != NULL && same_options(connection, alike) ? alike->group : choices.items[i].connection;
    }
    array_fini(&choices);
}

static void find_connections(struct adoption *adoption)
{
    const struct naming *naming = adoption->naming;

    find_routes(adoption);
    if (adoption->routes.count > CONNECTIONS_MAX)
        return;
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        struct connection connection = {
            .sender = (int32_t)i, .receiver = naming->queue_pairs.items[i].peer, .group = NO_GROUP, .owner = -1};
        if (is_wanted(naming, &naming->queue_pairs.items[i]) && find_options(adoption, &connection))
            *(struct connection *)array_add(&adoption->connections) = connection;
    }
    find_groups(adoption);
}

/* ---- giving ---- */

static void give(struct naming *naming, int32_t index, int32_t member, bool is_between_pairs)
{
    struct queue_pair *pair = &naming->queue_pairs.items[index];

    pair->member = pair->origin = member;
    pair->is_between_pairs = is_between_pairs;
    *(int32_t *)array_add(&naming->members.items[member].queue_pairs) = index;
}

static void take_back(struct naming *naming, int32_t index)
{
    struct queue_pair *pair = &naming->queue_pairs.items[index];
    struct member *member = &naming->members.items[pair->member];
    size_t kept = 0;

    for (size_t i = 0; i < member->queue_pairs.count; i++)
        if (member->queue_pairs.items[i] != index)
            member->queue_pairs.items[kept++] = member->queue_pairs.items[i];
    member->queue_pairs.count = kept;
    pair->member = pair->origin = -1;
    pair->is_between_pairs = false;
}

/* ---- whether it all comes out ---- */

/* From the first whole one on no operation may be of an unknown shape. */
static bool operations_come_out(const operation_cut_list *cuts, enum lane_direction direction)
{
    unsigned whole = 0;

    for (size_t i = 0; i < cuts->count; i++) {
        enum part_state state = cuts->items[i].parts[direction].state;
        whole += state == PART_WHOLE;
        if (state == PART_UNKNOWN && whole > 0)
            return false;
    }
    return whole >= WHOLE_LEAST;
}

struct use { /* of a lane's slots by whole operations */
    size_t first;
    size_t last; /* behind the last one */
    size_t slots;
    size_t most; /* of one operation */
};

static struct use use_of(const operation_cut_list *cuts, enum lane_direction direction, size_t lane)
{
    struct use use = {.first = SIZE_MAX};

    for (size_t i = 0; i < cuts->count; i++) {
        const struct part *part = &cuts->items[i].parts[direction];
        for (size_t j = 0; j < part->shares.count && part->state == PART_WHOLE; j++) {
            const struct share *share = &part->shares.items[j];
            if (share->lane != lane || share->from == share->to)
                continue;
            use.first = share->from < use.first ? share->from : use.first;
            use.last = share->to > use.last ? share->to : use.last;
            use.slots += share->to - share->from;
            use.most = share->to - share->from > use.most ? share->to - share->from : use.most;
        }
    }
    return use;
}

/* Every slot is a whole operation's, but for what was asked for before anybody looked and what is under way. */
static bool is_used_up(const operation_cut_list *cuts, enum lane_direction direction, const struct lane *lane,
                       size_t number)
{
    struct use use = use_of(cuts, direction, number);
    size_t early = 0;

    while (early < lane->slots.count && lane->slots.items[early].first_ns < cuts->items[0].work.enqueued_ns)
        early++;
    return use.slots > 0 && use.slots == use.last - use.first && lane->slots.count - use.last <= use.most &&
           (use.first <= early || (use.first - early) * BEGIN_PART <= lane->slots.count - early);
}

static bool comes_out(const operation_cut_list *cuts, enum lane_direction direction, const lane_list *lanes)
{
    bool all = lanes->count == 0 || operations_come_out(cuts, direction);

    for (size_t i = 0; i < lanes->count && all; i++)
        all = is_used_up(cuts, direction, &lanes->items[i], i);
    return all;
}

static bool cut_comes_out(struct adoption *adoption, int32_t index, enum lane_direction direction)
{
    const struct member *member = &adoption->naming->members.items[index];
    const struct book *book = book_of(adoption, index);
    operation_cut_list cuts = {0};
    lane_list lanes = {0};

    lane_build(&lanes, adoption->naming, index, direction, adoption->losses);
    for (size_t i = 0; i < book->works.count; i++)
        ((struct operation_cut *)array_add(&cuts))->work = book->works.items[i];
    const struct matched of = {.rank = member->record.rank,
                               .division = division_of_version(member->record.library_version)};
    operation_cut(&cuts, &lanes, direction, &of, adoption->naming->bound_ns, adoption->losses);
    bool out = comes_out(&cuts, direction, &lanes);
    for (size_t i = 0; i < cuts.count; i++)
        array_fini(&cuts.items[i].parts[direction].shares);
    array_fini(&cuts);
    lane_fini(&lanes);
    return out;
}

static bool communicator_comes_out(struct adoption *adoption, int32_t communicator)
{
    for (size_t i = 0; i < adoption->naming->members.count; i++)
        if (adoption->naming->members.items[i].communicator == communicator &&
            (!cut_comes_out(adoption, (int32_t)i, LANE_SEND) || !cut_comes_out(adoption, (int32_t)i, LANE_RECEIVE)))
            return false;
    return true;
}

/* ---- deciding ---- */

static const struct option *option_of(const struct connection *connection, int32_t communicator)
{
    for (size_t i = 0; i < connection->options_count; i++)
        if (connection->options[i].communicator == communicator)
            return &connection->options[i];
    return NULL;
}

/* Those that can be read as nobody else's, those of `group`, and those of groups that it owns. */
static bool is_meant(const struct adoption *adoption, const struct connection *connection, int32_t communicator,
                     size_t group)
{
    if (option_of(connection, communicator) == NULL)
        return false;
    return connection->group == NO_GROUP || connection->group == group ||
           adoption->connections.items[connection->group].owner == communicator;
}

static void take_all_back(struct adoption *adoption)
{
    for (size_t i = 0; i < adoption->connections.count; i++) {
        struct connection *connection = &adoption->connections.items[i];
        if (connection->is_given) {
            take_back(adoption->naming, connection->sender);
            take_back(adoption->naming, connection->receiver);
        }
        connection->is_given = false;
    }
}

/* Gives what is meant; what can be read in both ways as `kind`. Returns how many; *both: of these in both ways. */
static size_t give_meant(struct adoption *adoption, int32_t communicator, size_t group, enum decoding_kind kind,
                         size_t *both)
{
    size_t given = 0;

    *both = 0;
    for (size_t i = 0; i < adoption->connections.count; i++) {
        struct connection *connection = &adoption->connections.items[i];
        const struct option *option = option_of(connection, communicator);
        if (!is_meant(adoption, connection, communicator, group))
            continue;
        bool is_both = option->kinds == (DECODING_RING | DECODING_PAIRS);
        bool is_between_pairs = is_both ? kind == DECODING_PAIRS : option->kinds == DECODING_PAIRS;
        give(adoption->naming, connection->sender, option->from, is_between_pairs);
        give(adoption->naming, connection->receiver, option->to, is_between_pairs);
        connection->is_given = true;
        *both += is_both;
        given++;
    }
    return given;
}

/* Leaves given what is meant if all comes out with it. */
static bool adopts(struct adoption *adoption, int32_t communicator, size_t group)
{
    static const enum decoding_kind kinds[] = {DECODING_PAIRS, DECODING_RING};
    size_t both = 1;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && both > 0; i++) {
        size_t given = give_meant(adoption, communicator, group, kinds[i], &both);
        if (given > 0 && communicator_comes_out(adoption, communicator))
            return true;
        take_all_back(adoption);
    }
    return false;
}

/* The only communicator of a group's that comes out with all of it. */
static void find_owner(struct adoption *adoption, size_t group)
{
    struct connection *first = &adoption->connections.items[group];
    int32_t owner = -1;
    unsigned able = 0;

    for (size_t i = 0; i < first->options_count; i++) {
        if (!adopts(adoption, first->options[i].communicator, group))
            continue;
        take_all_back(adoption);
        owner = first->options[i].communicator;
        able++;
    }
    first->owner = able == 1 ? owner : -1;
}

/* What was given stays so: it is nobody else's any more. */
static void keep(struct adoption *adoption)
{
    for (size_t i = 0; i < adoption->connections.count; i++)
        adoption->connections.items[i].is_given = false;
}

static void decide(struct adoption *adoption)
{
    for (size_t i = 0; i < adoption->connections.count; i++)
        if (adoption->connections.items[i].group == i)
            find_owner(adoption, i);
    for (size_t i = 0; i < adoption->naming->communicators.count; i++)
        if (adopts(adoption, (int32_t)i, NO_GROUP))
            keep(adoption);
}

static void note_ownerless(struct naming *naming)
{
    for (size_t i = 0; i < naming->processes.count; i++)
        naming->processes.items[i].has_ownerless = false;
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[i];
        if (pair->member < 0 && pair->process >= 0 &&
            (pair->role == QUEUE_PAIR_ROLE_SENDER || pair->role == QUEUE_PAIR_ROLE_RECEIVER))
            naming->processes.items[pair->process].has_ownerless = true;
    }
}

void adoption_run(struct naming *naming, const struct lane_losses *losses)
{
    struct adoption adoption = {.naming = naming, .losses = losses};

    adoption.books = array_zeroed(naming->members.count * sizeof *adoption.books);
    residents_find(&adoption.residents, naming);
    find_connections(&adoption);
    decide(&adoption);
    note_ownerless(naming);
    for (size_t i = 0; i < naming->members.count; i++) {
        array_fini(&adoption.books[i].works);
        array_fini(&adoption.books[i].sets);
    }
    for (size_t i = 0; i < adoption.sets.count; i++)
        track_set_fini(&adoption.sets.items[i]);
    free(adoption.books);
    array_fini(&adoption.sets);
    array_fini(&adoption.connections);
    array_fini(&adoption.routes);
    residents_fini(&adoption.residents);
}
