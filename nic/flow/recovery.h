/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a frame comes again, or late: because it was lost and is sent again, because the network doubled it or let others
 * overtake it, or for a cause that cannot be known from here. Judged only when a frame is out of order or comes after a
 * long pause. One direction's requests or responses; embedded, zero is empty. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/flow/sequence.h"

/* No sender waits less for an acknowledgement before it sends again: a shorter pause is none of a time-out. */
#define RECOVERY_PAUSE_NS 1000000u

struct recovery_range {
    uint32_t from;
    uint32_t to;
    bool known;
};

struct recovery {
    struct recovery_range asked;  /* a NAK or the pause of a time-out tells that these are sent again */
    struct recovery_range likely; /* the sender went back there, or a NAK that may be meant for another flow */
    uint64_t came_late;           /* bit n: asked.from + n was taken for sent again when it came late */
    uint32_t reordered_frames;    /* and then it came once more: it had only been overtaken */
    uint64_t reordered_bytes;
    uint32_t late_unknown_frames; /* seen for the first time below the highest, cause unknown */
    uint32_t duplicate_frames;    /* came twice, one behind the other, with no reason for the sender to do so */
    uint32_t timeouts;            /* pauses as long as a time-out, after which the sender went back */
    uint64_t timeout_ns;          /* how long these took, together */
    uint32_t pauses;              /* as long, inside a message, after which it went on: what was resent is not known */
};

/* A frame that is out of order, or comes after a pause. */
struct recovery_frame {
    uint32_t psn;
    uint32_t highest; /* of those seen before */
    enum sequence_place place;
    uint64_t pause_ns; /* since the flow's data frame before */
    uint64_t usual_ns; /* mean distance of the flow's data frames */
    uint32_t payload_bytes;
    bool goes_on;       /* it is not the first of its message */
    bool at_sender;     /* seen at the sender's own port */
    bool answers_heard; /* answers to the flow's frames pass here too: a NAK would have been seen */
};

/* Whether the frame was sent again. */
bool recovery_judge(struct recovery *recovery, const struct recovery_frame *frame);

/* The receiver asks for all from this PSN on; `sure`: no other flow can be meant. */
void recovery_ask(struct recovery *recovery, uint32_t psn, uint32_t highest, bool sure);
