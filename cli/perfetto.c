/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TrackEvent packets, by the public field numbers of perfetto's protos/perfetto/trace (trace_packet.proto,
 * clock_snapshot.proto, track_event/). Invariant: `bytes` holds the packet in the making; the length of a message that
 * is still open is four bytes, a varint padded with continuation bits, filled in when it ends.
 */
#include "cli/perfetto.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "wire/log.h"

enum wire_type {
    TYPE_VARINT = 0,
    TYPE_FIXED64 = 1,
    TYPE_BYTES = 2,
};

enum {
    TRACE_PACKET = 1,
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_CLOCK = 58,
    PACKET_TRACK_DESCRIPTOR = 60,
};
enum {
    SNAPSHOT_CLOCKS = 1,
    SNAPSHOT_PRIMARY = 2,
    CLOCK_IDENTITY = 1,
    CLOCK_TIMESTAMP = 2,
};
enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_CHILD_ORDERING = 11,
    TRACK_SIBLING_RANK = 12,
    COUNTER_UNIT_NAME = 6,
    COUNTER_SHARED_SCALE = 7,
    CHILD_ORDERING_EXPLICIT = 3,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
};
enum {
    EVENT_NOTE = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    EVENT_ARROW_BEGINS = 47,
    EVENT_ARROW_ENDS = 48,
};
enum event_type {
    EVENT_SLICE_BEGIN = 1,
    EVENT_SLICE_END = 2,
    EVENT_INSTANT = 3,
    EVENT_COUNTER = 4,
};
enum {
    NOTE_INTEGER = 4,
    NOTE_REAL = 5,
    NOTE_TEXT = 6,
    NOTE_NAME = 10,
};

#define SEQUENCE         1
#define SEQUENCE_CLEARED 1 /* flag: nothing before this packet matters */
#define LENGTH_BYTES     4
#define BYTES_AT_FIRST   4096
#define VARINT_BYTES_MAX 10

struct perfetto {
    FILE *file;
    char *path;
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    bool began; /* a packet was written */
    int error;  /* the first one */
};

static void put_bytes(struct perfetto *perfetto, const void *bytes, size_t length)
{
    if (perfetto->length + length > perfetto->capacity) {
        size_t capacity = (perfetto->length + length) * 2 + BYTES_AT_FIRST;
        uint8_t *grown = realloc(perfetto->bytes, capacity);
        if (grown == NULL) {
            perfetto->error = -ENOMEM;
            return;
        }
        perfetto->bytes = grown;
        perfetto->capacity = capacity;
    }
    memcpy(perfetto->bytes + perfetto->length, bytes, length);
    perfetto->length += length;
}

static void put_varint(struct perfetto *perfetto, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    size_t length = 0;
    do {
        bytes[length++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    put_bytes(perfetto, bytes, length);
}

static void put_tag(struct perfetto *perfetto, unsigned field, enum wire_type type)
{
    put_varint(perfetto, (uint64_t)field << 3 | type);
}

static void put_number(struct perfetto *perfetto, unsigned field, uint64_t value)
{
    put_tag(perfetto, field, TYPE_VARINT);
    put_varint(perfetto, value);
}

static void put_fixed(struct perfetto *perfetto, unsigned field, uint64_t bits)
{
    uint8_t bytes[sizeof(bits)];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(bits >> (8 * i));
    }
    put_tag(perfetto, field, TYPE_FIXED64);
    put_bytes(perfetto, bytes, sizeof(bytes));
}

static void put_real(struct perfetto *perfetto, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_fixed(perfetto, field, bits);
}

static void put_text(struct perfetto *perfetto, unsigned field, const char *text)
{
    put_tag(perfetto, field, TYPE_BYTES);
    put_varint(perfetto, strlen(text));
    put_bytes(perfetto, text, strlen(text));
}

/* Returns where its length stands, for message_end. */
static size_t message_begin(struct perfetto *perfetto, unsigned field)
{
    static const uint8_t length[LENGTH_BYTES];
    put_tag(perfetto, field, TYPE_BYTES);
    put_bytes(perfetto, length, LENGTH_BYTES);
    return perfetto->length - LENGTH_BYTES;
}

static void message_end(struct perfetto *perfetto, size_t place)
{
    if (perfetto->error != 0) {
        return;
    }
    size_t length = perfetto->length - place - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        perfetto->bytes[place + i] = (uint8_t)((length >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    }
}

static size_t packet_begin(struct perfetto *perfetto)
{
    perfetto->length = 0;
    size_t place = message_begin(perfetto, TRACE_PACKET);
    put_number(perfetto, PACKET_SEQUENCE, SEQUENCE);
    if (!perfetto->began) {
        put_number(perfetto, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
        perfetto->began = true;
    }
    return place;
}

static void packet_end(struct perfetto *perfetto, size_t place)
{
    message_end(perfetto, place);
    if (perfetto->error == 0 && fwrite(perfetto->bytes, 1, perfetto->length, perfetto->file) != perfetto->length) {
        perfetto->error = -errno;
    }
}

int perfetto_open(struct perfetto **perfetto, const char *path)
{
    struct perfetto *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->path = strdup(path)) == NULL) {
        free(made);
        return log_error_return(-ENOMEM, "%s: out of memory", path);
    }
    made->file = output_is_stdout(path) ? stdout : fopen(path, "wbe");
    if (made->file == NULL) {
        int error = errno;
        free(made->path);
        free(made);
        return output_fail(path, error);
    }
    *perfetto = made;
    return 0;
}

/* Clocks above 128 are anybody's: numbers are made of names (FNV-1a) so that they do not meet. */
uint32_t perfetto_clock_number(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    }
    return hash | 0x80000000u;
}

static void put_clock(struct perfetto *perfetto, unsigned clock, int64_t time_ns)
{
    size_t place = message_begin(perfetto, SNAPSHOT_CLOCKS);
    put_number(perfetto, CLOCK_IDENTITY, clock);
    put_number(perfetto, CLOCK_TIMESTAMP, (uint64_t)time_ns);
    message_end(perfetto, place);
}

void perfetto_clocks(struct perfetto *perfetto, const struct perfetto_reading *readings, size_t count)
{
    size_t packet = packet_begin(perfetto);
    size_t snapshot = message_begin(perfetto, PACKET_CLOCK_SNAPSHOT);
    for (size_t i = 0; i < count; i++) {
        put_clock(perfetto, readings[i].clock, readings[i].time_ns);
    }
    put_number(perfetto, SNAPSHOT_PRIMARY, PERFETTO_MONOTONIC);
    message_end(perfetto, snapshot);
    packet_end(perfetto, packet);
}

void perfetto_track(struct perfetto *perfetto, const struct perfetto_track *track)
{
    size_t packet = packet_begin(perfetto);
    size_t descriptor = message_begin(perfetto, PACKET_TRACK_DESCRIPTOR);
    put_number(perfetto, TRACK_UUID, track->identity);
    if (track->parent != 0) {
        put_number(perfetto, TRACK_PARENT, track->parent);
    }
    put_text(perfetto, TRACK_NAME, track->name);
    put_number(perfetto, TRACK_CHILD_ORDERING, CHILD_ORDERING_EXPLICIT);
    put_number(perfetto, TRACK_SIBLING_RANK, (uint64_t)track->order);
    if (track->process != 0) {
        size_t process = message_begin(perfetto, TRACK_PROCESS);
        put_number(perfetto, PROCESS_PID, (uint64_t)track->process);
        put_text(perfetto, PROCESS_NAME, track->name);
        message_end(perfetto, process);
    }
    if (track->unit != NULL) {
        size_t counter = message_begin(perfetto, TRACK_COUNTER);
        put_text(perfetto, COUNTER_UNIT_NAME, track->unit);
        put_text(perfetto, COUNTER_SHARED_SCALE, track->unit);
        message_end(perfetto, counter);
    }
    message_end(perfetto, descriptor);
    packet_end(perfetto, packet);
}

static void put_note(struct perfetto *perfetto, const struct perfetto_note *note)
{
    if (note->value.kind == STORE_NULL) {
        return;
    }
    size_t place = message_begin(perfetto, EVENT_NOTE);
    put_text(perfetto, NOTE_NAME, note->name);
    if (note->value.kind == STORE_TEXT) {
        put_text(perfetto, NOTE_TEXT, note->value.text);
    } else if (note->value.kind == STORE_REAL) {
        put_real(perfetto, NOTE_REAL, note->value.real);
    } else {
        put_number(perfetto, NOTE_INTEGER, (uint64_t)note->value.integer);
    }
    message_end(perfetto, place);
}

struct event {
    enum event_type type;
    uint64_t track;
    int64_t time_ns;
    const char *name;
    const struct perfetto_note *notes;
    size_t notes_count;
    int64_t value;
    uint64_t arrow; /* 0 = none */
    enum perfetto_end end;
};

static void put_event(struct perfetto *perfetto, const struct event *event)
{
    size_t packet = packet_begin(perfetto);
    put_number(perfetto, PACKET_TIMESTAMP, (uint64_t)event->time_ns);
    put_number(perfetto, PACKET_CLOCK, PERFETTO_MONOTONIC);
    size_t place = message_begin(perfetto, PACKET_TRACK_EVENT);
    put_number(perfetto, EVENT_TYPE, event->type);
    put_number(perfetto, EVENT_TRACK, event->track);
    if (event->name != NULL) {
        put_text(perfetto, EVENT_NAME, event->name);
    }
    if (event->type == EVENT_COUNTER) {
        put_number(perfetto, EVENT_COUNTER_VALUE, (uint64_t)event->value);
    }
    if (event->arrow != 0) {
        put_fixed(perfetto, event->end == PERFETTO_ARROW_BEGINS ? EVENT_ARROW_BEGINS : EVENT_ARROW_ENDS, event->arrow);
    }
    for (size_t i = 0; i < event->notes_count; i++) {
        put_note(perfetto, &event->notes[i]);
    }
    message_end(perfetto, place);
    packet_end(perfetto, packet);
}

void perfetto_slice_begin(struct perfetto *perfetto, uint64_t track, int64_t time_ns, const char *name,
                          const struct perfetto_note *notes, size_t notes_count)
{
    put_event(perfetto, &(struct event){.type = EVENT_SLICE_BEGIN,
                                        .track = track,
                                        .time_ns = time_ns,
                                        .name = name,
                                        .notes = notes,
                                        .notes_count = notes_count});
}

void perfetto_slice_end(struct perfetto *perfetto, uint64_t track, int64_t time_ns)
{
    put_event(perfetto, &(struct event){.type = EVENT_SLICE_END, .track = track, .time_ns = time_ns});
}

void perfetto_instant(struct perfetto *perfetto, uint64_t track, int64_t time_ns, const char *name,
                      const struct perfetto_note *notes, size_t notes_count)
{
    put_event(perfetto, &(struct event){.type = EVENT_INSTANT,
                                        .track = track,
                                        .time_ns = time_ns,
                                        .name = name,
                                        .notes = notes,
                                        .notes_count = notes_count});
}

void perfetto_arrow(struct perfetto *perfetto, uint64_t track, int64_t time_ns, const char *name, uint64_t number,
                    enum perfetto_end end)
{
    put_event(
        perfetto,
        &(struct event){
            .type = EVENT_INSTANT, .track = track, .time_ns = time_ns, .name = name, .arrow = number, .end = end});
}

void perfetto_counter(struct perfetto *perfetto, uint64_t track, int64_t time_ns, int64_t value)
{
    put_event(perfetto, &(struct event){.type = EVENT_COUNTER, .track = track, .time_ns = time_ns, .value = value});
}

int perfetto_close(struct perfetto **perfetto)
{
    struct perfetto *closing = *perfetto;
    if (closing == NULL) {
        return 0;
    }
    bool failed = closing->file == stdout ? fflush(stdout) != 0 : fclose(closing->file) != 0;
    if (failed && closing->error == 0) {
        closing->error = -errno;
    }
    int error = closing->error;
    if (error != 0) {
        output_fail(closing->path, -error);
    }
    free(closing->bytes);
    free(closing->path);
    free(closing);
    *perfetto = NULL;
    return error;
}
