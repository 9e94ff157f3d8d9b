/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows: exact counts of a flow's data frames in [k W, (k + 1) W) of the emitter's clock. A flow carries its open
 * window itself; a window that is over goes into one ring of fixed memory, whose oldest block is given up for newer
 * ones (counted). Empty windows are not stored. All on the measuring thread; nothing allocates after create.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/tally.h"
#include "wire/record.h"

#define WINDOW_NS_MIN   1000u
#define WINDOW_NS_MAX   1000000u
#define WINDOW_FLOW_MAX ((1u << 18) - 1) /* flow numbers that an entry can hold */

/* What a flow counts at present; embedded in it. Zero: none open. */
struct window {
    uint64_t index;
    uint32_t first_offset_ns;
    uint32_t last_offset_ns;
    uint32_t frames; /* data frames seen for the first time, and their bytes */
    uint32_t wire_bytes;
    uint32_t payload_bytes;
    uint16_t retransmitted_frames; /* sent again; those seen for the first time are in `frames` too */
    uint16_t marked_frames;        /* ECN-CE, of all above */
    bool open;
};

/* One data frame, as a window counts it. */
struct window_frame {
    uint64_t at_ns;
    uint32_t wire_bytes;
    uint32_t payload_bytes;
    bool repeated;
    bool retransmitted;
    bool marked;
};

struct window_ring;

/* `memory_bytes` is all that the ring uses; -EINVAL when it is too small to be of use, -ENOMEM. */
int window_ring_create(struct window_ring **ring, uint32_t window_ns, size_t memory_bytes, struct tallies *tallies);
void window_ring_destroy(struct window_ring **ring);

uint32_t window_ring_window_ns(const struct window_ring *ring);

/* Counts a frame in the flow's window; stores the one before when the frame lies in another. */
void window_note(struct window_ring *ring, struct window *window, uint32_t flow, const struct window_frame *frame);

/* Stores the flow's open window, if it has one. */
void window_close(struct window_ring *ring, struct window *window, uint32_t flow);

/* Fills a record of a window (but for the emitter's part of the header). */
void window_record(const struct window *window, uint32_t flow, struct record_window *record);

/*
 * Reading back: a walk over what is held, oldest first, that may be interleaved with window_note. Windows of one flow
 * come in the order in which they were stored.
 */
struct window_walk {
    uint64_t from_index; /* first and last window wanted */
    uint64_t to_index;
    uint32_t flow;  /* 0 = all */
    uint64_t block; /* state: block number and entry within it */
    uint32_t entry;
    uint64_t end_block; /* state: where the ring ended when the walk began */
    uint32_t end_entry;
};

void window_walk_begin(const struct window_ring *ring, struct window_walk *walk, uint64_t from_ns, uint64_t to_ns,
                       uint32_t flow);

/* Up to `capacity` records; looks at no more than `budget` entries. Returns how many; *done when the walk is over. */
size_t window_walk_next(const struct window_ring *ring, struct window_walk *walk, struct record_window *records,
                        size_t capacity, size_t budget, bool *done);

/* The first window of which nothing has been given up. */
uint64_t window_ring_held_from(const struct window_ring *ring);
