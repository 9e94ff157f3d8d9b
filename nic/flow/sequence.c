/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set of PSNs seen: the run that ends at the highest, which frames in order only lengthen, and a ring of bits for
 * what lies before it. Serial arithmetic as in RFC 1982 with 24 bits.
 * Invariant: once begun, for every p in (highest - SEQUENCE_PSNS, highest], p was seen when it lies in the run, else
 * when bit p % SEQUENCE_PSNS is set. At each multiple of SEQUENCE_PSNS the run is shortened to what
 * matters, so that it stays far shorter than half of all PSNs.
 */
#include "nic/flow/sequence.h"

#include <string.h>

static uint64_t *word_of(struct sequence *sequence, uint32_t psn)
{
    return &sequence->seen[psn % SEQUENCE_PSNS / 64];
}

static uint64_t bit_of(uint32_t psn)
{
    return (uint64_t)1 << (psn % 64);
}

static bool is_seen(const struct sequence *sequence, uint32_t psn)
{
    return sequence_distance(psn, sequence->run) >= 0 || (sequence->seen[psn % SEQUENCE_PSNS / 64] & bit_of(psn)) != 0;
}

/* Writes the run down as bits, since a new one begins. */
static void end_run(struct sequence *sequence)
{
    int32_t length = sequence_distance(sequence->highest, sequence->run) + 1;

    if (length >= SEQUENCE_PSNS) {
        memset(sequence->seen, 0xff, sizeof sequence->seen);
        return;
    }
    for (uint32_t psn = sequence->run; length > 0; psn++, length--)
        *word_of(sequence, psn) |= bit_of(psn);
}

/* The PSN after the highest. */
static void lengthen_run(struct sequence *sequence, uint32_t psn)
{
    sequence->highest = psn;
    if (sequence_distance(psn, sequence->run) >= SEQUENCE_PSNS)
        sequence->run = (psn - (SEQUENCE_PSNS - 1)) & SEQUENCE_PSN_MASK;
}

static void jump(struct sequence *sequence, uint32_t psn, int32_t distance)
{
    end_run(sequence);
    if (distance >= SEQUENCE_PSNS)
        memset(sequence->seen, 0, sizeof sequence->seen);
    else
        for (uint32_t skipped = sequence->highest + 1; skipped != sequence->highest + (uint32_t)distance; skipped++)
            *word_of(sequence, skipped) &= ~bit_of(skipped);
    sequence->highest = psn;
    sequence->run = psn;
}

enum sequence_place sequence_add_other(struct sequence *sequence, uint32_t psn)
{
    int32_t distance = sequence_distance(psn, sequence->highest);

    if (!sequence->begun) {
        sequence->begun = true;
        sequence->highest = psn;
        sequence->run = psn;
        return SEQUENCE_NEXT;
    }
    if (distance == 1) {
        lengthen_run(sequence, psn);
        return SEQUENCE_NEXT;
    }
    if (distance > 0) {
        jump(sequence, psn, distance);
        return SEQUENCE_NEXT;
    }
    if (distance <= -SEQUENCE_PSNS)
        return SEQUENCE_FAR;
    if (is_seen(sequence, psn))
        return SEQUENCE_REPEATED;
    *word_of(sequence, psn) |= bit_of(psn);
    return SEQUENCE_LATE;
}

bool sequence_misses(const struct sequence *sequence, uint32_t psn)
{
    int32_t distance = sequence_distance(psn, sequence->highest);

    return sequence->begun && distance < 0 && distance > -SEQUENCE_PSNS && !is_seen(sequence, psn);
}

bool sequence_holds(const struct sequence *sequence, uint32_t psn)
{
    int32_t distance = sequence_distance(psn, sequence->highest);

    return sequence->begun && distance <= 0 && distance > -SEQUENCE_PSNS && !sequence_misses(sequence, psn);
}
