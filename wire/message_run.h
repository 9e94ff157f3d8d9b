/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages in about 12 bytes each instead of a record_message's 40. Each is told by what differs from the messages
 * before it: its end from the end of the one before; payload, frames, immediate, opcode, flags and place from the one
 * before of the same role, whatever its flow. So a coder's state goes from message to message, and both ends begin with
 * a zeroed one: on a link at the beginning of each batch. What comes out is what went in, field by field (role: 0 to
 * 7). Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cursor.h"
#include "wire/record.h"

#define MESSAGE_ROLES          8
#define MESSAGE_CODE_BYTES_MAX 43u     /* of one message */
#define MESSAGE_RUN_BYTES_MAX  0xfff8u /* of a record_message_run, header and padding included */

struct message_coder {
    uint64_t end_ns; /* of the message before */
    struct message_alike {
        uint32_t payload_bytes;
        uint32_t frames;
        uint32_t immediate;
        uint32_t place;
        uint16_t flags;
        uint8_t opcode;
    } alike[MESSAGE_ROLES];
};

/* Writes at most MESSAGE_CODE_BYTES_MAX bytes; returns where the next one goes. */
uint8_t *message_coder_put(struct message_coder *coder, uint8_t *at, const struct record_message *message);

/* Fills everything but kind and length; false, and the cursor has failed, when the bytes are none of ours. */
bool message_coder_take(struct message_coder *coder, struct cursor *bytes, struct record_message *message);

/* The messages of a batch's run that have not been read yet. */
struct message_run {
    struct message_coder coder; /* goes on from run to run of one batch */
    struct cursor bytes;
    uint32_t left;
};

/* What is left of the run is to be nothing before the next one begins. */
void message_run_begin(struct message_run *run, const struct record_message_run *record, const uint8_t *bytes,
                       size_t length_bytes);

/* 1 with a message, 0 when there is none left, -EBADMSG. */
int message_run_next(struct message_run *run, struct record_message *message);

/* Makes `length_bytes` at `bytes`, the room for a header and then messages, a record; returns how long it is. */
size_t message_run_end(uint8_t *bytes, size_t length_bytes, uint32_t messages_count);
