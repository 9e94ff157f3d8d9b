/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was heard. Invariant: streams are sorted by (kind, emitter, boot), their batches by sequence, no sequence twice.
 */
#include "correlator/intake/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DETAIL_BYTES      64u        /* what the analysis makes of one */
#define OPERATION_DETAILS 10         /* the job stage makes so many times that of an operation of a rank */
#define FLOWS_MAX         (1u << 20) /* of one stream, whose totals are told apart */

void intake_init(struct intake *intake, size_t memory_bytes)
{
    memset(intake, 0, sizeof *intake);
    intake->memory_bytes = memory_bytes;
}

void intake_fini(struct intake *intake)
{
    for (size_t i = 0; i < intake->streams.count; i++) {
        struct intake_stream *stream = &intake->streams.items[i];
        for (size_t j = 0; j < stream->batches.count; j++)
            free(stream->batches.items[j].bytes);
        array_fini(&stream->batches);
        array_fini(&stream->totals);
    }
    array_fini(&intake->streams);
}

static int stream_order(const struct intake_stream *stream, const struct batch_header *header)
{
    if (stream->kind != header->emitter_kind)
        return stream->kind < header->emitter_kind ? -1 : 1;
    if (stream->emitter_id != header->emitter_id)
        return stream->emitter_id < header->emitter_id ? -1 : 1;
    if (stream->boot_id != header->boot_id)
        return stream->boot_id < header->boot_id ? -1 : 1;
    return 0;
}

static struct intake_stream *stream_of(struct intake *intake, const struct batch_header *header)
{
    size_t at = 0;
    size_t end = intake->streams.count;

    while (at < end) {
        size_t middle = (at + end) / 2;
        if (stream_order(&intake->streams.items[middle], header) < 0)
            at = middle + 1;
        else
            end = middle;
    }
    if (at < intake->streams.count && stream_order(&intake->streams.items[at], header) == 0)
        return &intake->streams.items[at];
    array_add(&intake->streams);
    struct intake_stream *stream = &intake->streams.items[at];
    memmove(stream + 1, stream, (intake->streams.count - 1 - at) * sizeof *stream);
    memset(stream, 0, sizeof *stream);
    stream->kind = header->emitter_kind;
    stream->emitter_id = header->emitter_id;
    stream->boot_id = header->boot_id;
    return stream;
}

/* A new place for `sequence`, or NULL when there is one already. */
static struct intake_batch *place_of(struct intake_stream *stream, uint64_t sequence)
{
    size_t at = stream->batches.count;
    while (at > 0 && stream->batches.items[at - 1].sequence > sequence)
        at--;
    if (at > 0 && stream->batches.items[at - 1].last_sequence >= sequence)
        return NULL;
    array_add(&stream->batches);
    struct intake_batch *place = &stream->batches.items[at];
    memmove(place + 1, place, (stream->batches.count - 1 - at) * sizeof *place);
    return place;
}

enum fate { /* of an old record */
            FATE_KEPT,
            FATE_FOLDED, /* later ones say it again, or what it says is noted */
            FATE_FORGOTTEN,
};

static enum fate fate_of(const struct intake_stream *stream, const struct record_header *record, uint64_t sequence)
{
    switch (record->kind) {
    case RECORD_MESSAGE:
    case RECORD_MESSAGE_RUN:
    case RECORD_WINDOW:
    case RECORD_READING:
    case RECORD_PORT_COUNTER:
    case RECORD_CALL:
    case RECORD_MARKER:
    case RECORD_HOST_DELAY:
    case RECORD_WORK:
    case RECORD_RANK_OPERATION:
    case RECORD_RANK_OPERATION_RUN:
        return FATE_FORGOTTEN;
    case RECORD_HELLO:
    case RECORD_HEARTBEAT:
    case RECORD_CLOCK_PAIR:
    case RECORD_CLOCK_SAMPLE:
    case RECORD_COUNTER:
        return FATE_FOLDED;
    case RECORD_FLOW_TOTAL:
        return record->source < stream->totals.count && stream->totals.items[record->source] > sequence + 1
                   ? FATE_FOLDED
                   : FATE_KEPT;
    default:
        return FATE_KEPT;
    }
}

static void note_total(struct intake_stream *stream, uint32_t flow, uint64_t sequence)
{
    if (flow >= FLOWS_MAX)
        return;
    while (stream->totals.count <= flow)
        array_add(&stream->totals);
    if (stream->totals.items[flow] < sequence + 1)
        stream->totals.items[flow] = sequence + 1;
}

static void note_record(struct intake_stream *stream, const union record *record, uint64_t sequence)
{
    switch (record->header.kind) {
    case RECORD_FLOW_TOTAL:
        note_total(stream, record->header.source, sequence);
        break;
    case RECORD_HELLO:
        stream->hello = record->hello;
        stream->greeted = true;
        break;
    case RECORD_HEARTBEAT:
        if (record->heartbeat.at_ns > stream->last_ns)
            stream->last_ns = record->heartbeat.at_ns;
        stream->ended |= (record->heartbeat.flags & HEARTBEAT_LAST) != 0;
        break;
    default:
        break;
    }
}

/* Returns how many details there are in it. */
static uint32_t note_batch(struct intake_stream *stream, struct batch *batch, bool *damaged)
{
    uint64_t sequence = batch->header.sequence;
    union record record;
    uint32_t details = 0;
    int more;

    stream->batches_count++;
    if (batch->header.sent_ns > stream->last_ns)
        stream->last_ns = batch->header.sent_ns;
    while ((more = batch_next(batch, &record, &stream->unknown_count)) > 0) {
        note_record(stream, &record, sequence);
        if (fate_of(stream, &record.header, sequence) == FATE_FORGOTTEN)
            details += record.header.kind == RECORD_RANK_OPERATION ? OPERATION_DETAILS : 1;
    }
    *damaged = more < 0;
    stream->damaged_count += *damaged;
    return details;
}

/* How many details a record holds: one, or as many as it says of the messages that it has room for. */
static uint64_t details_of(const struct record_header *record)
{
    if (record->kind != RECORD_MESSAGE_RUN && record->kind != RECORD_RANK_OPERATION_RUN)
        return 1;
    return record->source < record->length_bytes ? record->source : record->length_bytes;
}

/* Takes a record out of a batch, or moves it to where those before it end. Returns how many bytes are left of it. */
static size_t thin_record(struct intake_stream *stream, struct intake_batch *held, size_t from, size_t to,
                          const struct record_header *record)
{
    enum fate fate = fate_of(stream, record, held->sequence);

    if (fate == FATE_FORGOTTEN) {
        stream->forgotten_count += details_of(record);
        stream->forgotten_to_ns = held->sent_ns;
    }
    if (fate != FATE_KEPT)
        return 0;
    memmove(held->bytes + to, held->bytes + from, record->length_bytes);
    return record->length_bytes;
}

/* Cuts out of one batch what may go; the rest stays as it was. Returns how many bytes are free now. */
static size_t batch_thin(struct intake_stream *stream, struct intake_batch *held)
{
    struct batch_header *header = (struct batch_header *)held->bytes;
    size_t before = held->length_bytes;
    size_t to = sizeof *header;
    uint32_t kept = 0;

    if (held->bytes == NULL)
        return 0;
    for (size_t from = to; held->length_bytes - from >= sizeof(struct record_header);) {
        struct record_header record;
        memcpy(&record, held->bytes + from, sizeof record);
        if (record.length_bytes < sizeof record || record.length_bytes > held->length_bytes - from)
            break;
        size_t left = thin_record(stream, held, from, to, &record);
        to += left;
        kept += left != 0;
        from += record.length_bytes;
    }
    header->records_count = kept;
    header->records_bytes = (uint32_t)(to - sizeof *header);
    held->length_bytes = kept == 0 ? 0 : to;
    if (kept == 0)
        free(held->bytes);
    held->bytes = kept == 0 ? NULL : realloc(held->bytes, to);
    size_t freed = before - held->length_bytes + held->details_count * DETAIL_BYTES;
    held->details_count = 0;
    return freed;
}

/* The stream whose oldest details are oldest, beside the latest that it sent: clocks differ, ages do not. */
static struct intake_stream *oldest(struct intake *intake)
{
    struct intake_stream *found = NULL;
    uint64_t most = 0;

    for (size_t i = 0; i < intake->streams.count; i++) {
        struct intake_stream *stream = &intake->streams.items[i];
        if (stream->forgotten_batches >= stream->batches.count)
            continue;
        uint64_t sent_ns = stream->batches.items[stream->forgotten_batches].sent_ns;
        uint64_t age_ns = stream->last_ns > sent_ns ? stream->last_ns - sent_ns : 0;
        if (found == NULL || age_ns > most) {
            most = age_ns;
            found = stream;
        }
    }
    return found;
}

/* Batches of which nothing is left become runs. Returns how many bytes are free now. */
static size_t fold_runs(struct intake_stream *stream)
{
    size_t kept = 0;
    size_t count = stream->batches.count;
    size_t forgotten = stream->forgotten_batches;

    for (size_t i = 0; i < count; i++) {
        const struct intake_batch *batch = &stream->batches.items[i];
        struct intake_batch *before = kept == 0 ? NULL : &stream->batches.items[kept - 1];
        if (before == NULL || before->bytes != NULL || batch->bytes != NULL ||
            before->last_sequence + 1 != batch->sequence) {
            stream->batches.items[kept++] = *batch;
            continue;
        }
        before->last_sequence = batch->last_sequence;
        before->last_sent_ns = batch->last_sent_ns;
        stream->forgotten_batches -= i < forgotten;
    }
    stream->batches.count = kept;
    return (count - kept) * sizeof(struct intake_batch);
}

/* An eighth at once, so that the folding is seldom. */
static void make_room(struct intake *intake)
{
    struct intake_stream *stream;
    bool thinned = false;

    if (intake->held_bytes <= intake->memory_bytes)
        return;
    while (intake->held_bytes > intake->memory_bytes - intake->memory_bytes / 8 && (stream = oldest(intake)) != NULL) {
        intake->held_bytes -= batch_thin(stream, &stream->batches.items[stream->forgotten_batches++]);
        thinned = true;
    }
    for (size_t i = 0; thinned && i < intake->streams.count; i++)
        intake->held_bytes -= fold_runs(&intake->streams.items[i]);
}

bool intake_has_forgotten(const struct intake *intake)
{
    for (size_t i = 0; i < intake->streams.count; i++)
        if (intake->streams.items[i].forgotten_count != 0)
            return true;
    return false;
}

int intake_add(struct intake *intake, const void *bytes, size_t length_bytes)
{
    struct batch batch;

    if (batch_read(&batch, bytes, length_bytes) != 0) {
        intake->rejected_count++;
        return -EBADMSG;
    }
    struct intake_stream *stream = stream_of(intake, &batch.header);
    struct intake_batch *place = place_of(stream, batch.header.sequence);
    if (place == NULL) {
        intake->duplicates_count++;
        return 0;
    }
    place->sequence = place->last_sequence = batch.header.sequence;
    place->sent_ns = place->last_sent_ns = batch.header.sent_ns;
    place->bytes = array_zeroed(length_bytes);
    place->length_bytes = length_bytes;
    memcpy(place->bytes, bytes, length_bytes);
    place->details_count = note_batch(stream, &batch, &place->damaged);
    intake->held_bytes += length_bytes + sizeof *place + place->details_count * DETAIL_BYTES;
    make_room(intake);
    return 1;
}

static bool open_next_batch(struct intake_walk *walk)
{
    while (walk->stream < walk->intake->streams.count) {
        const struct intake_stream *stream = &walk->intake->streams.items[walk->stream];
        if (walk->batch < stream->batches.count) {
            const struct intake_batch *held = &stream->batches.items[walk->batch++];
            walk->open = held->bytes != NULL && batch_read(&walk->reader, held->bytes, held->length_bytes) == 0;
            walk->reader.skips_runs = walk->skips_runs && !held->damaged;
            if (walk->open)
                return true;
        } else {
            walk->stream++;
            walk->batch = 0;
        }
    }
    return false;
}

bool intake_next(struct intake_walk *walk, union record *record)
{
    uint64_t unknown = 0;

    for (;;) {
        if (walk->open && batch_next(&walk->reader, record, &unknown) > 0)
            return true;
        walk->open = false;
        if (!open_next_batch(walk))
            return false;
    }
}
