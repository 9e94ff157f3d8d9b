/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: between train_begin and train_end the flow's data frames are all of the train, so that what the
 * windows' sums have risen by is the message's. A train ends before a PSN that is a multiple of SEQUENCE_PSNS, which
 * the sequence has to hear of; a marked frame begins none.
 */
#include "nic/flow/train.h"

#define ECN_CE 3

static struct message *message_of(struct flow *flow)
{
    struct message_track *track = &flow->streams[FLOW_REQUESTS].messages;

    return &track->open[track->newest];
}

/* The opcode of what follows in the same message, if that has nothing between BTH and payload; else 0. */
static uint8_t opcode_behind(const struct frame *frame)
{
    uint8_t number = (uint8_t)(frame->opcode_number + (frame->opcode->position == OPCODE_FIRST));
    const struct opcode *opcode = &opcode_table[number];
    bool is_middle = opcode->position == OPCODE_MIDDLE && opcode->extensions == OPCODE_NONE;

    return is_middle && (opcode->kind == OPCODE_SEND || opcode->kind == OPCODE_WRITE) ? number : 0;
}

void train_begin(struct flow *flow, const struct frame *frame)
{
    const struct message *message = message_of(flow);
    uint8_t opcode_number = opcode_behind(frame);
    bool is_inside = message->open && message->has_first && !message->has_last && message->last_psn == frame->psn;

    if (opcode_number == 0 || !is_inside || frame->look.ecn == ECN_CE)
        return;
    flow->next_sign = train_next(glance_sign(frame->psn, opcode_number, frame->look));
    flow->train = (struct flow_train){.frames_before = flow->windows.sums.frames,
                                      .payload_before = flow->windows.sums.payload_bytes,
                                      .opcode_number = opcode_number};
}

void train_end(struct flow *flow)
{
    struct flow_train *train = &flow->train;
    uint32_t frames = (uint32_t)(flow->windows.sums.frames - train->frames_before);

    if (train->frames_before == 0)
        return;
    uint32_t highest = flow_sequence(flow)->highest;
    if (frames != 0) {
        struct message *message = message_of(flow);
        message->frames += frames;
        message->payload_bytes += (uint32_t)(flow->windows.sums.payload_bytes - train->payload_before);
        message->last_ns = flow->data_ns;
        message->last_psn = highest;
        message->opcode_number = train->opcode_number;
    }
    train->frames_before = 0;
    flow->next_sign = GLANCE_NO_SIGN;
}
