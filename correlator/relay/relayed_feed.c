/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: one record a rank and operation, that which was sent last; `order` has each once, by time; nothing that
 * was dropped is as late as what is at hand.
 */
#include "correlator/relay/relayed_feed.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/relay/relayed.h"

#define SLOTS_LEAST 1024

struct bookmark { /* what was read of a stream */
    uint16_t kind;
    uint64_t emitter_id;
    uint64_t boot_id;
    uint64_t batches_count;
    uint64_t forgotten_count;
    uint64_t last_sequence;
    uint64_t reference_boot;
    bool has_begun;
};

struct relayed_feed {
    ARRAY(struct record_rank_operation) records;
    ARRAY(uint64_t) sent_ns; /* as records */
    ARRAY(uint32_t) order;   /* by time: index in records */
    uint32_t *slots;         /* by key: 1 + index in records, 0 = none */
    size_t slots_count;      /* a power of two */
    ARRAY(struct bookmark) bookmarks;
    uint64_t reference_boot;
    size_t base;
    size_t same;
    uint64_t dropped_ns; /* the latest that was dropped */
    uint64_t changed_ns; /* the earliest that is new or has changed */
    bool is_late;        /* one is as early as what was dropped */
    bool moved;          /* one that was there is at another time */
    uint64_t another_clock_count;
    uint64_t implausible_count;
};

struct relayed_feed *relayed_feed_create(void)
{
    return array_zeroed(sizeof(struct relayed_feed));
}

void relayed_feed_forget(struct relayed_feed *feed)
{
    array_fini(&feed->records);
    array_fini(&feed->sent_ns);
    array_fini(&feed->order);
    array_fini(&feed->bookmarks);
    free(feed->slots);
    memset(feed, 0, sizeof *feed);
}

void relayed_feed_destroy(struct relayed_feed **feed)
{
    if (*feed == NULL)
        return;
    relayed_feed_forget(*feed);
    free(*feed);
    *feed = NULL;
}

/* ---- by key ---- */

static uint64_t key_of(const struct record_rank_operation *record)
{
    uint64_t words[IDENTITY_BYTES / sizeof(uint64_t)], hash = HASH_START;

    memcpy(words, record->communicator, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = hash_number(hash, words[i]);
    hash = hash_number(hash, (uint64_t)(uint32_t)record->rank << 32 | (record->group != 0));
    if (record->group != 0)
        hash = hash_number(hash, (uint64_t)(uint32_t)record->peer << 32 | record->operation);
    return hash_number(hash, record->sequence);
}

/* The slot of a record, or where it is to go. */
static size_t slot_of(const struct relayed_feed *feed, const struct record_rank_operation *record)
{
    size_t slot = key_of(record) & (feed->slots_count - 1);

    while (feed->slots[slot] != 0 && relayed_order(&feed->records.items[feed->slots[slot] - 1], record) != 0)
        slot = (slot + 1) & (feed->slots_count - 1);
    return slot;
}

static void fill_slots(struct relayed_feed *feed, size_t count)
{
    free(feed->slots);
    feed->slots_count = count;
    feed->slots = array_zeroed(count * sizeof *feed->slots);
    for (size_t i = 0; i < feed->records.count; i++)
        feed->slots[slot_of(feed, &feed->records.items[i])] = (uint32_t)i + 1;
}

/* ---- what is new ---- */

static void note_change(struct relayed_feed *feed, uint64_t ns)
{
    feed->changed_ns = ns < feed->changed_ns ? ns : feed->changed_ns;
    feed->is_late |= feed->base > 0 && ns <= feed->dropped_ns;
}

static void replace(struct relayed_feed *feed, size_t index, const struct record_rank_operation *record,
                    uint64_t sent_ns)
{
    struct record_rank_operation *before = &feed->records.items[index];

    if (sent_ns < feed->sent_ns.items[index])
        return;
    feed->sent_ns.items[index] = sent_ns;
    if (memcmp(before, record, sizeof *record) == 0)
        return;
    note_change(feed, before->enqueued_ns);
    note_change(feed, record->enqueued_ns);
    feed->moved |= before->enqueued_ns != record->enqueued_ns;
    *before = *record;
}

static void take_record(struct relayed_feed *feed, const struct record_rank_operation *record, uint64_t sent_ns)
{
    if (2 * feed->records.count >= feed->slots_count)
        fill_slots(feed, feed->slots_count < SLOTS_LEAST ? SLOTS_LEAST : 2 * feed->slots_count);
    size_t slot = slot_of(feed, record);
    if (feed->slots[slot] != 0) {
        replace(feed, feed->slots[slot] - 1, record, sent_ns);
        return;
    }
    note_change(feed, record->enqueued_ns);
    *(struct record_rank_operation *)array_add(&feed->records) = *record;
    *(uint64_t *)array_add(&feed->sent_ns) = sent_ns;
    feed->slots[slot] = (uint32_t)feed->records.count;
}

static struct bookmark *bookmark_of(struct relayed_feed *feed, const struct intake_stream *stream)
{
    for (size_t i = 0; i < feed->bookmarks.count; i++) {
        struct bookmark *bookmark = &feed->bookmarks.items[i];
        if (bookmark->kind == stream->kind && bookmark->emitter_id == stream->emitter_id &&
            bookmark->boot_id == stream->boot_id)
            return bookmark;
    }
    struct bookmark *bookmark = array_add(&feed->bookmarks);
    *bookmark = (struct bookmark){.kind = stream->kind, .emitter_id = stream->emitter_id, .boot_id = stream->boot_id};
    return bookmark;
}

/* The first batch of a stream that was not read yet. */
static size_t first_new(const struct bookmark *bookmark, const struct intake_stream *stream)
{
    size_t batch = stream->batches.count;

    while (bookmark->has_begun && batch > 0 && stream->batches.items[batch - 1].sequence > bookmark->last_sequence)
        batch--;
    return bookmark->has_begun ? batch : 0;
}

/* Nothing was cut out of what was read, nor came between. */
static bool goes_on(const struct bookmark *bookmark, const struct intake_stream *stream)
{
    uint64_t added = stream->batches.count - first_new(bookmark, stream);

    return !bookmark->has_begun || (bookmark->forgotten_count == stream->forgotten_count &&
                                    bookmark->batches_count + added == stream->batches_count);
}

static bool all_go_on(struct relayed_feed *feed, const struct intake *intake)
{
    for (size_t i = 0; i < intake->streams.count; i++)
        if (!goes_on(bookmark_of(feed, &intake->streams.items[i]), &intake->streams.items[i]))
            return false;
    return true;
}

static void take_one(struct relayed_feed *feed, struct bookmark *bookmark, const union record *record, uint64_t sent_ns)
{
    if (record->header.kind == RECORD_REFERENCE)
        bookmark->reference_boot = record->reference.boot_id;
    if (record->header.kind != RECORD_RANK_OPERATION)
        return;
    if (bookmark->reference_boot != feed->reference_boot)
        feed->another_clock_count++;
    else if (!relayed_is_plausible(&record->rank_operation))
        feed->implausible_count++;
    else
        take_record(feed, &record->rank_operation, sent_ns);
}

static void take_stream(struct relayed_feed *feed, const struct intake *intake, size_t index)
{
    const struct intake_stream *stream = &intake->streams.items[index];
    struct bookmark *bookmark = bookmark_of(feed, stream);
    struct intake_walk walk = {.intake = intake, .stream = index, .batch = first_new(bookmark, stream)};
    union record record;

    while (walk.batch < stream->batches.count || walk.open) {
        if (!intake_next(&walk, &record) || walk.stream != index)
            break;
        take_one(feed, bookmark, &record, walk.reader.header.sent_ns);
    }
    bookmark->batches_count = stream->batches_count;
    bookmark->forgotten_count = stream->forgotten_count;
    bookmark->last_sequence =
        stream->batches.count == 0 ? 0 : stream->batches.items[stream->batches.count - 1].last_sequence;
    bookmark->has_begun = stream->batches.count != 0;
}

/* ---- in order ---- */

/* Records from `from` on take their place among those before, which are in order. */
static void order_from(struct relayed_feed *feed, size_t from)
{
    size_t count = feed->records.count, left = from, right = count - from;
    struct relayed_time *added = array_zeroed((right + 1) * sizeof *added);

    for (size_t i = from; i < count; i++)
        added[i - from] = (struct relayed_time){&feed->records.items[i], (uint32_t)i};
    array_order(added, right, sizeof *added, relayed_by_time);
    array_reserve(&feed->order, feed->records.capacity);
    feed->order.count = count;
    for (size_t at = count; right > 0; at--) {
        struct relayed_time before = {left == 0 ? NULL : &feed->records.items[feed->order.items[left - 1]], 0};
        bool is_added = left == 0 || relayed_by_time(&before, &added[right - 1]) < 0;
        feed->order.items[at - 1] = is_added ? added[right - 1].index : feed->order.items[left - 1];
        right -= is_added;
        left -= !is_added;
    }
    free(added);
}

/* So many at hand come before a time. */
static size_t count_before(const struct relayed_feed *feed, uint64_t ns)
{
    size_t low = 0, high = feed->order.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (feed->records.items[feed->order.items[middle]].enqueued_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void begin(struct relayed_feed *feed, const struct timeline *timeline)
{
    relayed_feed_forget(feed);
    feed->reference_boot = timeline->reference_boot;
}

static void take(struct relayed_feed *feed, const struct intake *intake)
{
    size_t before = feed->records.count;

    feed->changed_ns = UINT64_MAX;
    for (size_t i = 0; i < intake->streams.count && !feed->is_late; i++)
        take_stream(feed, intake, i);
    if (!feed->is_late)
        order_from(feed, feed->moved ? 0 : before);
    feed->moved = false;
}

void relayed_feed_take(struct relayed_feed *feed, const struct intake *intake, const struct timeline *timeline)
{
    bool anew = feed->reference_boot != timeline->reference_boot || !all_go_on(feed, intake);

    if (anew)
        begin(feed, timeline);
    take(feed, intake);
    if (feed->is_late) {
        anew = true;
        begin(feed, timeline);
        take(feed, intake);
    }
    feed->same = anew ? 0 : feed->base + count_before(feed, feed->changed_ns);
}

struct segment_records relayed_feed_records(const struct relayed_feed *feed)
{
    return (struct segment_records){.items = feed->records.items,
                                    .order = feed->order.items,
                                    .count = feed->records.count,
                                    .base = feed->base,
                                    .same = feed->same};
}

void relayed_feed_drop(struct relayed_feed *feed, size_t position)
{
    size_t count = position > feed->base ? position - feed->base : 0, kept = feed->order.count - count;

    if (2 * count < feed->order.count || count == 0)
        return;
    struct record_rank_operation *records = array_zeroed((kept + 1) * sizeof *records);
    uint64_t *sent_ns = array_zeroed((kept + 1) * sizeof *sent_ns);
    for (size_t i = 0; i < kept; i++) {
        records[i] = feed->records.items[feed->order.items[count + i]];
        sent_ns[i] = feed->sent_ns.items[feed->order.items[count + i]];
        feed->order.items[i] = (uint32_t)i;
    }
    feed->dropped_ns = feed->records.items[feed->order.items[count - 1]].enqueued_ns;
    array_fini(&feed->records);
    array_fini(&feed->sent_ns);
    feed->records.items = records;
    feed->sent_ns.items = sent_ns;
    feed->records.count = feed->sent_ns.count = feed->order.count = kept;
    feed->records.capacity = feed->sent_ns.capacity = kept + 1;
    feed->base = position;
    fill_slots(feed, feed->slots_count);
}

uint64_t relayed_feed_another_clock(const struct relayed_feed *feed)
{
    return feed->another_clock_count;
}

uint64_t relayed_feed_implausible(const struct relayed_feed *feed)
{
    return feed->implausible_count;
}
