/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message is a byte that says its role and which of its fields differ, its flow, end, duration, and those fields.
 * Invariant: coders that were given, and gave back, the same messages are equal.
 */
#include "wire/message_run.h"

#include <errno.h>

#include "wire/number.h"

#define ROLE_MASK     7u
#define HAS_PAYLOAD   8u
#define HAS_FRAMES    16u
#define HAS_LOOK      32u /* opcode and flags */
#define HAS_IMMEDIATE 64u
#define HAS_PLACE     128u
#define WORD          8u

static uint8_t *put_word(uint8_t *at, uint32_t word)
{
    memcpy(at, &word, sizeof word);
    return at + sizeof word;
}

static uint8_t head_of(const struct message_alike *alike, const struct record_message *message)
{
    unsigned head = message->role & ROLE_MASK;

    head |= message->payload_bytes != alike->payload_bytes ? HAS_PAYLOAD : 0;
    head |= message->frames != alike->frames ? HAS_FRAMES : 0;
    head |= message->opcode != alike->opcode || message->flags != alike->flags ? HAS_LOOK : 0;
    head |= message->immediate != alike->immediate ? HAS_IMMEDIATE : 0;
    head |= message->place != alike->place ? HAS_PLACE : 0;
    return (uint8_t)head;
}

static void remember(struct message_coder *coder, const struct record_message *message)
{
    coder->end_ns = message->first_ns + message->duration_ns;
    coder->alike[message->role & ROLE_MASK] = (struct message_alike){
        .payload_bytes = message->payload_bytes,
        .frames = message->frames,
        .immediate = message->immediate,
        .place = message->place,
        .flags = message->flags,
        .opcode = message->opcode,
    };
}

uint8_t *message_coder_put(struct message_coder *coder, uint8_t *at, const struct record_message *message)
{
    uint8_t head = head_of(&coder->alike[message->role & ROLE_MASK], message);
    uint64_t later_ns = message->first_ns + message->duration_ns - coder->end_ns;

    *at++ = head;
    at = number_put(at, message->header.source);
    at = number_put(at, number_fold((int64_t)later_ns));
    at = number_put(at, message->duration_ns);
    if ((head & HAS_PAYLOAD) != 0)
        at = number_put(at, message->payload_bytes);
    if ((head & HAS_FRAMES) != 0)
        at = number_put(at, message->frames);
    if ((head & HAS_LOOK) != 0) {
        *at++ = message->opcode;
        at = number_put(at, message->flags);
    }
    if ((head & HAS_IMMEDIATE) != 0)
        at = put_word(at, message->immediate);
    if ((head & HAS_PLACE) != 0)
        at = put_word(at, message->place);
    remember(coder, message);
    return at;
}

static uint32_t take_number(struct cursor *bytes, uint64_t most)
{
    uint64_t number = cursor_number(bytes);

    bytes->failed |= number > most;
    return (uint32_t)number;
}

bool message_coder_take(struct message_coder *coder, struct cursor *bytes, struct record_message *message)
{
    uint8_t head = cursor_u8(bytes);
    const struct message_alike *alike = &coder->alike[head & ROLE_MASK];

    *message = (struct record_message){.role = head & ROLE_MASK};
    message->header.source = take_number(bytes, UINT32_MAX);
    uint64_t end_ns = coder->end_ns + (uint64_t)number_unfold(cursor_number(bytes));
    message->duration_ns = take_number(bytes, UINT32_MAX);
    message->first_ns = end_ns - message->duration_ns;
    message->payload_bytes = (head & HAS_PAYLOAD) != 0 ? take_number(bytes, UINT32_MAX) : alike->payload_bytes;
    message->frames = (head & HAS_FRAMES) != 0 ? take_number(bytes, UINT32_MAX) : alike->frames;
    message->opcode = (head & HAS_LOOK) != 0 ? cursor_u8(bytes) : alike->opcode;
    message->flags = (head & HAS_LOOK) != 0 ? (uint16_t)take_number(bytes, UINT16_MAX) : alike->flags;
    message->immediate = (head & HAS_IMMEDIATE) != 0 ? cursor_le32(bytes) : alike->immediate;
    message->place = (head & HAS_PLACE) != 0 ? cursor_le32(bytes) : alike->place;
    if (bytes->failed)
        return false;
    remember(coder, message);
    return true;
}

void message_run_begin(struct message_run *run, const struct record_message_run *record, const uint8_t *bytes,
                       size_t length_bytes)
{
    cursor_init(&run->bytes, bytes, length_bytes);
    run->left = record->header.source;
}

/* Behind the last message: nothing but what makes whole words. */
static bool is_padding(struct cursor *bytes)
{
    if (cursor_left(bytes) >= WORD)
        return false;
    while (cursor_left(bytes) != 0)
        if (cursor_u8(bytes) != 0)
            return false;
    return true;
}

int message_run_next(struct message_run *run, struct record_message *message)
{
    if (run->left == 0)
        return 0;
    if (!message_coder_take(&run->coder, &run->bytes, message))
        return -EBADMSG;
    message->header.kind = RECORD_MESSAGE;
    message->header.length_bytes = sizeof *message;
    run->left--;
    return run->left != 0 || is_padding(&run->bytes) ? 1 : -EBADMSG;
}

size_t message_run_end(uint8_t *bytes, size_t length_bytes, uint32_t messages_count)
{
    size_t whole = (length_bytes + WORD - 1) / WORD * WORD;
    const struct record_message_run record = {
        .header = {.kind = RECORD_MESSAGE_RUN, .length_bytes = (uint16_t)whole, .source = messages_count}};

    memcpy(bytes, &record, sizeof record);
    memset(bytes + length_bytes, 0, whole - length_bytes);
    return whole;
}
