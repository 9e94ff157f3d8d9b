/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node stage's stream. Invariant: `told` holds what the job stage has last heard of each operation that the node's
 * analysis still holds, sorted by relay_order; what is alike is not told again.
 */
#include "correlator/relay/relay.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/analysis.h"
#include "correlator/relay/relayed.h"
#include "wire/clock.h"
#include "wire/emitter.h"
#include "wire/operation_run.h"

#define BATCH_ROOM_BYTES (64u << 10) /* a batch of operations is sent when it is so long */
#define OVER_NS          100000000ULL
#define LONG_NS          1000000000ULL
#define ALIKE_PARTS      8 /* of its bound, by which a time may move without being told again */

struct relay {
    struct relay_options options;
    struct batch_header header; /* of the next batch of its own */
    bool greeted;
    uint64_t started_ns;
    uint64_t reference_boot;
    uint8_t batch[BATCH_BYTES_MAX];
    size_t used_bytes;
    uint32_t operations;
    struct operation_coder coder;
    rank_operation_records told;
};

struct relay *relay_create(const struct relay_options *options)
{
    struct relay *relay = array_zeroed(sizeof *relay);

    relay->options = *options;
    relay->started_ns = clock_now_ns();
    relay->header = (struct batch_header){.magic = BATCH_MAGIC,
                                          .version = BATCH_VERSION,
                                          .emitter_kind = EMITTER_NODE,
                                          .emitter_id = options->emitter_id,
                                          .boot_id = options->boot_id};
    return relay;
}

/* ---- batches of agents ---- */

static bool stays_here(uint16_t kind)
{
    switch (kind) {
    case RECORD_MESSAGE:
    case RECORD_MESSAGE_RUN:
    case RECORD_WINDOW:
    case RECORD_COARSE_WINDOW:
    case RECORD_CALL:
    case RECORD_WORK:
        return true;
    default:
        return false;
    }
}

/* Copies what goes on; false when the batch cannot be walked to its end. */
static bool thin(const uint8_t *batch, size_t length_bytes, uint8_t *into, struct batch_header *header)
{
    size_t to = sizeof *header;
    uint32_t kept = 0;
    size_t from = sizeof *header;
    struct record_header record;

    for (; length_bytes - from >= sizeof record; from += record.length_bytes) {
        memcpy(&record, batch + from, sizeof record);
        if (record.length_bytes < sizeof record || record.length_bytes > length_bytes - from)
            return false;
        if (stays_here(record.kind))
            continue;
        memcpy(into + to, batch + from, record.length_bytes);
        to += record.length_bytes;
        kept++;
    }
    header->records_count = kept;
    header->records_bytes = (uint32_t)(to - sizeof *header);
    memcpy(into, header, sizeof *header);
    return from == length_bytes;
}

void relay_batch(struct relay *relay, const void *bytes, size_t length_bytes)
{
    struct batch batch;

    if (length_bytes > sizeof relay->batch || batch_read(&batch, bytes, length_bytes) != 0)
        return;
    struct batch_header header = batch.header;
    if (thin(bytes, length_bytes, relay->batch, &header))
        relay->options.send(relay->options.context, relay->batch, sizeof header + header.records_bytes);
    else
        relay->options.send(relay->options.context, bytes, length_bytes);
}

/* ---- its own stream ---- */

static void add(struct relay *relay, uint16_t kind, void *record, size_t length_bytes)
{
    struct record_header *header = record;

    header->kind = kind;
    header->length_bytes = (uint16_t)length_bytes;
    memcpy(relay->batch + relay->used_bytes, record, length_bytes);
    relay->used_bytes += length_bytes;
    relay->header.records_count++;
}

static void greet(struct relay *relay)
{
    struct record_hello hello = {.started_ns = relay->started_ns};

    emitter_fill_hello(&hello, "node stage");
    add(relay, RECORD_HELLO, &hello, sizeof hello);
    relay->greeted = true;
}

static void begin_batch(struct relay *relay)
{
    struct record_clock_pair pair = {.monotonic_ns = 0};
    struct record_reference reference = {.boot_id = relay->reference_boot};

    relay->used_bytes = sizeof relay->header;
    relay->header.records_count = 0;
    relay->header.sent_ns = clock_now_ns();
    if (!relay->greeted)
        greet(relay);
    clock_read_pair(&pair, 0);
    add(relay, RECORD_CLOCK_PAIR, &pair, sizeof pair);
    add(relay, RECORD_REFERENCE, &reference, sizeof reference);
    operation_coder_init(&relay->coder);
    relay->operations = 0;
}

static void end_batch(struct relay *relay, size_t run_at)
{
    if (relay->operations > 0) {
        relay->used_bytes =
            run_at + operation_run_end(relay->batch + run_at, relay->used_bytes - run_at, relay->operations);
        relay->header.records_count++;
    } else {
        relay->used_bytes = run_at;
    }
    struct record_heartbeat beat = {.at_ns = relay->header.sent_ns};
    add(relay, RECORD_HEARTBEAT, &beat, sizeof beat);
    relay->header.records_bytes = (uint32_t)(relay->used_bytes - sizeof relay->header);
    memcpy(relay->batch, &relay->header, sizeof relay->header);
    relay->options.send(relay->options.context, relay->batch, relay->used_bytes);
    relay->header.sequence++;
}

/* ---- which operations ---- */

/* Groups are numbered among what is held; that changes, and the time of a group's first call does not. */
static void name_groups(const struct analysis *analysis, rank_operation_records *records)
{
    const struct naming *naming = &analysis->naming;

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        uint64_t number = 0, name = 0;
        for (size_t j = 0; j < member->calls.count; j++) {
            const struct call *call = &naming->calls.items[member->calls.items[j]];
            if (call->rank_operation < 0 || analysis->records.items[call->rank_operation].group == 0)
                continue;
            uint64_t group = analysis->records.items[call->rank_operation].group;
            name = group == number ? name : call->record.entered_ns;
            number = group;
            records->items[call->rank_operation].group = name;
        }
    }
}

static uint64_t latest_ns(const struct analysis *analysis)
{
    uint64_t latest = 0;

    for (size_t i = 0; i < analysis->intake.streams.count; i++) {
        uint64_t ns = timeline_map(&analysis->timeline, i, analysis->intake.streams.items[i].last_ns).ns;
        latest = ns > latest ? ns : latest;
    }
    return latest;
}

static bool is_near(uint64_t a, uint64_t b, uint64_t bound_ns)
{
    return a == b || (a != 0 && b != 0 && (a > b ? a - b : b - a) <= bound_ns / ALIKE_PARTS);
}

/* Clocks that are laid anew move all times a little: that is within their bound. */
static bool is_alike(const struct record_rank_operation *a, const struct record_rank_operation *b)
{
    struct record_rank_operation moved = *a;

#define FIELD(type, name, expected)
#define TIME(name, expected)                                                                                           \
    if (!is_near(a->name, b->name, b->bound_ns))                                                                       \
        return false;                                                                                                  \
    moved.name = b->name;
#include "wire/operation_field.def"
#undef TIME
#undef FIELD
    moved.bound_ns = b->bound_ns;
    moved.frames_bound_ns = b->frames_bound_ns;
    moved.active_ns = is_near(a->active_ns, b->active_ns, b->bound_ns) ? b->active_ns : a->active_ns;
    moved.receive_active_ns =
        is_near(a->receive_active_ns, b->receive_active_ns, b->bound_ns) ? b->receive_active_ns : a->receive_active_ns;
    return memcmp(&moved, b, sizeof moved) == 0;
}

static bool is_settled(const struct record_rank_operation *record, uint64_t latest)
{
    bool is_whole = (record->flags & RANK_OPERATION_INCOMPLETE) == 0;

    return (record->end_ns != 0 && is_whole && latest > record->end_ns + OVER_NS) ||
           latest > record->enqueued_ns + LONG_NS;
}

static const struct record_rank_operation *find_told(const struct relay *relay,
                                                     const struct record_rank_operation *record)
{
    size_t low = 0, high = relay->told.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (relayed_order(&relay->told.items[middle], record) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < relay->told.count && relayed_order(&relay->told.items[low], record) == 0;
    return found ? &relay->told.items[low] : NULL;
}

static void put(struct relay *relay, size_t *run_at, const struct record_rank_operation *record)
{
    if (relay->used_bytes > BATCH_ROOM_BYTES - OPERATION_CODE_BYTES_MAX) {
        end_batch(relay, *run_at);
        begin_batch(relay);
        *run_at = relay->used_bytes;
        relay->used_bytes += sizeof(struct record_rank_operation_run);
    }
    uint8_t *at = relay->batch + relay->used_bytes;
    relay->used_bytes += (size_t)(operation_coder_put(&relay->coder, at, record) - at);
    relay->operations++;
}

void relay_operations(struct relay *relay, const struct analysis *analysis, bool all)
{
    rank_operation_records records = {0}, told = {0};
    uint64_t latest = latest_ns(analysis);

    relay->reference_boot = analysis->timeline.reference_boot;
    array_reserve(&records, analysis->records.count);
    for (size_t i = 0; i < analysis->records.count; i++)
        *(struct record_rank_operation *)array_add(&records) = analysis->records.items[i];
    name_groups(analysis, &records);
    begin_batch(relay);
    size_t run_at = relay->used_bytes;
    relay->used_bytes += sizeof(struct record_rank_operation_run);
    for (size_t i = 0; i < records.count; i++) {
        const struct record_rank_operation *record = &records.items[i];
        const struct record_rank_operation *before = find_told(relay, record);
        bool is_new = before == NULL || !is_alike(record, before);
        bool goes = is_new && (all || is_settled(record, latest));
        if (goes)
            put(relay, &run_at, record);
        if (goes || before != NULL)
            *(struct record_rank_operation *)array_add(&told) = goes ? *record : *before;
    }
    end_batch(relay, run_at);
    array_sort(&told, relayed_order);
    array_fini(&relay->told);
    relay->told = told;
    array_fini(&records);
}

void relay_begin_anew(struct relay *relay)
{
    relay->greeted = false;
    relay->told.count = 0;
}

void relay_destroy(struct relay **relay)
{
    if (*relay == NULL)
        return;
    array_fini(&(*relay)->told);
    free(*relay);
    *relay = NULL;
}
