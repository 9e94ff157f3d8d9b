/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends of flows, and messages at both. Only a message that begins after a pause is looked at, one so long that no other
 * of its flow can be meant at the other end, whatever the exchanges leave open; its size, place and immediate data must
 * be the same there. Times at which frames were read, whenever they passed, limit nothing. Invariant: a message is
 * taken for another one only when that one left later, which makes a limit wider, never wrong - unless the first
 * messages after a pause were not seen where they left.
 */
#include "correlator/intake/causality.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/intake/sample.h"

#define PAUSE_NS  200000ULL    /* beside what the two clocks' bounds ask for */
#define PAUSE_MAX 40000000ULL  /* what is longer tells no more */
#define WHILE_NS  500000000ULL /* one limit of each direction is kept of each, or of a band's */

struct sighting {   /* a message that began after a pause */
    uint64_t at_ns; /* the machine's clock */
    uint64_t pause_ns;
    uint64_t content;
};

struct end { /* of a flow, at one port */
    size_t stream;
    uint32_t flow;
    uint8_t vantage;
    uint8_t key[2 * ADDRESS_BYTES + sizeof(uint32_t)];
    size_t other; /* index of the end at the other machine; SIZE_MAX: none, or several */
    uint64_t pause_ns;
    uint64_t last_ns; /* of the latest message */
    ARRAY(struct sighting) sightings;
};

struct end_place {
    size_t stream;
    uint32_t flow;
    size_t end;
};

struct finder {
    struct cluster *cluster;
    const struct intake *intake;
    const struct clock_kin *kin;
    ARRAY(struct end) ends;         /* by key, later by stream and flow */
    ARRAY(struct end_place) places; /* by stream and flow */
};

struct tie { /* one limit between two machines */
    size_t from;
    size_t to;
    struct band_limit limit;
};
typedef ARRAY(struct tie) tie_list;

static void add_end(struct finder *finder, size_t stream, const struct record_flow *record)
{
    struct end *end;

    if ((record->vantage != VANTAGE_TX && record->vantage != VANTAGE_RX) || finder->kin[stream].reads_late)
        return;
    end = array_add(&finder->ends);
    end->stream = stream;
    end->flow = record->flow;
    end->vantage = record->vantage;
    end->other = SIZE_MAX;
    memcpy(end->key, record->source, ADDRESS_BYTES);
    memcpy(end->key + ADDRESS_BYTES, record->destination, ADDRESS_BYTES);
    memcpy(end->key + 2 * ADDRESS_BYTES, &record->destination_qpn, sizeof record->destination_qpn);
}

static int by_key(const void *a, const void *b)
{
    const struct end *left = a;
    const struct end *right = b;
    int order = memcmp(left->key, right->key, sizeof left->key);

    if (order != 0)
        return order;
    if (left->stream != right->stream)
        return left->stream < right->stream ? -1 : 1;
    return (left->flow > right->flow) - (left->flow < right->flow);
}

static size_t machine_of(const struct finder *finder, size_t end)
{
    return finder->kin[finder->ends.items[end].stream].machine;
}

static uint64_t worst_of(const struct finder *finder, size_t machine)
{
    return finder->cluster->machines.items[machine].worst_ns;
}

/* Two ends of one flow, at two machines whose clocks are known. */
static void join_ends(struct finder *finder, size_t first, size_t second)
{
    struct end *ends = finder->ends.items;
    size_t a = machine_of(finder, first);
    size_t b = machine_of(finder, second);

    if (ends[first].vantage == ends[second].vantage || a == b || !finder->cluster->machines.items[a].known ||
        !finder->cluster->machines.items[b].known)
        return;
    ends[first].other = second;
    ends[second].other = first;
    ends[first].pause_ns = PAUSE_NS + 2 * (worst_of(finder, a) + worst_of(finder, b));
    ends[second].pause_ns = ends[first].pause_ns;
}

static bool same_key(const struct finder *finder, size_t a, size_t b)
{
    return memcmp(finder->ends.items[a].key, finder->ends.items[b].key, sizeof finder->ends.items[a].key) == 0;
}

static void drop_repeats(struct finder *finder)
{
    size_t kept = 0;

    for (size_t i = 0; i < finder->ends.count; i++)
        if (kept == 0 || by_key(&finder->ends.items[i], &finder->ends.items[kept - 1]) != 0)
            finder->ends.items[kept++] = finder->ends.items[i];
    finder->ends.count = kept;
}

static int by_place(const void *a, const void *b)
{
    const struct end_place *left = a;
    const struct end_place *right = b;

    if (left->stream != right->stream)
        return left->stream < right->stream ? -1 : 1;
    return (left->flow > right->flow) - (left->flow < right->flow);
}

static void find_ends(struct finder *finder)
{
    struct intake_walk walk = {.intake = finder->intake, .skips_runs = true};
    union record record;

    while (intake_next(&walk, &record))
        if (record.header.kind == RECORD_FLOW)
            add_end(finder, walk.stream, &record.flow);
    array_sort(&finder->ends, by_key);
    drop_repeats(finder);
    for (size_t i = 0, after; i < finder->ends.count; i = after) {
        for (after = i + 1; after < finder->ends.count && same_key(finder, i, after); after++)
            ;
        if (after - i == 2)
            join_ends(finder, i, i + 1);
    }
    for (size_t i = 0; i < finder->ends.count; i++)
        if (finder->ends.items[i].other != SIZE_MAX)
            *(struct end_place *)array_add(&finder->places) =
                (struct end_place){finder->ends.items[i].stream, finder->ends.items[i].flow, i};
    array_sort(&finder->places, by_place);
}

static struct end *end_of(struct finder *finder, size_t stream, uint32_t flow)
{
    const struct end_place key = {stream, flow, 0};
    const struct end_place *place =
        finder->places.count == 0 ? NULL
                                  : bsearch(&key, finder->places.items, finder->places.count, sizeof key, by_place);

    return place == NULL ? NULL : &finder->ends.items[place->end];
}

static uint64_t content_of(const struct record_message *message)
{
    uint64_t content = hash_number(HASH_START, message->payload_bytes);

    content = hash_number(content, (uint64_t)message->role << 32 | message->frames);
    content = hash_number(content, (message->flags & MESSAGE_IMMEDIATE) != 0 ? message->immediate : UINT64_MAX);
    return hash_number(content, (message->flags & MESSAGE_PLACED) != 0 ? message->place : UINT64_MAX);
}

static void see(struct finder *finder, size_t stream, const struct record_message *message)
{
    const uint16_t unclear = MESSAGE_INCOMPLETE | MESSAGE_RETRANSMITTED | MESSAGE_MERGED;
    struct end *end = end_of(finder, stream, message->header.source);

    if (end == NULL || message->first_ns > SAMPLE_TIME_MAX)
        return;
    uint64_t pause_ns = message->first_ns > end->last_ns ? message->first_ns - end->last_ns : 0;
    if (pause_ns >= end->pause_ns && (message->flags & unclear) == 0)
        *(struct sighting *)array_add(&end->sightings) =
            (struct sighting){message->first_ns + (uint64_t)finder->kin[stream].delta_ns,
                              pause_ns < PAUSE_MAX ? pause_ns : PAUSE_MAX, content_of(message)};
    if (message->first_ns + message->duration_ns > end->last_ns)
        end->last_ns = message->first_ns + message->duration_ns;
}

static void see_messages(struct finder *finder)
{
    struct intake_walk walk = {.intake = finder->intake};
    union record record;

    while (intake_next(&walk, &record))
        if (record.header.kind == RECORD_MESSAGE)
            see(finder, walk.stream, &record.message);
}

/* A message left `out` at one machine and came in at the other. Edges go from the lower machine to the higher one. */
static void tie(tie_list *ties, size_t out, size_t in, uint64_t left_ns, uint64_t came_ns, uint64_t slack_ns)
{
    struct tie *tie = array_add(ties);
    int64_t slack = (int64_t)slack_ns;

    tie->from = out < in ? out : in;
    tie->to = out < in ? in : out;
    if (out < in)
        tie->limit = (struct band_limit){left_ns, BAND_NO_LOW, (int64_t)(came_ns - left_ns) + slack};
    else
        tie->limit = (struct band_limit){came_ns, (int64_t)(left_ns - came_ns) - slack, BAND_NO_HIGH};
}

/* How long after a sighting another one may be taken for the same message. */
static uint64_t reach_ns(const struct end *end, size_t index)
{
    uint64_t pause_ns = end->sightings.items[index].pause_ns;
    uint64_t next_ns = index + 1 < end->sightings.count ? end->sightings.items[index + 1].pause_ns : pause_ns;

    return (pause_ns < next_ns ? pause_ns : next_ns) / 2;
}

static bool may_be_same(const struct sighting *left, uint64_t left_ns, const struct sighting *came, uint64_t came_ns)
{
    uint64_t apart_ns = left_ns > came_ns ? left_ns - came_ns : came_ns - left_ns;

    return apart_ns < left->pause_ns / 2 && apart_ns < came->pause_ns / 2 && left->content == came->content;
}

/* Each sighting of the sender's with the receiver's, where there is just one within its reach. */
static void match(struct finder *finder, tie_list *ties, const struct end *sender)
{
    const struct end *receiver = &finder->ends.items[sender->other];
    size_t out = finder->kin[sender->stream].machine;
    size_t in = finder->kin[receiver->stream].machine;
    uint64_t slack_ns = finder->kin[sender->stream].bound_ns + finder->kin[receiver->stream].bound_ns;
    size_t next = 0;

    for (size_t i = 0; i < sender->sightings.count; i++) {
        const struct sighting *left = &sender->sightings.items[i];
        uint64_t left_ns = cluster_map_plain(finder->cluster, out, left->at_ns).ns;
        uint64_t came_ns = 0;
        size_t found = 0;
        for (; next < receiver->sightings.count; next++) {
            uint64_t ns = cluster_map_plain(finder->cluster, in, receiver->sightings.items[next].at_ns).ns;
            if (ns > left_ns + reach_ns(sender, i))
                break;
            found += ns + left->pause_ns / 2 >= left_ns;
            came_ns = ns;
        }
        const struct sighting *came = next == 0 ? NULL : &receiver->sightings.items[next - 1];
        if (found == 1 && may_be_same(left, left_ns, came, came_ns))
            tie(ties, out, in, left->at_ns, came->at_ns, slack_ns);
    }
}

static int by_tie(const void *a, const void *b)
{
    const struct tie *left = a;
    const struct tie *right = b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->to != right->to)
        return left->to < right->to ? -1 : 1;
    return (left->limit.at_ns > right->limit.at_ns) - (left->limit.at_ns < right->limit.at_ns);
}

static int by_time(const void *a, const void *b)
{
    uint64_t left = ((const struct band_limit *)a)->at_ns;
    uint64_t right = ((const struct band_limit *)b)->at_ns;
    return (left > right) - (left < right);
}

/* Of the ties of one while the narrowest on either side, as the clocks drift by what the exchanges tell of them. */
static void keep_narrowest(band_limit_list *limits, const struct tie *ties, size_t count, double rate)
{
    const struct band_limit *low = NULL;
    const struct band_limit *high = NULL;
    double base = (double)ties[0].limit.at_ns;
    double lowest = 0, highest = 0;

    for (size_t i = 0; i < count; i++) {
        const struct band_limit *limit = &ties[i].limit;
        double drifted = rate * ((double)limit->at_ns - base);
        if (limit->low_ns != BAND_NO_LOW && (low == NULL || (double)limit->low_ns - drifted > lowest)) {
            low = limit;
            lowest = (double)limit->low_ns - drifted;
        }
        if (limit->high_ns != BAND_NO_HIGH && (high == NULL || (double)limit->high_ns - drifted < highest)) {
            high = limit;
            highest = (double)limit->high_ns - drifted;
        }
    }
    if (low != NULL)
        *(struct band_limit *)array_add(limits) = *low;
    if (high != NULL && (low == NULL || high->at_ns != low->at_ns))
        *(struct band_limit *)array_add(limits) = *high;
}

static bool has_both(const band_limit_list *limits)
{
    bool low = false, high = false;

    for (size_t i = 0; i < limits->count; i++) {
        low |= limits->items[i].low_ns != BAND_NO_LOW;
        high |= limits->items[i].high_ns != BAND_NO_HIGH;
    }
    return low && high;
}

/*
 * Leaves out limits that stand alone between two cuts with no limit to the other side: no clock is set for a moment, a
 * message was taken for another one. Returns whether there were any.
 */
static bool drop_stray(band_limit_list *limits, const struct band *band)
{
    size_t kept = 0, count = limits->count;

    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && !band->knots.items[to].cut; to++)
            ;
        const band_limit_list run = {.items = limits->items + from, .count = to - from};
        if (!has_both(&run))
            continue;
        memmove(limits->items + kept, run.items, run.count * sizeof *run.items);
        kept += run.count;
    }
    limits->count = kept;
    return kept < count;
}

/* The edge of all ties between two machines. */
static void add_edge(struct cluster *cluster, const struct tie *ties, size_t count)
{
    uint64_t while_ns = band_while_ns(ties[count - 1].limit.at_ns - ties[0].limit.at_ns, WHILE_NS);
    double rate =
        band_rate(&cluster->machines.items[ties[0].from].band) - band_rate(&cluster->machines.items[ties[0].to].band);
    band_limit_list limits = {0};

    for (size_t i = 0, after; i < count; i = after) {
        for (after = i + 1; after < count && ties[after].limit.at_ns - ties[i].limit.at_ns < while_ns; after++)
            ;
        keep_narrowest(&limits, ties + i, after - i, rate);
    }
    array_sort(&limits, by_time);
    struct band band = {.cuts_count = 0};
    while (has_both(&limits)) {
        band_build(&band, &limits, 0);
        if (!drop_stray(&limits, &band))
            break;
        band_fini(&band);
    }
    if (band.unruly_count > 0) { /* some of these messages are not what they were taken for, and nothing tells which */
        cluster->contradictions++;
        band_fini(&band);
    } else if (band.knots.count > 0) {
        *(struct cluster_edge *)array_add(&cluster->edges) = (struct cluster_edge){
            .from = ties[0].from,
            .to = ties[0].to,
            .band = band,
            .first_ns = limits.items[0].at_ns,
            .last_ns = limits.items[limits.count - 1].at_ns,
        };
    }
    array_fini(&limits);
}

static void add_edges(struct cluster *cluster, tie_list *ties)
{
    array_sort(ties, by_tie);
    for (size_t i = 0, after; i < ties->count; i = after) {
        for (after = i + 1; after < ties->count && ties->items[after].from == ties->items[i].from &&
                            ties->items[after].to == ties->items[i].to;
             after++)
            ;
        add_edge(cluster, ties->items + i, after - i);
    }
}

void causality_find(struct cluster *cluster, const struct intake *intake, const struct clock_kin *kin)
{
    struct finder finder = {.cluster = cluster, .intake = intake, .kin = kin};
    tie_list ties = {0};

    find_ends(&finder);
    if (finder.places.count > 0)
        see_messages(&finder);
    for (size_t i = 0; i < finder.ends.count; i++)
        if (finder.ends.items[i].other != SIZE_MAX && finder.ends.items[i].vantage == VANTAGE_TX)
            match(&finder, &ties, &finder.ends.items[i]);
    add_edges(cluster, &ties);
    for (size_t i = 0; i < finder.ends.count; i++)
        array_fini(&finder.ends.items[i].sightings);
    array_fini(&finder.ends);
    array_fini(&finder.places);
    array_fini(&ties);
}
