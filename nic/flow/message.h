/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages: from the FIRST frame to the LAST, or an ONLY one. A flow carries its open messages itself (a frame that was
 * lost and comes late still finds the one that it belongs to); a message that is over goes into one queue of fixed
 * memory, from which the caller takes it. A frame seen before is not counted again. All on the measuring thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/flow/sequence.h"
#include "nic/frame/frame.h"
#include "nic/tally.h"
#include "wire/record.h"

#define MESSAGE_OPEN_MAX 4

/* A message of which frames are still to come. */
struct message {
    uint64_t first_ns;
    uint64_t last_ns;
    uint32_t first_psn; /* of the first frame, or of the first one that was seen */
    uint32_t last_psn;
    uint32_t end_psn; /* of the last frame, by the length in the first one; valid with MESSAGE_PLACED */
    uint32_t frames;
    uint32_t payload_bytes;
    uint32_t immediate;
    uint32_t place;
    uint32_t dma_bytes;
    uint16_t flags;
    uint8_t kind; /* enum opcode_kind */
    uint8_t opcode_number;
    bool open;
    bool has_first;
    bool has_last;
};

/* What one direction has carried so far: data and credits do not share one. */
struct message_past {
    bool has_data; /* a write with immediate that is data */
    bool has_credit;
    uint32_t credit_from; /* credits lie between these places */
    uint32_t credit_to;
};

/* The open messages of one direction's requests or responses; embedded, zero is empty. */
struct message_track {
    uint64_t newest; /* the one that took the last frame */
    struct message open[MESSAGE_OPEN_MAX];
    struct message_past past;
};

struct message_queue;

int message_queue_create(struct message_queue **queue, size_t messages_max, struct tallies *tallies);
/* From now on messages that end are kept there too. */
struct history;
void message_queue_set_history(struct message_queue *queue, struct history *history);
void message_queue_destroy(struct message_queue **queue);

/* Bytes that a queue takes. */
size_t message_queue_bytes(size_t messages_max);

/* What message_note does with all but most. */
unsigned message_note_other(struct message_queue *queue, struct message_track *track, uint32_t flow,
                            const struct frame *frame, uint64_t at_ns, const struct sequence *sequence,
                            enum sequence_place place);

/*
 * Counts a data frame of flow number `flow` seen at `at_ns`, no earlier than the one before; `sequence` is that of
 * the track's PSNs, `place` what it said of this frame. Returns how many messages ended by it.
 */
static inline unsigned message_note(struct message_queue *queue, struct message_track *track, uint32_t flow,
                                    const struct frame *frame, uint64_t at_ns, const struct sequence *sequence,
                                    enum sequence_place place)
{
    struct message *message = &track->open[track->newest];

    if (frame->opcode->position != OPCODE_MIDDLE || place != SEQUENCE_NEXT || !message->open || !message->has_first ||
        message->has_last || frame->psn != ((message->last_psn + 1) & FRAME_PSN_MASK))
        return message_note_other(queue, track, flow, frame, at_ns, sequence, place);
    message->frames++;
    message->payload_bytes += frame->payload_bytes;
    message->last_ns = at_ns;
    message->last_psn = frame->psn;
    message->opcode_number = frame->opcode_number;
    return 0;
}

/*
 * Ends open messages as incomplete: those whose last frame was seen, but to which nothing has been added since
 * `stale_ns`; all for UINT64_MAX. Returns how many.
 */
unsigned message_abandon(struct message_queue *queue, struct message_track *track, uint32_t flow, bool is_loop,
                         uint64_t stale_ns);

/* The oldest message of the queue, false when there is none. */
bool message_take(struct message_queue *queue, struct record_message *record);
