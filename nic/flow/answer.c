/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an AETH's syndrome says. Source: InfiniBand Architecture Specification volume 1, section 9.7.5.2.8: the NAK
 * codes, and how long each code of the RNR NAK timer is.
 */
#include "nic/flow/answer.h"

#include <assert.h>

static_assert(NAK_RESERVED + 1 == NAK_CODES_COUNT, "a place for each NAK code");

#define CODE_BITS 0x1fu

static const enum tally tallies_of[NAK_CODES_COUNT] = {
#define NAK(name, number, tally) [number] = (tally),
#include "nic/flow/nak.def"
#undef NAK
};

/* By timer code. */
static const uint32_t rnr_waits_10us[CODE_BITS + 1] = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static void note_rnr_nak(struct answers *answers, uint8_t syndrome)
{
    answers->rnr_naks++;
    answers->rnr_last_ns = rnr_waits_10us[syndrome & CODE_BITS] * 10000u;
    answers->rnr_wait_ns += answers->rnr_last_ns;
}

static void note_nak(struct answers *answers, uint8_t syndrome, struct tallies *tallies)
{
    unsigned code = syndrome & CODE_BITS;

    if (code > NAK_RESERVED)
        code = NAK_RESERVED;
    answers->naks++;
    answers->naks_by_code[code]++;
    tally_add(tallies, tallies_of[code], 1);
}

void answer_note(struct answers *answers, const struct frame *frame, struct tallies *tallies)
{
    tally_add(tallies, TALLY_ANSWERS, 1);
    switch (frame->acknowledgement) {
    case FRAME_ACK:
        answers->acks++;
        break;
    case FRAME_RNR_NAK:
        note_rnr_nak(answers, frame->syndrome);
        break;
    case FRAME_NAK:
        note_nak(answers, frame->syndrome, tallies);
        break;
    default:
        answers->cnps++;
    }
}

uint64_t answer_count(const struct answers *answers)
{
    return (uint64_t)answers->acks + answers->naks + answers->rnr_naks + answers->cnps;
}
