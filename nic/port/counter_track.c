/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: the total never falls, and a counter of 32 bits that is read at least once a wrap loses nothing.
 */
#include "nic/port/counter_track.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define HALF_OF_32 (1ull << 31)

bool counter_track_advance(struct counter_track *track, uint64_t raw, unsigned bits, bool *is_reset)
{
    uint64_t step = raw - track->raw;

    *is_reset = false;
    if (!track->is_known) {
        *track = (struct counter_track){.is_known = true, .raw = raw};
        return false;
    }
    if (raw < track->raw && bits == 32 && track->raw >= HALF_OF_32 && track->raw < 2 * HALF_OF_32 && raw < HALF_OF_32) {
        step = raw + 2 * HALF_OF_32 - track->raw;
    } else if (raw < track->raw) {
        *is_reset = true;
        step = raw;
    }
    track->raw = raw;
    track->total += step;
    return step != 0;
}

bool counter_read_text(const char *text, uint64_t *value)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 0);
    if (errno != 0 || (*end != '\0' && *end != ':' && !isspace((unsigned char)*end)))
        return false;
    *value = number;
    return true;
}
