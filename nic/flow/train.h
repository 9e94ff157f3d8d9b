/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A train: frames of one message that follow each other as they should, each the middle of the message, in order, soon
 * after the one before, and alike in all that a flow's frames usually have in common. Nearly all frames are of trains,
 * and little is to be done with one: windows count every frame, the flow's sequence and the message are told
 * of all of them when the train ends (flow_sequence). On the measuring thread.
 */
#pragma once

#include "nic/flow/flow.h"

/* The sign of the frame behind; before a PSN that the sequence has to hear of, one with this PSN that no frame has. */
static inline uint64_t train_next(uint64_t sign)
{
    return (sign + 1) % SEQUENCE_PSNS == 0 ? (sign + 1) | GLANCE_NO_SIGN : sign + 1;
}

/*
 * Whether the frame, whose flow it is by its name, is the next one of the flow's train; then the windows are to count
 * it, and nothing else.
 */
static inline bool train_take(struct flow *flow, const struct glance *glance, uint64_t at_ns)
{
    uint64_t sign = glance->sign;

    if (sign != flow->next_sign || at_ns - flow->data_ns >= RECOVERY_PAUSE_NS || glance->behind_bytes == 0 ||
        glance->behind_bytes % 4 != 0)
        return false;
    flow->next_sign = train_next(sign);
    flow->data_ns = at_ns;
    return true;
}

/* This frame was the flow's last one, in order: what follows may be a train. */
void train_begin(struct flow *flow, const struct frame *frame);

/* Tells the message of the train's frames: before anything else is done with the flow's data. */
void train_end(struct flow *flow);
