/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows: exact counts of a flow's data frames in [k W, (k + 1) W) of the emitter's clock. A flow carries its open
 * window itself; a window that is over goes into one ring of fixed memory, in 4 to 7 bytes where the traffic is steady,
 * whose oldest block is given up for newer ones (counted). Empty windows are not stored. An interval can be pinned: its
 * blocks are then kept when the ring comes round, until other pins need the room. All on the measuring thread; nothing
 * allocates after create.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/tally.h"
#include "wire/record.h"

#define WINDOW_NS_MIN   1000u
#define WINDOW_NS_MAX   1000000u
#define WINDOW_FLOW_MAX ((1u << 18) - 1)
#define WINDOW_PINS_MAX 64

/* What a flow counts at present; embedded in it. Zero: none open. 32 bytes, since every frame touches it. */
struct window {
    uint64_t index : 63;
    uint64_t open : 1;
    uint32_t first_offset_ns;
    uint32_t last_offset_ns;
    uint32_t frames; /* data frames seen for the first time, and their bytes */
    uint32_t wire_bytes;
    uint32_t payload_bytes;
    uint16_t retransmitted_frames; /* sent again; those seen for the first time are in `frames` too */
    uint16_t marked_frames;        /* ECN-CE, of all above */
};

#define WINDOW_COARSE_TIERS 2

/* The flow's open windows of the coarser rings; embedded in it. Zero: none open. */
struct window_coarse {
    struct window windows[WINDOW_COARSE_TIERS];
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

/* Which counter a ring's stored, and given up windows go to. */
struct window_tallies {
    struct tallies *tallies;
    enum tally stored;
    enum tally overwritten;
};

/*
 * `memory_bytes` is all that the ring uses, of which `pinned_bytes` can hold what was pinned. Windows of up to
 * 1000 * WINDOW_NS_MAX. -EINVAL when it is too small to be of use, -ENOMEM.
 */
int window_ring_create(struct window_ring **ring, uint32_t window_ns, size_t memory_bytes, size_t pinned_bytes,
                       const struct window_tallies *tallies);
void window_ring_destroy(struct window_ring **ring);

/* Has all its memory taken now. */
void window_ring_prepare(struct window_ring *ring);

/*
 * What is stored in the ring is from now on added up in the coarser one too, and so on; its windows are a power of
 * two times as long. The coarser ring must outlive it.
 */
void window_ring_set_coarser(struct window_ring *ring, struct window_ring *coarser);

/*
 * While set, the ring behind this one stores nothing, and is passed over for the one behind it; it holds nothing then,
 * and afterwards what comes from `now_ns` on.
 */
void window_ring_pass_over(struct window_ring *ring, bool is_passed_over, uint64_t now_ns);
bool window_ring_passes_over(const struct window_ring *ring);

uint32_t window_ring_window_ns(const struct window_ring *ring);

/*
 * Counts a frame in the flow's window; stores the one before when the frame lies in another. `coarse` is the flow's,
 * and may be NULL when no coarser ring was set.
 */
void window_note(struct window_ring *ring, struct window *window, struct window_coarse *coarse, uint32_t flow,
                 const struct window_frame *frame);

/* The same for a frame that is not sent again and not marked. */
void window_add(struct window_ring *ring, struct window *window, struct window_coarse *coarse, uint32_t flow,
                uint64_t at_ns, uint32_t wire_bytes, uint32_t payload_bytes);

/* Stores the flow's open window, if it has one. */
void window_close(struct window_ring *ring, struct window *window, struct window_coarse *coarse, uint32_t flow);

/* Stores the flow's open windows of the coarser rings that are over at `now_ns`. */
void window_close_coarse(struct window_ring *ring, struct window_coarse *coarse, uint32_t flow, uint64_t now_ns);

/* Fills a record of a window (but for the emitter's part of the header). */
void window_record(const struct window *window, uint32_t flow, struct record_window *record);
void window_record_coarse(const struct record_window *window, uint32_t window_ns, struct record_coarse_window *record);

/*
 * Keeps what is stored of the interval. What is still open is not: close it before. False when the ring was given no
 * room for pins, or holds nothing of the interval.
 */
bool window_pin(struct window_ring *ring, uint64_t from_ns, uint64_t to_ns);

/*
 * Reading back: a walk over what is held, oldest first, that may be interleaved with window_note. Windows of one flow
 * come in the order in which they were stored.
 */
struct window_walk {
    uint64_t from_index; /* first and last window wanted */
    uint64_t to_index;
    uint32_t flow;  /* 0 = all */
    uint32_t entry; /* state: byte within the block */
    uint64_t block; /* state: number of the block, newest index met in it */
    uint64_t newest;
    uint64_t end_block; /* state: where the ring ended when the walk began */
    uint32_t end_entry;
    bool has_begun;
    bool has_gap;    /* some was given up before it was reached */
    bool has_pinned; /* some of it was read from a pin */
};

void window_walk_begin(const struct window_ring *ring, struct window_walk *walk, uint64_t from_ns, uint64_t to_ns,
                       uint32_t flow);

/* Up to `capacity` records; looks at no more than `budget` entries. Returns how many; *done when the walk is over. */
size_t window_walk_next(const struct window_ring *ring, struct window_walk *walk, struct record_window *records,
                        size_t capacity, size_t budget, bool *done);

/* Bytes that all windows so far have taken, and what there is room for; without what is pinned. */
uint64_t window_ring_bytes_stored(const struct window_ring *ring);
uint64_t window_ring_bytes_capacity(const struct window_ring *ring);

/* The first window of which nothing has been given up. */
uint64_t window_ring_held_from(const struct window_ring *ring);

/*
 * The part of an interval of which nothing has been given up: in the ring, or in one pin, whichever holds more of it.
 * False, and neither is set: none of it.
 */
bool window_ring_holds(const struct window_ring *ring, uint64_t *from_ns, uint64_t *to_ns);
