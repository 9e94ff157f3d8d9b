/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Putting frames together to messages by PSN. Roles follow NCCL's protocol over verbs: data is an RDMA write, ended by
 * a write with immediate that has the rest of the bytes or none; a credit is a write of whole 64-byte entries without
 * immediate into a small ring of such entries, in a direction that carries no data; a size record is a write with
 * immediate whose few 4-byte sizes are not what the immediate says; a flush reads one byte over a queue pair connected
 * to itself. Invariant: the PSN ranges of a track's open messages do not overlap.
 */
#include "nic/flow/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/window/history.h"

#define CREDIT_ENTRY_BYTES 64u
#define CREDIT_BYTES_MAX   512u
#define RING_BYTES_MAX     (256u * 1024u) /* twice the largest: 256 requests of 8 entries */
#define SIZE_ENTRY_BYTES   4u
#define SIZE_BYTES_MIN     8u
#define SIZE_BYTES_MAX     32u
#define FRAMES_MORE_MAX    ((1u << 23) - 2) /* behind the first: 2 GiB in frames of 256 bytes */

struct message_queue {
    struct tallies *tallies;
    struct history *history; /* NULL = none */
    size_t mask;
    size_t head;
    size_t tail;
    struct record_message *records;
};

static size_t size_for(size_t messages_max)
{
    size_t size = 64;

    while (size < messages_max)
        size *= 2;
    return size;
}

size_t message_queue_bytes(size_t messages_max)
{
    return sizeof(struct message_queue) + size_for(messages_max) * sizeof(struct record_message);
}

int message_queue_create(struct message_queue **queue, size_t messages_max, struct tallies *tallies)
{
    size_t size = size_for(messages_max);
    struct message_queue *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->records = calloc(size, sizeof *made->records);
    made->mask = size - 1;
    made->tallies = tallies;
    if (made->records == NULL) {
        message_queue_destroy(&made);
        return -ENOMEM;
    }
    *queue = made;
    return 0;
}

void message_queue_destroy(struct message_queue **queue)
{
    if (*queue == NULL)
        return;
    free((*queue)->records);
    free(*queue);
    *queue = NULL;
}

void message_queue_set_history(struct message_queue *queue, struct history *history)
{
    queue->history = history;
}

bool message_take(struct message_queue *queue, struct record_message *record)
{
    if (queue->head == queue->tail)
        return false;
    *record = queue->records[queue->head++ & queue->mask];
    return true;
}

static bool is_size_record(const struct message *message)
{
    return message->payload_bytes >= SIZE_BYTES_MIN && message->payload_bytes <= SIZE_BYTES_MAX &&
           message->payload_bytes % SIZE_ENTRY_BYTES == 0 && message->immediate != message->payload_bytes &&
           __builtin_bswap32(message->immediate) != message->payload_bytes;
}

static bool is_credit(const struct message *message)
{
    return message->frames == 1 && message->payload_bytes != 0 && message->payload_bytes <= CREDIT_BYTES_MAX &&
           message->payload_bytes % CREDIT_ENTRY_BYTES == 0;
}

/* Whether a place is one of the ring that the credits before were written into, which is far smaller than a buffer. */
static bool is_in_ring(const struct message_past *past, uint32_t place)
{
    return !past->has_credit || place - past->credit_from < RING_BYTES_MAX || past->credit_to - place < RING_BYTES_MAX;
}

static void note_credit(struct message_past *past, uint32_t place)
{
    if (!past->has_credit)
        past->credit_from = past->credit_to = place;
    past->has_credit = true;
    if (place - past->credit_from >= RING_BYTES_MAX)
        past->credit_from = place;
    if (past->credit_to - place >= RING_BYTES_MAX)
        past->credit_to = place;
}

static enum message_role role_of_write(struct message_past *past, const struct message *message)
{
    if ((message->flags & MESSAGE_IMMEDIATE) != 0 && is_size_record(message))
        return ROLE_SIZE;
    if ((message->flags & MESSAGE_IMMEDIATE) != 0) {
        past->has_data = true;
        return ROLE_DATA;
    }
    if ((message->flags & MESSAGE_INCOMPLETE) == 0 && is_credit(message) && !past->has_data &&
        is_in_ring(past, message->place)) {
        note_credit(past, message->place);
        return ROLE_CREDIT;
    }
    return message->payload_bytes == 0 ? ROLE_OTHER : ROLE_DATA;
}

static enum message_role role_of(struct message_past *past, const struct message *message, bool is_loop)
{
    switch (message->kind) {
    case OPCODE_WRITE:
        return role_of_write(past, message);
    case OPCODE_READ_REQUEST:
        return is_loop && message->dma_bytes == 1 ? ROLE_FLUSH : ROLE_OTHER;
    case OPCODE_READ_RESPONSE:
        return is_loop && message->payload_bytes == 1 ? ROLE_FLUSH : ROLE_OTHER;
    default:
        return ROLE_OTHER;
    }
}

static void end_message(struct message_queue *queue, struct message_track *track, struct message *message,
                        uint32_t flow, bool is_loop)
{
    uint64_t duration_ns = message->last_ns - message->first_ns;
    uint32_t span = (message->last_psn - message->first_psn + 1) & FRAME_PSN_MASK;

    if (!message->has_first || !message->has_last || message->frames != span)
        message->flags |= MESSAGE_INCOMPLETE;
    message->open = false;
    tally_add(queue->tallies, TALLY_MESSAGES, 1);
    tally_add(queue->tallies, TALLY_MESSAGES_INCOMPLETE, (message->flags & MESSAGE_INCOMPLETE) != 0);
    const struct record_message record = {
        .header.source = flow,
        .first_ns = message->first_ns,
        .duration_ns = duration_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)duration_ns,
        .payload_bytes = message->payload_bytes,
        .frames = message->frames,
        .immediate = message->immediate,
        .place = message->place,
        .role = (uint8_t)role_of(&track->past, message, is_loop),
        .opcode = message->opcode_number,
        .flags = message->flags,
    };
    if (queue->history != NULL)
        history_put(queue->history, &record);
    if (queue->tail - queue->head > queue->mask)
        tally_add(queue->tallies, TALLY_MESSAGES_DROPPED, 1);
    else
        queue->records[queue->tail++ & queue->mask] = record;
}

static void begin_message(struct message *message, const struct frame *frame, uint64_t at_ns)
{
    *message = (struct message){
        .first_ns = at_ns,
        .last_ns = at_ns,
        .first_psn = frame->psn,
        .last_psn = frame->psn,
        .kind = frame->opcode->kind,
        .opcode_number = frame->opcode_number,
        .open = true,
    };
}

/* The PSN of the last frame of a message that begins with this one: all but the last are as long as the first. */
static uint32_t end_by_length(const struct frame *frame)
{
    uint32_t unit_bytes = frame->payload_bytes == 0 ? 1 : frame->payload_bytes;
    uint32_t more = frame->dma_bytes > unit_bytes ? (frame->dma_bytes - 1) / unit_bytes : FRAMES_MORE_MAX;

    if (frame->opcode->position == OPCODE_ONLY)
        return frame->psn;
    return (frame->psn + (more < FRAMES_MORE_MAX ? more : FRAMES_MORE_MAX)) & FRAME_PSN_MASK;
}

static void add_frame(struct message *message, const struct frame *frame, uint64_t at_ns)
{
    uint8_t position = frame->opcode->position;

    message->frames++;
    message->payload_bytes += frame->payload_bytes;
    message->first_ns = at_ns < message->first_ns ? at_ns : message->first_ns;
    message->last_ns = at_ns > message->last_ns ? at_ns : message->last_ns;
    if (sequence_distance(frame->psn, message->last_psn) >= 0) {
        message->last_psn = frame->psn;
        message->opcode_number = frame->opcode_number;
    }
    if (sequence_distance(frame->psn, message->first_psn) < 0)
        message->first_psn = frame->psn;
    message->has_first |= position == OPCODE_FIRST || position == OPCODE_ONLY;
    if (position == OPCODE_LAST || position == OPCODE_ONLY)
        message->has_last = true;
    if ((frame->flags & FRAME_IMMEDIATE) != 0) {
        message->immediate = frame->immediate;
        message->flags |= MESSAGE_IMMEDIATE;
    }
    if ((frame->flags & FRAME_PLACED) != 0) {
        message->place = (uint32_t)frame->place;
        message->dma_bytes = frame->dma_bytes;
        message->flags |= MESSAGE_PLACED;
        message->end_psn = end_by_length(frame);
    }
}

/* Whether the frame's PSN belongs into the message, given that no other message lies between. */
static bool could_hold(const struct message *message, uint32_t psn)
{
    bool is_bounded = message->has_last || (message->flags & MESSAGE_PLACED) != 0;
    uint32_t end_psn = message->has_last ? message->last_psn : message->end_psn;

    return message->open && sequence_distance(psn, message->first_psn) >= 0 &&
           (!is_bounded || sequence_distance(psn, end_psn) <= 0);
}

/* Whether this FIRST or MIDDLE frame belongs before the open message's first, which was not seen: it came late. */
static bool precedes(const struct message *message, const struct frame *frame)
{
    uint32_t end_psn = (frame->flags & FRAME_PLACED) != 0 ? end_by_length(frame) : (frame->psn + 1) & FRAME_PSN_MASK;

    return message->open && !message->has_first && frame->opcode->position != OPCODE_LAST &&
           sequence_distance(message->first_psn, frame->psn) > 0 && sequence_distance(end_psn, message->first_psn) >= 0;
}

static struct message *find_message(struct message_track *track, const struct frame *frame)
{
    struct message *newest = &track->open[track->newest];
    struct message *best = NULL;
    bool is_first = frame->opcode->position == OPCODE_FIRST;

    if (!is_first && newest->open && newest->has_first && !newest->has_last &&
        frame->psn == ((newest->last_psn + 1) & FRAME_PSN_MASK))
        return newest;
    for (unsigned i = 0; i < MESSAGE_OPEN_MAX; i++) {
        struct message *message = &track->open[i];
        bool fits = precedes(message, frame) || (!is_first && could_hold(message, frame->psn));
        if (fits && (best == NULL || sequence_distance(message->first_psn, best->first_psn) > 0))
            best = message;
    }
    return best;
}

/* A place for a new message: a free one, else that of the oldest, which ends incomplete. */
static struct message *make_room(struct message_queue *queue, struct message_track *track, uint32_t flow, bool is_loop)
{
    struct message *oldest = &track->open[0];

    for (unsigned i = 0; i < MESSAGE_OPEN_MAX; i++) {
        struct message *message = &track->open[i];
        if (!message->open)
            return message;
        if (sequence_distance(message->first_psn, oldest->first_psn) < 0)
            oldest = message;
    }
    end_message(queue, track, oldest, flow, is_loop);
    return oldest;
}

/* Without its first frame it waits for that one too, unless we came later than it. */
static bool is_whole(const struct message *message, const struct sequence *sequence)
{
    return message->has_last && message->frames == ((message->last_psn - message->first_psn + 1) & FRAME_PSN_MASK) &&
           (message->has_first || !sequence_misses(sequence, (message->first_psn - 1) & FRAME_PSN_MASK));
}

static void note_repeated(struct message_track *track, uint32_t psn)
{
    for (unsigned i = 0; i < MESSAGE_OPEN_MAX; i++) {
        struct message *message = &track->open[i];
        if (could_hold(message, psn) && sequence_distance(psn, message->last_psn) <= 0)
            message->flags |= MESSAGE_RETRANSMITTED;
    }
}

static void note_only(struct message_queue *queue, struct message_track *track, uint32_t flow,
                      const struct frame *frame, uint64_t at_ns, bool is_loop)
{
    struct message only;

    begin_message(&only, frame, at_ns);
    add_frame(&only, frame, at_ns);
    end_message(queue, track, &only, flow, is_loop);
}

static void note_part(struct message_queue *queue, struct message_track *track, uint32_t flow,
                      const struct frame *frame, uint64_t at_ns, const struct sequence *sequence, bool is_loop)
{
    struct message *message = find_message(track, frame);

    if (message == NULL) {
        message = make_room(queue, track, flow, is_loop);
        begin_message(message, frame, at_ns);
    }
    track->newest = (uint64_t)(message - track->open);
    add_frame(message, frame, at_ns);
    if (is_whole(message, sequence))
        end_message(queue, track, message, flow, is_loop);
}

unsigned message_note_other(struct message_queue *queue, struct message_track *track, uint32_t flow,
                            const struct frame *frame, uint64_t at_ns, const struct sequence *sequence,
                            enum sequence_place place)
{
    bool is_loop = memcmp(frame->key.source, frame->key.destination, sizeof frame->key.source) == 0;
    uint64_t before = counter_read(queue->tallies->values, TALLY_MESSAGES);

    if (place == SEQUENCE_REPEATED || place == SEQUENCE_FAR)
        note_repeated(track, frame->psn);
    else if (frame->opcode->position == OPCODE_ONLY)
        note_only(queue, track, flow, frame, at_ns, is_loop);
    else
        note_part(queue, track, flow, frame, at_ns, sequence, is_loop);
    return (unsigned)(counter_read(queue->tallies->values, TALLY_MESSAGES) - before);
}

unsigned message_abandon(struct message_queue *queue, struct message_track *track, uint32_t flow, bool is_loop,
                         uint64_t stale_ns)
{
    unsigned ended = 0;

    for (unsigned i = 0; i < MESSAGE_OPEN_MAX; i++) {
        struct message *message = &track->open[i];
        bool is_stale = stale_ns == UINT64_MAX || (message->has_last && message->last_ns < stale_ns);
        if (!message->open || !is_stale)
            continue;
        end_message(queue, track, message, flow, is_loop);
        ended++;
    }
    return ended;
}
