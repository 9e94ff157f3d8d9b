/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was heard. Invariant: streams are sorted by (kind, emitter, boot), their batches by sequence, no sequence twice.
 */
#include "correlator/intake/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    while (at < intake->streams.count && stream_order(&intake->streams.items[at], header) < 0)
        at++;
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
    if (at > 0 && stream->batches.items[at - 1].sequence == sequence)
        return NULL;
    array_add(&stream->batches);
    struct intake_batch *place = &stream->batches.items[at];
    memmove(place + 1, place, (stream->batches.count - 1 - at) * sizeof *place);
    return place;
}

static void note_record(struct intake_stream *stream, const union record *record)
{
    switch (record->header.kind) {
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

static void note_batch(struct intake_stream *stream, struct batch batch)
{
    union record record;
    int more;

    if (batch.header.sent_ns > stream->last_ns)
        stream->last_ns = batch.header.sent_ns;
    while ((more = batch_next(&batch, &record, &stream->unknown_count)) > 0)
        note_record(stream, &record);
    stream->damaged_count += more < 0;
}

static bool is_detail(uint16_t kind)
{
    return kind == RECORD_MESSAGE || kind == RECORD_MESSAGE_RUN || kind == RECORD_WINDOW || kind == RECORD_READING ||
           kind == RECORD_PORT_COUNTER;
}

/* How many details a record holds: one, or as many as it says of the messages that it has room for. */
static uint64_t details_of(const struct record_header *record)
{
    if (record->kind != RECORD_MESSAGE_RUN)
        return 1;
    return record->source < record->length_bytes ? record->source : record->length_bytes;
}

/* Cuts messages, windows and what was counted out of one batch; the rest stays as it was. */
static size_t batch_thin(struct intake_stream *stream, struct intake_batch *held)
{
    struct batch_header *header = (struct batch_header *)held->bytes;
    size_t to = sizeof *header;
    size_t from = to;
    uint32_t kept = 0;

    while (held->length_bytes - from >= sizeof(struct record_header)) {
        struct record_header record;
        memcpy(&record, held->bytes + from, sizeof record);
        if (record.length_bytes < sizeof record || record.length_bytes > held->length_bytes - from)
            break;
        if (is_detail(record.kind)) {
            stream->forgotten_count += details_of(&record);
        } else {
            memmove(held->bytes + to, held->bytes + from, record.length_bytes);
            to += record.length_bytes;
            kept++;
        }
        from += record.length_bytes;
    }
    size_t freed = held->length_bytes - to;
    header->records_count = kept;
    header->records_bytes = (uint32_t)(to - sizeof *header);
    held->length_bytes = to;
    held->bytes = realloc(held->bytes, to);
    stream->forgotten_to_ns = held->sent_ns;
    return freed;
}

static struct intake_stream *fullest(struct intake *intake)
{
    struct intake_stream *found = NULL;
    size_t most = 0;

    for (size_t i = 0; i < intake->streams.count; i++) {
        struct intake_stream *stream = &intake->streams.items[i];
        size_t left = stream->batches.count - stream->forgotten_batches;
        if (stream->kind == EMITTER_NIC && left > most) {
            most = left;
            found = stream;
        }
    }
    return found;
}

static void make_room(struct intake *intake)
{
    struct intake_stream *stream;

    while (intake->held_bytes > intake->memory_bytes && (stream = fullest(intake)) != NULL)
        intake->held_bytes -= batch_thin(stream, &stream->batches.items[stream->forgotten_batches++]);
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
    place->sequence = batch.header.sequence;
    place->sent_ns = batch.header.sent_ns;
    place->bytes = array_zeroed(length_bytes);
    place->length_bytes = length_bytes;
    memcpy(place->bytes, bytes, length_bytes);
    intake->held_bytes += length_bytes;
    note_batch(stream, batch);
    make_room(intake);
    return 1;
}

static bool open_next_batch(struct intake_walk *walk)
{
    while (walk->stream < walk->intake->streams.count) {
        const struct intake_stream *stream = &walk->intake->streams.items[walk->stream];
        if (walk->batch < stream->batches.count) {
            const struct intake_batch *held = &stream->batches.items[walk->batch++];
            walk->open = batch_read(&walk->reader, held->bytes, held->length_bytes) == 0;
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
