/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The acknowledgements and congestion notifications that travel in a flow, by what they say. They concern the other
 * direction's flow (pairing.h). Embedded, zero is empty. One thread.
 */
#pragma once

#include <stdint.h>

#include "nic/frame/frame.h"
#include "nic/tally.h"
#include "wire/record.h"

enum nak_code {
#define NAK(name, number, tally) NAK_##name = (number),
#include "nic/flow/nak.def"
#undef NAK
};

struct answers {
    uint32_t acks;
    uint32_t naks;
    uint32_t rnr_naks;
    uint32_t cnps;
    uint32_t naks_by_code[NAK_CODES_COUNT];
    uint32_t rnr_last_ns; /* how long the last RNR NAK told the sender to wait */
    uint64_t rnr_wait_ns; /* all of them */
};

/* Counts an answer: a frame with frame.acknowledgement, or a congestion notification. */
void answer_note(struct answers *answers, const struct frame *frame, struct tallies *tallies);

uint64_t answer_count(const struct answers *answers);
