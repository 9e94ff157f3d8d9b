/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set of PSNs seen, a ring of bits that ends at the highest. Serial arithmetic as in RFC 1982 with 24 bits.
 * Invariant: once begun, bit p % SEQUENCE_PSNS tells of p for every p in (highest - SEQUENCE_PSNS, highest].
 */
#include "nic/sequence.h"

#include <string.h>

static uint64_t *word_of(struct sequence *sequence, uint32_t psn)
{
    return &sequence->seen[psn % SEQUENCE_PSNS / 64];
}

static uint64_t bit_of(uint32_t psn)
{
    return (uint64_t)1 << (psn % 64);
}

static void advance(struct sequence *sequence, uint32_t psn, int32_t distance)
{
    if (distance >= SEQUENCE_PSNS)
        memset(sequence->seen, 0, sizeof sequence->seen);
    else
        for (uint32_t skipped = sequence->highest + 1; skipped != sequence->highest + (uint32_t)distance; skipped++)
            *word_of(sequence, skipped) &= ~bit_of(skipped);
    sequence->highest = psn;
    *word_of(sequence, psn) |= bit_of(psn);
}

enum sequence_place sequence_add(struct sequence *sequence, uint32_t psn)
{
    int32_t distance = sequence_distance(psn, sequence->highest);

    if (!sequence->begun) {
        sequence->begun = true;
        sequence->highest = psn;
        *word_of(sequence, psn) = bit_of(psn);
        return SEQUENCE_NEXT;
    }
    if (distance > 0) {
        advance(sequence, psn, distance);
        return SEQUENCE_NEXT;
    }
    if (distance <= -SEQUENCE_PSNS)
        return SEQUENCE_FAR;
    if ((*word_of(sequence, psn) & bit_of(psn)) != 0)
        return SEQUENCE_REPEATED;
    *word_of(sequence, psn) |= bit_of(psn);
    return SEQUENCE_LATE;
}

bool sequence_misses(const struct sequence *sequence, uint32_t psn)
{
    int32_t distance = sequence_distance(psn, sequence->highest);

    if (!sequence->begun || distance >= 0 || distance <= -SEQUENCE_PSNS)
        return false;
    return (sequence->seen[psn % SEQUENCE_PSNS / 64] & bit_of(psn)) == 0;
}

bool sequence_holds(const struct sequence *sequence, uint32_t psn)
{
    int32_t distance = sequence_distance(psn, sequence->highest);

    return sequence->begun && distance <= 0 && distance > -SEQUENCE_PSNS && !sequence_misses(sequence, psn);
}
