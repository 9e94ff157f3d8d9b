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
#include <string.h>

#include "nic/tally.h"
#include "wire/record.h"

#define WINDOW_NS_MIN   1000u
#define WINDOW_NS_MAX   1000000u
#define WINDOW_FLOW_MAX ((1u << 18) - 1)
#define WINDOW_PINS_MAX 64

/* What is counted at present. Zero: none open. 32 bytes, since every frame touches it. */
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

/* All that windows have counted. */
struct window_sums {
    uint64_t frames;
    uint64_t wire_bytes;
    uint64_t payload_bytes;
};

/*
 * A flow's open windows: the present one, and those of the coarser rings, which take from the sums what is theirs when
 * they are over. Embedded in it; zero: none open.
 */
struct window_track {
    struct window present;
    struct window_sums sums;
    struct window
        coarse[WINDOW_COARSE_TIERS]; /* counts: minus the sums at its beginning; frames sent again or marked */
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

/* Of a frame, a window that is over by it, on its way into the ring. */
struct window_over {
    struct window window;
    uint32_t flow;
};

/*
 * Where a ring takes frames one behind the other: the window that contained the last one, and those that are over, but
 * not stored. Few are stored as cheaply as many together. It is the ring's own.
 */
#define WINDOW_OVER_MAX 32
#define WINDOW_OPEN     ((uint64_t)1 << 63) /* beside the index, in a window's first word */
struct window_front {
    uint64_t start_ns;
    uint64_t word; /* the first one of a window that is open there */
    uint32_t window_ns;
    uint32_t over_count;
    uint8_t turn_shift; /* of the index: when what is left changes, a coarser window is over too */
    struct window_over over[WINDOW_OVER_MAX];
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
 * What is counted in the ring is from now on counted in the coarser one too, whose windows are a power of two times as
 * long: at most WINDOW_COARSE_TIERS, the one with shorter windows first. The coarser ring must outlive it.
 */
void window_ring_add_coarser(struct window_ring *ring, struct window_ring *coarser);

/* While set, the first coarser ring is passed over: it holds nothing then, and afterwards what comes from `now_ns` on.
 */
void window_ring_pass_over(struct window_ring *ring, bool is_passed_over, uint64_t now_ns);
bool window_ring_passes_over(const struct window_ring *ring);

uint32_t window_ring_window_ns(const struct window_ring *ring);

/* Counts a frame in the flow's window; stores the one before when the frame lies in another. */
void window_note(struct window_ring *ring, struct window_track *track, uint32_t flow, const struct window_frame *frame);

/*
 * The same for many frames that are not sent again and not marked: window_front_add for each, and within
 * WINDOW_OVER_MAX of them window_ring_store; before that nothing else is to be done with the ring or the tracks.
 */
struct window_front *window_ring_front(struct window_ring *ring);
void window_ring_store(struct window_ring *ring);

/* The window of this time becomes that of the front. */
void window_front_move(struct window_front *front, uint64_t at_ns);

/* A window's index and whether it is open, to be compared at once. */
static inline uint64_t window_word(const struct window *window)
{
    uint64_t word;

    memcpy(&word, window, sizeof word);
    return word;
}

/* The coarser windows that are over by a frame in another window, and those that it begins. */
void window_front_turn(struct window_front *front, struct window_track *track, uint32_t flow, uint32_t offset_ns);

static inline void window_front_add(struct window_front *front, struct window_track *track, uint32_t flow,
                                    uint64_t at_ns, uint32_t wire_bytes, uint32_t payload_bytes)
{
    struct window *window = &track->present;
    uint64_t word = window_word(window);

    if (at_ns - front->start_ns >= front->window_ns)
        window_front_move(front, at_ns);
    uint32_t offset_ns = (uint32_t)(at_ns - front->start_ns);
    if (word == front->word) {
        window->last_offset_ns = offset_ns > window->last_offset_ns ? offset_ns : window->last_offset_ns;
        window->frames++;
        window->wire_bytes += wire_bytes;
        window->payload_bytes += payload_bytes;
    } else {
        if (window->open)
            front->over[front->over_count++] = (struct window_over){.window = *window, .flow = flow};
        if ((word ^ front->word) >> front->turn_shift != 0)
            window_front_turn(front, track, flow, offset_ns);
        memcpy(window, &front->word, sizeof front->word);
        window->first_offset_ns = offset_ns;
        window->last_offset_ns = offset_ns;
        window->frames = 1;
        window->wire_bytes = wire_bytes;
        window->payload_bytes = payload_bytes;
        window->retransmitted_frames = 0;
        window->marked_frames = 0;
    }
    track->sums.frames++;
    track->sums.wire_bytes += wire_bytes;
    track->sums.payload_bytes += payload_bytes;
}

/* Stores the flow's open window, if it has one. */
void window_close(struct window_ring *ring, struct window_track *track, uint32_t flow);

/* Stores the flow's open windows of the coarser rings that are over at `now_ns`. */
void window_close_coarse(struct window_ring *ring, struct window_track *track, uint32_t flow, uint64_t now_ns);

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
