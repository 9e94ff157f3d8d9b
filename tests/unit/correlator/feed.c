/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches by hand, written apart from wire/emitter. */
#include "tests/unit/correlator/feed.h"

#include <stdlib.h>
#include <string.h>

#include "wire/message_run.h"

#define REFERENCE_BOOT 0x5eed

void feed_init(struct feed *feed, uint16_t kind, uint64_t emitter_id, uint64_t boot_id, int64_t offset_ns)
{
    memset(feed, 0, sizeof *feed);
    feed->kind = kind;
    feed->emitter_id = emitter_id;
    feed->boot_id = boot_id;
    feed->offset_ns = offset_ns;
    feed->open_bytes = sizeof(struct batch_header);
}

void feed_fini(struct feed *feed)
{
    for (size_t i = 0; i < feed->count; i++)
        free(feed->batches[i].bytes);
    feed->count = 0;
}

uint64_t feed_time(const struct feed *feed, uint64_t reference_ns)
{
    return reference_ns == 0 ? 0 : reference_ns + (uint64_t)feed->offset_ns;
}

void feed_add(struct feed *feed, uint16_t kind, void *record)
{
    size_t bytes = record_kind_bytes(kind);
    struct record_header *header = record;

    header->kind = kind;
    header->length_bytes = (uint16_t)bytes;
    if (feed->open_bytes + bytes > sizeof feed->open)
        abort();
    memcpy(feed->open + feed->open_bytes, record, bytes);
    feed->open_bytes += bytes;
    feed->open_records++;
}

void feed_send(struct feed *feed, uint64_t reference_ns)
{
    struct batch_header header = {
        .magic = BATCH_MAGIC,
        .version = BATCH_VERSION,
        .emitter_kind = feed->kind,
        .emitter_id = feed->emitter_id,
        .boot_id = feed->boot_id,
        .sequence = feed->sequence++,
        .sent_ns = feed_time(feed, reference_ns),
        .records_count = feed->open_records,
        .records_bytes = (uint32_t)(feed->open_bytes - sizeof header),
    };
    struct feed_batch *batch = &feed->batches[feed->count];

    if (feed->count++ == FEED_BATCHES_MAX)
        abort();
    memcpy(feed->open, &header, sizeof header);
    batch->bytes = malloc(feed->open_bytes);
    batch->length_bytes = feed->open_bytes;
    memcpy(batch->bytes, feed->open, feed->open_bytes);
    feed->open_bytes = sizeof header;
    feed->open_records = 0;
}

/* How many messages lie one behind the other from `at` on. */
static size_t count_messages(const struct feed_batch *batch, size_t at)
{
    struct record_header header;
    size_t count = 0;

    for (; at < batch->length_bytes; at += header.length_bytes, count++) {
        memcpy(&header, batch->bytes + at, sizeof header);
        if (header.kind != RECORD_MESSAGE)
            break;
    }
    return count;
}

static size_t pack_run(struct message_coder *coder, uint8_t *into, const uint8_t *from, size_t count)
{
    uint8_t *at = into + sizeof(struct record_message_run);
    struct record_message message;

    for (size_t i = 0; i < count; i++) {
        memcpy(&message, from + i * sizeof message, sizeof message);
        at = message_coder_put(coder, at, &message);
    }
    return message_run_end(into, (size_t)(at - into), (uint32_t)count);
}

static void pack_batch(struct feed_batch *batch)
{
    struct message_coder coder = {0};
    struct batch_header header;
    uint8_t *packed = malloc(2 * batch->length_bytes);
    size_t from = sizeof header, to = sizeof header;

    memcpy(&header, batch->bytes, sizeof header);
    header.records_count = 0;
    for (; from < batch->length_bytes; header.records_count++) {
        size_t count = count_messages(batch, from);
        struct record_header record;
        memcpy(&record, batch->bytes + from, sizeof record);
        if (count == 0)
            memcpy(packed + to, batch->bytes + from, record.length_bytes);
        to += count == 0 ? record.length_bytes : pack_run(&coder, packed + to, batch->bytes + from, count);
        from += count == 0 ? record.length_bytes : count * sizeof(struct record_message);
    }
    header.records_bytes = (uint32_t)(to - sizeof header);
    memcpy(packed, &header, sizeof header);
    free(batch->bytes);
    *batch = (struct feed_batch){.bytes = packed, .length_bytes = to};
}

void feed_pack(struct feed *feed)
{
    for (size_t i = 0; i < feed->count; i++)
        pack_batch(&feed->batches[i]);
}

void feed_hello(struct feed *feed, uint64_t reference_ns, uint32_t window_ns)
{
    struct record_hello hello = {.started_ns = feed_time(feed, reference_ns), .pid = 7, .window_ns = window_ns};

    strcpy(hello.host, "made");
    strcpy(hello.version, "0");
    feed_add(feed, RECORD_HELLO, &hello);
}

void feed_exchange(struct feed *feed, uint64_t reference_ns, uint64_t there_ns, uint64_t back_ns)
{
    struct record_clock_sample sample = {
        .reference_boot = REFERENCE_BOOT,
        .sent_ns = feed_time(feed, reference_ns),
        .received_ns = reference_ns + there_ns,
        .replied_ns = reference_ns + there_ns + 1000,
        .returned_ns = feed_time(feed, reference_ns + there_ns + 1000 + back_ns),
    };

    feed_add(feed, RECORD_CLOCK_SAMPLE, &sample);
}

void feed_last(struct feed *feed, uint64_t reference_ns)
{
    struct record_heartbeat heartbeat = {.at_ns = feed_time(feed, reference_ns), .flags = HEARTBEAT_LAST};

    feed_add(feed, RECORD_HEARTBEAT, &heartbeat);
    feed_send(feed, reference_ns);
}
