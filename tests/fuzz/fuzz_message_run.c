/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a run of messages. Checked: no more messages than the bytes can hold, and each of them, coded again,
 * comes out as it is.
 */
#include "wire/message_run.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check_again(struct message_coder *put, struct message_coder *take, const struct record_message *message)
{
    uint8_t again[MESSAGE_CODE_BYTES_MAX];
    struct record_message back;
    struct cursor cursor;

    cursor_init(&cursor, again, (size_t)(message_coder_put(put, again, message) - again));
    if (!message_coder_take(take, &cursor, &back) || cursor_left(&cursor) != 0)
        abort();
    back.header.kind = message->header.kind;
    back.header.length_bytes = message->header.length_bytes;
    if (memcmp(&back, message, sizeof back) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct message_run run = {.left = 0};
    struct message_coder put = {0}, take = {0};
    struct record_message_run record;
    struct record_message message;
    size_t count = 0;

    if (length_bytes < sizeof record)
        return 0;
    memcpy(&record, bytes, sizeof record);
    message_run_begin(&run, &record, bytes + sizeof record, length_bytes - sizeof record);
    while (message_run_next(&run, &message) == 1) {
        check_again(&put, &take, &message);
        count++;
    }
    if (count > length_bytes / 4 || count > record.header.source)
        abort();
    return 0;
}
