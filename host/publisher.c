/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records to the emitter and to stdout. Invariant: a line of JSON is whole: text is escaped, and a record of a kind
 * that field.def does not describe is not printed.
 */
#include "host/publisher.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/log.h"

struct publisher {
    struct emitter *emitter;
    const struct counter_table *counters;
    bool json;
};

enum format { UNSIGNED, SIGNED, HEX, TEXT, ADDRESS, DIGEST, CALL_FLAGS_RESULT, FACT };

struct field {
    enum record_kind kind;
    const char *name;
    enum format format;
    size_t offset;
    size_t length_bytes;
};

#define RECORD_process      RECORD_PROCESS
#define RECORD_process_fact RECORD_PROCESS_FACT
#define RECORD_communicator RECORD_COMMUNICATOR
#define RECORD_queue_pair   RECORD_QUEUE_PAIR
#define RECORD_call         RECORD_CALL
#define RECORD_host_delay   RECORD_HOST_DELAY
#define RECORD_marker       RECORD_MARKER
#define RECORD_work         RECORD_WORK
#define RECORD_followed     RECORD_FOLLOWED
#define RECORD_failure      RECORD_FAILURE
#define RECORD_rdma_port    RECORD_RDMA_PORT
#define RECORD_loss         RECORD_LOSS
#define RECORD_counter      RECORD_COUNTER

static const struct field fields[] = {
#define FIELD(record, member, format)                                                                                  \
    {RECORD_##record, #member, format, offsetof(struct record_##record, member),                                       \
     sizeof(((struct record_##record *)0)->member)},
#include "host/field.def"
#undef FIELD
};

int publisher_open(struct publisher **publisher, const struct publisher_options *options)
{
    struct publisher *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the publisher");
    const int error = emitter_open(&fresh->emitter, &options->emitter);
    if (error != 0) {
        free(fresh);
        return error;
    }
    fresh->json = options->json;
    fresh->counters = options->emitter.counters;
    *publisher = fresh;
    return 0;
}

static uint64_t read_unsigned(const uint8_t *bytes, size_t length_bytes)
{
    uint64_t value = 0;
    memcpy(&value, bytes, length_bytes); /* records are little-endian, as is every machine that this runs on */
    return value;
}

static int64_t read_signed(const uint8_t *bytes, size_t length_bytes)
{
    const uint64_t value = read_unsigned(bytes, length_bytes);
    return length_bytes == 4 ? (int32_t)value : (int64_t)value;
}

static void print_text(const uint8_t *bytes, size_t length_bytes)
{
    putchar('"');
    for (size_t i = 0; i < length_bytes && bytes[i] != '\0'; i++) {
        if (bytes[i] < 0x20 || bytes[i] >= 0x7f || bytes[i] == '"' || bytes[i] == '\\')
            printf("\\u%04x", bytes[i]);
        else
            putchar(bytes[i]);
    }
    putchar('"');
}

static void print_digest(const uint8_t *bytes, size_t length_bytes)
{
    static const uint8_t zeros[IDENTITY_BYTES];
    if (memcmp(bytes, zeros, length_bytes) == 0) {
        printf("null");
        return;
    }
    putchar('"');
    for (size_t i = 0; i < length_bytes; i++)
        printf("%02x", bytes[i]);
    putchar('"');
}

static void print_address(const uint8_t *bytes)
{
    char text[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, bytes, text, sizeof text);
    printf("\"%s\"", text);
}

/* Two things in one byte. */
static void print_flags_result(uint8_t flags)
{
    printf("%u,\"result\":", flags & CALL_FLAGS);
    if (flags >> CALL_RESULT_SHIFT == 0)
        printf("null");
    else
        printf("%u", (unsigned)(flags >> CALL_RESULT_SHIFT) - 1);
}

static void print_field(const struct field *field, const void *record)
{
    const uint8_t *bytes = (const uint8_t *)record + field->offset;
    const char *dot = strrchr(field->name, '.');
    printf(",\"%s\":", dot == NULL ? field->name : dot + 1);
    switch (field->format) {
    case UNSIGNED:
        printf("%" PRIu64, read_unsigned(bytes, field->length_bytes));
        break;
    case SIGNED:
        printf("%" PRId64, read_signed(bytes, field->length_bytes));
        break;
    case HEX:
        printf("\"0x%" PRIx64 "\"", read_unsigned(bytes, field->length_bytes));
        break;
    case TEXT:
        print_text(bytes, field->length_bytes);
        break;
    case ADDRESS:
        print_address(bytes);
        break;
    case DIGEST:
        print_digest(bytes, field->length_bytes);
        break;
    case CALL_FLAGS_RESULT:
        print_flags_result(*bytes);
        break;
    case FACT:
        printf("\"%s\"", process_fact_name((uint16_t)read_unsigned(bytes, field->length_bytes)));
        break;
    }
}

static void print_record(enum record_kind kind, const void *record)
{
    bool begun = false;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].kind != kind)
            continue;
        if (!begun)
            printf("{\"record\":\"%s\"", record_kind_name((uint16_t)kind));
        begun = true;
        print_field(&fields[i], record);
    }
    if (begun)
        printf("}\n");
}

void publisher_add(struct publisher *publisher, enum record_kind kind, void *record)
{
    if (publisher->json)
        print_record(kind, record);
    emitter_add(publisher->emitter, kind, record);
}

struct emitter *publisher_emitter(const struct publisher *publisher)
{
    return publisher->emitter;
}

uint64_t publisher_now_ns(const struct publisher *publisher)
{
    return emitter_now_ns(publisher->emitter);
}

void publisher_cover(struct publisher *publisher, uint64_t until_ns)
{
    emitter_cover(publisher->emitter, until_ns);
}

uint64_t publisher_epoch(const struct publisher *publisher)
{
    return emitter_epoch(publisher->emitter);
}

int publisher_tick(struct publisher *publisher)
{
    emitter_tick(publisher->emitter);
    if (publisher->json && fflush(stdout) != 0)
        return log_error_return(-errno, "cannot write to standard output: %s", strerror(errno));
    return 0;
}

static void log_counters(const struct counter_table *counters)
{
    for (size_t i = 0; i < counters->count; i++)
        log_debug("%s %" PRIu64, counters->specs[i].name, counter_read(counters->values, i));
}

static void print_counters(const struct counter_table *counters)
{
    for (size_t i = 0; i < counters->count; i++) {
        struct record_counter record = {.total = counter_read(counters->values, i)};
        memcpy(record.name, counters->specs[i].name, strnlen(counters->specs[i].name, sizeof record.name));
        print_record(RECORD_COUNTER, &record);
    }
}

int publisher_close(struct publisher **publisher)
{
    if (*publisher == NULL)
        return 0;
    int error = emitter_close(&(*publisher)->emitter);
    if ((*publisher)->counters != NULL)
        log_counters((*publisher)->counters);
    if ((*publisher)->json) {
        if ((*publisher)->counters != NULL)
            print_counters((*publisher)->counters);
        if (fflush(stdout) != 0 && error == 0)
            error = log_error_return(-errno, "cannot write to standard output: %s", strerror(errno));
    }
    free(*publisher);
    *publisher = NULL;
    return error;
}
