/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of windows. It is cut into blocks; an entry is one 16-byte unit, or three of them when a value is too large
 * for it. Invariants: a block's entries are contiguous and never split; block numbers only rise, block b lies at
 * b % blocks_count; every window given up has an index below held_from.
 */
#include "nic/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_UNITS     4096u
#define BLOCKS_MIN      4u
#define LARGE_UNITS     3u
#define INDEX_BITS      14
#define OFFSET_BITS     20
#define FRAMES_BITS     11
#define PAYLOAD_BITS    22
#define OVERHEAD_BITS   18
#define FLOW_BITS       18
#define INDEX_SLACK     ((uint64_t)1 << (INDEX_BITS - 1))
#define LOW_BITS(count) (((uint64_t)1 << (count)) - 1)

/* One unit: low = flow, index - base, first offset, frames, large; high = last offset, payload, overhead. */
struct unit {
    uint64_t low;
    uint64_t high;
};

struct block {
    uint64_t number; /* which block of all times lies here */
    uint64_t base;   /* entries say index - base */
    uint64_t index_min;
    uint64_t index_max;
    uint32_t units_count;
    uint32_t entries_count;
};

struct window_ring {
    uint32_t window_ns;
    uint32_t blocks_count;
    uint64_t held_from;
    uint64_t present_start_ns; /* the window that contained the last frame, to save a division */
    uint64_t present_index;
    struct block *present;
    struct tallies *tallies;
    struct block *blocks;
    struct unit *units;
};

static struct unit *units_of(const struct window_ring *ring, const struct block *block)
{
    return ring->units + (size_t)(block - ring->blocks) * BLOCK_UNITS;
}

static void begin_block(struct window_ring *ring, uint64_t number, uint64_t index)
{
    struct block *block = &ring->blocks[number % ring->blocks_count];

    if (block->entries_count != 0) {
        tally_add(ring->tallies, TALLY_WINDOWS_OVERWRITTEN, block->entries_count);
        if (block->index_max >= ring->held_from)
            ring->held_from = block->index_max + 1;
    }
    *block = (struct block){
        .number = number, .base = index < INDEX_SLACK ? 0 : index - INDEX_SLACK, .index_min = UINT64_MAX};
    ring->present = block;
}

int window_ring_create(struct window_ring **ring, uint32_t window_ns, size_t memory_bytes, struct tallies *tallies)
{
    size_t block_bytes = sizeof(struct block) + BLOCK_UNITS * sizeof(struct unit);
    size_t blocks_count = memory_bytes / block_bytes;

    if (window_ns < WINDOW_NS_MIN || window_ns > WINDOW_NS_MAX || blocks_count < BLOCKS_MIN ||
        blocks_count > UINT32_MAX)
        return -EINVAL;
    struct window_ring *made = calloc(1, sizeof *made);
    if (made == NULL)
        return -ENOMEM;
    made->window_ns = window_ns;
    made->blocks_count = (uint32_t)blocks_count;
    made->tallies = tallies;
    made->blocks = calloc(blocks_count, sizeof *made->blocks);
    made->units = calloc(blocks_count, BLOCK_UNITS * sizeof *made->units);
    if (made->blocks == NULL || made->units == NULL) {
        window_ring_destroy(&made);
        return -ENOMEM;
    }
    begin_block(made, 0, 0);
    *ring = made;
    return 0;
}

void window_ring_destroy(struct window_ring **ring)
{
    if (*ring == NULL)
        return;
    free((*ring)->blocks);
    free((*ring)->units);
    free(*ring);
    *ring = NULL;
}

uint32_t window_ring_window_ns(const struct window_ring *ring)
{
    return ring->window_ns;
}

static bool is_small(const struct window *window, const struct block *block)
{
    return window->index >= block->base && window->index - block->base <= LOW_BITS(INDEX_BITS) &&
           window->frames <= LOW_BITS(FRAMES_BITS) && window->payload_bytes <= LOW_BITS(PAYLOAD_BITS) &&
           window->wire_bytes >= window->payload_bytes &&
           window->wire_bytes - window->payload_bytes <= LOW_BITS(OVERHEAD_BITS) && window->retransmitted_frames == 0 &&
           window->marked_frames == 0;
}

static struct unit pack_small(const struct window *window, uint32_t flow, uint64_t base)
{
    struct unit unit = {.low = flow, .high = window->last_offset_ns};

    unit.low |= (window->index - base) << FLOW_BITS;
    unit.low |= (uint64_t)window->first_offset_ns << (FLOW_BITS + INDEX_BITS);
    unit.low |= (uint64_t)window->frames << (FLOW_BITS + INDEX_BITS + OFFSET_BITS);
    unit.high |= (uint64_t)window->payload_bytes << OFFSET_BITS;
    unit.high |= (uint64_t)(window->wire_bytes - window->payload_bytes) << (OFFSET_BITS + PAYLOAD_BITS);
    return unit;
}

#define LARGE_FLAG ((uint64_t)1 << 63)

static void pack_large(const struct window *window, uint32_t flow, struct unit units[LARGE_UNITS])
{
    units[0].low = LARGE_FLAG | flow | (uint64_t)window->first_offset_ns << (FLOW_BITS + INDEX_BITS);
    units[0].high = window->last_offset_ns | (uint64_t)window->payload_bytes << 32;
    units[1].low = window->index;
    units[1].high = window->frames | (uint64_t)window->wire_bytes << 32;
    units[2].low = window->retransmitted_frames | (uint64_t)window->marked_frames << 16;
    units[2].high = 0;
}

static unsigned unpack(const struct unit *units, uint64_t base, struct window *window, uint32_t *flow)
{
    bool is_large = (units[0].low & LARGE_FLAG) != 0;

    *flow = (uint32_t)(units[0].low & LOW_BITS(FLOW_BITS));
    *window = (struct window){
        .first_offset_ns = (uint32_t)(units[0].low >> (FLOW_BITS + INDEX_BITS) & LOW_BITS(OFFSET_BITS)),
        .last_offset_ns = (uint32_t)(units[0].high & LOW_BITS(OFFSET_BITS)),
    };
    if (is_large) {
        window->payload_bytes = (uint32_t)(units[0].high >> 32);
        window->index = units[1].low;
        window->frames = (uint32_t)units[1].high;
        window->wire_bytes = (uint32_t)(units[1].high >> 32);
        window->retransmitted_frames = (uint16_t)units[2].low;
        window->marked_frames = (uint16_t)(units[2].low >> 16);
        return LARGE_UNITS;
    }
    window->index = base + (units[0].low >> FLOW_BITS & LOW_BITS(INDEX_BITS));
    window->frames = (uint32_t)(units[0].low >> (FLOW_BITS + INDEX_BITS + OFFSET_BITS) & LOW_BITS(FRAMES_BITS));
    window->payload_bytes = (uint32_t)(units[0].high >> OFFSET_BITS & LOW_BITS(PAYLOAD_BITS));
    window->wire_bytes = window->payload_bytes + (uint32_t)(units[0].high >> (OFFSET_BITS + PAYLOAD_BITS));
    return 1;
}

void window_close(struct window_ring *ring, struct window *window, uint32_t flow)
{
    struct block *block = ring->present;

    if (!window->open)
        return;
    if (block->units_count + LARGE_UNITS > BLOCK_UNITS || window->index > block->base + LOW_BITS(INDEX_BITS)) {
        begin_block(ring, block->entries_count == 0 ? block->number : block->number + 1, window->index);
        block = ring->present;
    }
    struct unit *units = units_of(ring, block) + block->units_count;
    if (is_small(window, block)) {
        units[0] = pack_small(window, flow, block->base);
        block->units_count += 1;
    } else {
        pack_large(window, flow, units);
        block->units_count += LARGE_UNITS;
    }
    block->entries_count++;
    block->index_min = window->index < block->index_min ? window->index : block->index_min;
    block->index_max = window->index > block->index_max ? window->index : block->index_max;
    tally_add(ring->tallies, TALLY_WINDOWS, 1);
    window->open = false;
}

static void note_present(struct window_ring *ring, uint64_t at_ns)
{
    if (at_ns - ring->present_start_ns < ring->window_ns)
        return;
    ring->present_index = at_ns / ring->window_ns;
    ring->present_start_ns = ring->present_index * ring->window_ns;
}

void window_note(struct window_ring *ring, struct window *window, uint32_t flow, const struct window_frame *frame)
{
    note_present(ring, frame->at_ns);
    uint32_t offset_ns = (uint32_t)(frame->at_ns - ring->present_start_ns);
    if (!window->open || window->index != ring->present_index) {
        window_close(ring, window, flow);
        *window = (struct window){
            .index = ring->present_index, .first_offset_ns = offset_ns, .last_offset_ns = offset_ns, .open = true};
    }
    if (offset_ns > window->last_offset_ns)
        window->last_offset_ns = offset_ns;
    if (!frame->repeated) {
        window->frames++;
        window->wire_bytes += frame->wire_bytes;
        window->payload_bytes += frame->payload_bytes;
    }
    if (frame->retransmitted && window->retransmitted_frames != UINT16_MAX)
        window->retransmitted_frames++;
    if (frame->marked && window->marked_frames != UINT16_MAX)
        window->marked_frames++;
}

void window_record(const struct window *window, uint32_t flow, struct record_window *record)
{
    *record = (struct record_window){
        .header.source = flow,
        .index = window->index,
        .first_offset_ns = window->first_offset_ns,
        .last_offset_ns = window->last_offset_ns,
        .frames = window->frames,
        .wire_bytes = window->wire_bytes,
        .payload_bytes = window->payload_bytes,
        .retransmitted_frames = window->retransmitted_frames,
        .marked_frames = window->marked_frames,
    };
}

static uint64_t oldest_block(const struct window_ring *ring)
{
    uint64_t newest = ring->present->number;

    return newest < ring->blocks_count ? 0 : newest - ring->blocks_count + 1;
}

void window_walk_begin(const struct window_ring *ring, struct window_walk *walk, uint64_t from_ns, uint64_t to_ns,
                       uint32_t flow)
{
    *walk = (struct window_walk){
        .from_index = from_ns / ring->window_ns,
        .to_index = to_ns == 0 ? 0 : (to_ns - 1) / ring->window_ns,
        .flow = flow,
        .block = oldest_block(ring),
        .end_block = ring->present->number,
        .end_entry = ring->present->units_count,
    };
}

static bool block_matters(const struct block *block, const struct window_walk *walk)
{
    return block->entries_count != 0 && block->index_min <= walk->to_index && block->index_max >= walk->from_index;
}

/* Goes on to the next block that may hold something; false at the end of the walk. */
static bool walk_settle(const struct window_ring *ring, struct window_walk *walk)
{
    for (;;) {
        if (walk->block < oldest_block(ring)) {
            walk->block = oldest_block(ring);
            walk->entry = 0;
        }
        const struct block *block = &ring->blocks[walk->block % ring->blocks_count];
        uint32_t end = walk->block == walk->end_block ? walk->end_entry : block->units_count;
        if (walk->block > walk->end_block)
            return false;
        if (walk->entry < end && block_matters(block, walk))
            return true;
        walk->block++;
        walk->entry = 0;
    }
}

size_t window_walk_next(const struct window_ring *ring, struct window_walk *walk, struct record_window *records,
                        size_t capacity, size_t budget, bool *done)
{
    size_t count = 0;

    *done = false;
    for (size_t looked_at = 0; count < capacity && looked_at < budget; looked_at++) {
        if (!walk_settle(ring, walk)) {
            *done = true;
            break;
        }
        const struct block *block = &ring->blocks[walk->block % ring->blocks_count];
        struct window window;
        uint32_t flow;
        walk->entry += unpack(units_of(ring, block) + walk->entry, block->base, &window, &flow);
        if (window.index >= walk->from_index && window.index <= walk->to_index &&
            (walk->flow == 0 || walk->flow == flow))
            window_record(&window, flow, &records[count++]);
    }
    return count;
}

uint64_t window_ring_held_from(const struct window_ring *ring)
{
    return ring->held_from;
}
