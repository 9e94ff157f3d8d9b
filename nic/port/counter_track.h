/* SPDX-License-Identifier: BSD-2-Clause */
/* One foreign counter as it is read again and again: what it counted since we began, through wraps and resets. Any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct counter_track {
    bool is_known;
    uint64_t raw;
    uint64_t total; /* since the first reading */
};

/*
 * Takes a reading into account; `bits` is where it goes round (32 or 64). True when it rose. A fall that is no wrap is
 * a reset: what it shows since is counted, what it had counted unseen before that is not, and *is_reset is set.
 */
bool counter_track_advance(struct counter_track *track, uint64_t raw, unsigned bits, bool *is_reset);

/* A number as sysfs writes it ("4096", "4: ACTIVE", "0x10"). False for anything else, as "N/A (no PMA)" or nothing. */
bool counter_read_text(const char *text, uint64_t *value);
