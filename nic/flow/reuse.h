/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells a frame that was sent again from one of a new connection that was given an old one's QPN and PSNs: a message
 * that is sent again goes to the same remote memory. Keeps the last REUSE_STARTS messages' PSN and a fingerprint of
 * where they went. Embedded, zero is empty. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/frame/frame.h"

#define REUSE_STARTS 256 /* more messages than a sender goes back over */

struct reuse {
    uint32_t starts[REUSE_STARTS]; /* PSN, fingerprint << 24 */
    uint32_t count;                /* of all messages noted */
};

/* A message's first frame, seen for the first time. Frames without a remote address are passed over. */
void reuse_note(struct reuse *reuse, const struct frame *frame);

/* Whether this first frame, whose PSN was seen before, cannot be the same message again. */
bool reuse_is_new_connection(const struct reuse *reuse, const struct frame *frame);
