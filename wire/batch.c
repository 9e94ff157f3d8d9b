/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks a batch. Invariant: every byte that is handed on was inside the bytes given, and a record of a known kind is
 * complete as far as this version knows it; what a newer version appended is left out.
 */
#include "wire/batch.h"

#include <errno.h>

int batch_read(struct batch *batch, const void *bytes, size_t length_bytes)
{
    struct batch_header header;
    struct cursor cursor;

    cursor_init(&cursor, bytes, length_bytes);
    if (!cursor_copy(&cursor, &header, sizeof header))
        return -EBADMSG;
    if (header.magic != BATCH_MAGIC || header.version != BATCH_VERSION || header.records_bytes != cursor_left(&cursor))
        return -EBADMSG;
    batch->header = header;
    batch->records = cursor;
    batch->records_left = header.records_count;
    batch->skips_runs = false;
    batch->run = (struct message_run){.left = 0};
    batch->operations.left = 0;
    operation_coder_init(&batch->operations.coder);
    return 0;
}

/* Takes one record off the batch: its header, and where its bytes (header included) are. */
static const uint8_t *take_record(struct batch *batch, struct record_header *header)
{
    const uint8_t *start = batch->records.at;

    if (!cursor_copy(&batch->records, header, sizeof *header))
        return NULL;
    if (header->length_bytes < sizeof *header || header->length_bytes % 8 != 0)
        return NULL;
    return cursor_skip(&batch->records, header->length_bytes - sizeof *header) ? start : NULL;
}

static int next_of_run(struct batch *batch, union record *record)
{
    int of_run = message_run_next(&batch->run, &record->message);

    return of_run != 0 ? of_run : operation_run_next(&batch->operations, &record->rank_operation);
}

static void begin_run(struct batch *batch, const union record *record, const uint8_t *bytes, size_t length_bytes)
{
    if (record->header.kind == RECORD_MESSAGE_RUN)
        message_run_begin(&batch->run, &record->message_run, bytes, length_bytes);
    else
        operation_run_begin(&batch->operations, &record->rank_operation_run, bytes, length_bytes);
}

int batch_next(struct batch *batch, union record *record, uint64_t *unknown_count)
{
    int of_run = next_of_run(batch, record);

    if (of_run != 0)
        return of_run;
    while (batch->records_left > 0) {
        struct record_header header;
        const uint8_t *bytes = take_record(batch, &header);
        if (bytes == NULL)
            return -EBADMSG;
        batch->records_left--;
        size_t known_bytes = record_kind_bytes(header.kind);
        if (known_bytes == 0) {
            (*unknown_count)++;
            continue;
        }
        if (header.length_bytes < known_bytes)
            return -EBADMSG;
        memcpy(record, bytes, known_bytes);
        if (header.kind != RECORD_MESSAGE_RUN && header.kind != RECORD_RANK_OPERATION_RUN)
            return 1;
        if (batch->skips_runs)
            continue;
        begin_run(batch, record, bytes + known_bytes, header.length_bytes - known_bytes);
        if ((of_run = next_of_run(batch, record)) != 0)
            return of_run;
    }
    return cursor_left(&batch->records) == 0 ? 0 : -EBADMSG;
}
