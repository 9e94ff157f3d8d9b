/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which packet sequence numbers of one direction have been seen: 24-bit serial arithmetic, an exact set of the last
 * SEQUENCE_PSNS below the highest one. Embedded, zero is empty. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_PSNS     4096
#define SEQUENCE_PSN_MASK 0xffffffu

struct sequence {
    uint32_t highest;
    uint32_t run; /* all from here to the highest have been seen */
    bool begun;
    uint64_t seen[SEQUENCE_PSNS / 64]; /* bit PSN % SEQUENCE_PSNS; of those before the run */
} __attribute__((aligned(16)));        /* what each frame touches lies in one line */

enum sequence_place {
    SEQUENCE_NEXT = 0, /* above the highest: the new highest */
    SEQUENCE_LATE,     /* below the highest, seen for the first time */
    SEQUENCE_REPEATED, /* seen before */
    SEQUENCE_FAR,      /* so far below the highest that it is no longer known */
};

/* a - b in serial arithmetic: -2^23 .. 2^23 - 1. */
static inline int32_t sequence_distance(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

/* What sequence_add does with all but most. */
enum sequence_place sequence_add_other(struct sequence *sequence, uint32_t psn);

/* Adds a PSN and says where it fell. SEQUENCE_FAR changes nothing. */
static inline enum sequence_place sequence_add(struct sequence *sequence, uint32_t psn)
{
    if (psn != ((sequence->highest + 1) & SEQUENCE_PSN_MASK) || psn % SEQUENCE_PSNS == 0 || !sequence->begun)
        return sequence_add_other(sequence, psn);
    sequence->highest = psn;
    return SEQUENCE_NEXT;
}

/* Whether the PSN is one of the last SEQUENCE_PSNS up to the highest, and has been seen. */
bool sequence_holds(const struct sequence *sequence, uint32_t psn);

/* Whether the PSN lies below the highest and has not been seen. */
bool sequence_misses(const struct sequence *sequence, uint32_t psn);
