/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of windows. It is cut into blocks; entries are written as window_code.h says, which takes fewer bytes than
 * columns of fixed width would, and are read block by block. A block that is pinned when the ring comes round to it
 * changes places with a spare one.
 * Invariants: block numbers only rise, a number's block is places[number % places_count], or one of the pinned ones;
 * an entry is never split; every window given up that no pin keeps has an index below held_from.
 */
#include "nic/window/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/window/pages.h"
#include "nic/window/window_code.h"

#define BLOCK_BYTES_MAX 65536u
#define BLOCK_BYTES_MIN 4096u
#define BLOCKS_WANTED   16u /* at least, where the memory allows */
#define BLOCKS_MIN      4u
#define HELD_NOTHING    (UINT64_MAX / WINDOW_NS_LIMIT)
#define WINDOW_NS_LIMIT (1000u * WINDOW_NS_MAX)

struct block {
    uint64_t number; /* which block of all times lies here */
    uint64_t base;   /* the newest index when it began */
    uint64_t newest; /* the newest index when it ended */
    uint64_t index_min;
    uint32_t bytes_used;
    uint32_t entries_count;
    struct window_code code;
};

struct pin {
    uint64_t from_index;
    uint64_t to_index;
    uint64_t from_block;
    uint64_t to_block;
};

/* A ring of longer windows. */
struct coarser {
    struct window_ring *ring;
    uint32_t mask; /* windows of this ring in one of that, minus 1 */
    uint8_t shift;
};

struct window_ring {
    struct window_front front; /* first: window_front_turn finds the ring by it */
    uint32_t window_ns;
    uint8_t *at; /* where the next entry goes, and from where on the block is full */
    uint8_t *full_at;
    struct block *present;
    struct window_code_met met;
    uint64_t held_from;
    uint64_t bytes_before; /* written to blocks before the present one */
    struct coarser coarser[WINDOW_COARSE_TIERS];
    unsigned coarser_count;
    unsigned passed_over; /* 1: the first of them */
    uint64_t resumed;     /* the first index of that when it was no longer */
    struct window_tallies tallies;
    uint32_t block_bytes;
    uint32_t blocks_count;
    uint32_t places_count;
    uint32_t spares_count;
    uint32_t pinned_count;
    unsigned pins_count;
    struct pin pins[WINDOW_PINS_MAX]; /* the oldest first */
    struct block *blocks;
    uint32_t *places; /* numbers of blocks in `blocks`: those of the ring */
    uint32_t *spares;
    uint32_t *pinned; /* by rising block number */
    uint8_t *memory;
};

static uint8_t *bytes_of(const struct window_ring *ring, const struct block *block)
{
    return ring->memory + (size_t)(block - ring->blocks) * ring->block_bytes;
}

static uint32_t bytes_used(const struct window_ring *ring, const struct block *block)
{
    return block == ring->present ? (uint32_t)(ring->at - bytes_of(ring, block)) : block->bytes_used;
}

static uint64_t newest_in(const struct window_ring *ring, const struct block *block)
{
    return block == ring->present ? block->code.newest : block->newest;
}

static uint64_t oldest_number(const struct window_ring *ring)
{
    uint64_t newest = ring->present->number;

    return newest < ring->places_count ? 0 : newest - ring->places_count + 1;
}

/* ---- pins ---- */

static bool is_pinned(const struct window_ring *ring, uint64_t number)
{
    for (unsigned i = 0; i < ring->pins_count; i++) {
        if (number >= ring->pins[i].from_block && number <= ring->pins[i].to_block)
            return true;
    }
    return false;
}

static void give_up(struct window_ring *ring, struct block *block)
{
    if (block->entries_count != 0)
        tally_add(ring->tallies.tallies, ring->tallies.overwritten, block->entries_count);
    block->entries_count = 0;
}

/* Gives up the oldest pin, and the blocks that no other pin keeps. */
static void unpin_oldest(struct window_ring *ring)
{
    uint32_t kept = 0;

    ring->pins_count--;
    memmove(ring->pins, ring->pins + 1, ring->pins_count * sizeof *ring->pins);
    tally_add(ring->tallies.tallies, TALLY_PINS_GIVEN_UP, 1);
    for (uint32_t i = 0; i < ring->pinned_count; i++) {
        struct block *block = &ring->blocks[ring->pinned[i]];
        if (is_pinned(ring, block->number)) {
            ring->pinned[kept++] = ring->pinned[i];
        } else {
            give_up(ring, block);
            ring->spares[ring->spares_count++] = ring->pinned[i];
        }
    }
    ring->pinned_count = kept;
}

/* Whether the block at this place was put among the pinned ones, and a spare one in its place. */
static bool keep_pinned(struct window_ring *ring, uint32_t *place)
{
    uint64_t number = ring->blocks[*place].number;

    while (is_pinned(ring, number) && ring->spares_count == 0)
        unpin_oldest(ring);
    if (!is_pinned(ring, number))
        return false;
    ring->pinned[ring->pinned_count++] = *place;
    *place = ring->spares[--ring->spares_count];
    return true;
}

/* The newest index of all that was stored before the block, plus 1. */
static uint64_t begins_at(const struct window_ring *ring, const struct block *block)
{
    return block->number == 0 || block->base < ring->held_from ? ring->held_from : block->base + 1;
}

bool window_pin(struct window_ring *ring, uint64_t from_ns, uint64_t to_ns)
{
    struct pin pin = {.from_index = from_ns / ring->window_ns, .to_index = to_ns / ring->window_ns};
    uint32_t room = ring->blocks_count - ring->places_count;
    bool is_found = false;

    for (uint64_t number = oldest_number(ring); number <= ring->present->number; number++) {
        const struct block *block = &ring->blocks[ring->places[number % ring->places_count]];
        if (block->entries_count == 0 || block->index_min > pin.to_index || newest_in(ring, block) < pin.from_index)
            continue;
        if (!is_found)
            pin.from_block = number;
        pin.to_block = number;
        is_found = true;
    }
    if (!is_found || room == 0)
        return false;
    if (pin.to_block - pin.from_block >= room) {
        pin.from_block = pin.to_block - room + 1;
        pin.from_index = begins_at(ring, &ring->blocks[ring->places[pin.from_block % ring->places_count]]);
    }
    if (pin.from_index < ring->held_from)
        pin.from_index = ring->held_from;
    if (ring->pins_count == WINDOW_PINS_MAX)
        unpin_oldest(ring);
    ring->pins[ring->pins_count++] = pin;
    tally_add(ring->tallies.tallies, TALLY_PINS, 1);
    return true;
}

/* ---- writing ---- */

static void begin_block(struct window_ring *ring, uint64_t number)
{
    uint32_t *place = &ring->places[number % ring->places_count];
    struct block *block = &ring->blocks[*place];
    struct window_code code = ring->present->code;

    if (block->entries_count != 0) {
        if (block->newest >= ring->held_from)
            ring->held_from = block->newest + 1;
        if (!keep_pinned(ring, place))
            give_up(ring, block);
        block = &ring->blocks[*place];
    }
    window_code_adapt(&code, &ring->met, ring->present->entries_count);
    *block = (struct block){.number = number, .base = code.newest, .index_min = UINT64_MAX, .code = code};
    ring->met = (struct window_code_met){0};
    ring->present = block;
    ring->at = bytes_of(ring, block);
    ring->full_at = ring->at + ring->block_bytes - 2 * WINDOW_CODE_BYTES_MAX;
}

static void begin_next_block(struct window_ring *ring)
{
    struct block *block = ring->present;

    block->bytes_used = bytes_used(ring, block);
    block->newest = block->code.newest;
    ring->bytes_before += block->bytes_used;
    begin_block(ring, block->number + 1);
}

static int allocate(struct window_ring *ring)
{
    uint32_t count = ring->blocks_count;

    ring->blocks = calloc(count, sizeof *ring->blocks);
    ring->places = calloc(ring->places_count, sizeof *ring->places);
    ring->spares = calloc(count, sizeof *ring->spares);
    ring->pinned = calloc(count, sizeof *ring->pinned);
    ring->memory = pages_create((size_t)count * ring->block_bytes);
    if (ring->blocks == NULL || ring->places == NULL || ring->spares == NULL || ring->pinned == NULL ||
        ring->memory == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < ring->places_count; i++)
        ring->places[i] = i;
    for (uint32_t i = ring->places_count; i < count; i++)
        ring->spares[ring->spares_count++] = i;
    return 0;
}

static size_t choose_block_bytes(size_t memory_bytes)
{
    size_t bytes = BLOCK_BYTES_MAX;

    while (bytes > BLOCK_BYTES_MIN && memory_bytes / bytes < BLOCKS_WANTED)
        bytes /= 2;
    return bytes;
}

int window_ring_create(struct window_ring **ring, uint32_t window_ns, size_t memory_bytes, size_t pinned_bytes,
                       const struct window_tallies *tallies)
{
    size_t data_bytes = choose_block_bytes(memory_bytes);
    size_t block_bytes = sizeof(struct block) + 3 * sizeof(uint32_t) + data_bytes;
    size_t blocks_count = memory_bytes / block_bytes, spares_count = pinned_bytes / block_bytes;

    if (window_ns < WINDOW_NS_MIN || window_ns > WINDOW_NS_LIMIT || blocks_count < BLOCKS_MIN + spares_count ||
        blocks_count > UINT32_MAX)
        return -EINVAL;
    struct window_ring *made = calloc(1, sizeof *made);
    if (made == NULL)
        return -ENOMEM;
    made->window_ns = window_ns;
    made->block_bytes = (uint32_t)data_bytes;
    made->blocks_count = (uint32_t)blocks_count;
    made->places_count = (uint32_t)(blocks_count - spares_count);
    made->tallies = *tallies;
    int error = allocate(made);
    if (error != 0) {
        window_ring_destroy(&made);
        return error;
    }
    made->front.window_ns = window_ns;
    made->front.word = WINDOW_OPEN;
    made->front.turn_shift = 63;
    made->present = made->blocks;
    window_code_begin(&made->present->code, window_ns);
    begin_block(made, 0);
    *ring = made;
    return 0;
}

void window_ring_destroy(struct window_ring **ring)
{
    if (*ring == NULL)
        return;
    free((*ring)->blocks);
    free((*ring)->places);
    free((*ring)->spares);
    free((*ring)->pinned);
    pages_destroy((*ring)->memory, (size_t)(*ring)->blocks_count * (*ring)->block_bytes);
    free(*ring);
    *ring = NULL;
}

uint32_t window_ring_window_ns(const struct window_ring *ring)
{
    return ring->window_ns;
}

void window_ring_prepare(struct window_ring *ring)
{
    pages_prepare(ring->memory, (size_t)ring->blocks_count * ring->block_bytes);
}

static inline void store(struct window_ring *ring, const struct window *window, uint32_t flow)
{
    if (ring->at >= ring->full_at)
        begin_next_block(ring);
    struct block *block = ring->present;
    ring->at = window_code_put(&block->code, &ring->met, ring->at, window, flow);
    block->entries_count++;
    if (window->index < block->index_min)
        block->index_min = window->index;
}

static inline void count_stored(struct window_ring *ring, uint32_t count)
{
    tally_add(ring->tallies.tallies, ring->tallies.stored, count);
}

static uint16_t add_capped(uint16_t a, uint16_t b)
{
    uint32_t sum = (uint32_t)a + b;

    return sum > UINT16_MAX ? UINT16_MAX : (uint16_t)sum;
}

static void add_evidence(struct window *window, uint16_t retransmitted_frames, uint16_t marked_frames)
{
    window->retransmitted_frames = add_capped(window->retransmitted_frames, retransmitted_frames);
    window->marked_frames = add_capped(window->marked_frames, marked_frames);
}

/* ---- coarser windows ---- */

/* Of what shifts out of an index by this, all windows of the ring go into one. */
static uint8_t turn_shift(const struct window_ring *ring)
{
    return ring->passed_over < ring->coarser_count ? ring->coarser[ring->passed_over].shift : 63;
}

void window_ring_add_coarser(struct window_ring *ring, struct window_ring *coarser)
{
    uint32_t mask = coarser->window_ns / ring->window_ns - 1;

    ring->coarser[ring->coarser_count++] =
        (struct coarser){.ring = coarser, .mask = mask, .shift = (uint8_t)__builtin_popcount(mask)};
    ring->front.turn_shift = turn_shift(ring);
}

void window_ring_pass_over(struct window_ring *ring, bool is_passed_over, uint64_t now_ns)
{
    struct window_ring *passed = ring->coarser[0].ring;

    if (ring->passed_over == is_passed_over)
        return;
    ring->passed_over = is_passed_over;
    ring->front.turn_shift = turn_shift(ring);
    ring->resumed = now_ns / passed->window_ns + 1;
    passed->held_from = is_passed_over ? HELD_NOTHING : ring->resumed;
}

/* The flow's last frame so far is the last one of its open coarser windows too, unless they are of before a break. */
static void note_last(const struct window_ring *ring, struct window_track *track)
{
    const struct window *last = &track->present;

    if (track->coarse[0].index < ring->resumed)
        track->coarse[0].open = 0;
    for (unsigned i = 0; i < ring->coarser_count && last->open; i++)
        track->coarse[i].last_offset_ns =
            ((uint32_t)last->index & ring->coarser[i].mask) * ring->window_ns + last->last_offset_ns;
}

static void close_coarse(const struct window_ring *ring, struct window_track *track, unsigned tier, uint32_t flow)
{
    struct window *window = &track->coarse[tier];

    window->frames += (uint32_t)track->sums.frames;
    window->wire_bytes += (uint32_t)track->sums.wire_bytes;
    window->payload_bytes += (uint32_t)track->sums.payload_bytes;
    if (tier >= ring->passed_over) {
        store(ring->coarser[tier].ring, window, flow);
        count_stored(ring->coarser[tier].ring, 1);
    }
    window->open = 0;
}

void window_front_turn(struct window_front *front, struct window_track *track, uint32_t flow, uint32_t offset_ns)
{
    const struct window_ring *ring = (const struct window_ring *)front;
    uint64_t index = front->word & ~WINDOW_OPEN;

    note_last(ring, track);
    for (unsigned i = ring->passed_over; i < ring->coarser_count; i++) {
        const struct coarser *coarser = &ring->coarser[i];
        struct window *window = &track->coarse[i];
        if (window->open && window->index == index >> coarser->shift)
            continue;
        if (window->open)
            close_coarse(ring, track, i, flow);
        *window = (struct window){.index = index >> coarser->shift,
                                  .open = 1,
                                  .first_offset_ns = ((uint32_t)index & coarser->mask) * ring->window_ns + offset_ns,
                                  .frames = -(uint32_t)track->sums.frames,
                                  .wire_bytes = -(uint32_t)track->sums.wire_bytes,
                                  .payload_bytes = -(uint32_t)track->sums.payload_bytes};
    }
}

void window_close(struct window_ring *ring, struct window_track *track, uint32_t flow)
{
    if (!track->present.open)
        return;
    store(ring, &track->present, flow);
    count_stored(ring, 1);
    note_last(ring, track);
    track->present.open = 0;
}

void window_close_coarse(struct window_ring *ring, struct window_track *track, uint32_t flow, uint64_t now_ns)
{
    note_last(ring, track);
    for (unsigned i = 0; i < ring->coarser_count; i++) {
        if (track->coarse[i].open && track->coarse[i].index < now_ns / ring->coarser[i].ring->window_ns)
            close_coarse(ring, track, i, flow);
    }
}

/* ---- frames ---- */

struct window_front *window_ring_front(struct window_ring *ring)
{
    return &ring->front;
}

void window_front_move(struct window_front *front, uint64_t at_ns)
{
    uint64_t index = at_ns / front->window_ns;

    front->start_ns = index * front->window_ns;
    front->word = index | WINDOW_OPEN;
}

void window_ring_store(struct window_ring *ring)
{
    struct window_front *front = &ring->front;

    for (const struct window_over *over = front->over; over < front->over + front->over_count; over++)
        store(ring, &over->window, over->flow);
    count_stored(ring, front->over_count);
    front->over_count = 0;
}

void window_note(struct window_ring *ring, struct window_track *track, uint32_t flow, const struct window_frame *frame)
{
    struct window *window = &track->present;
    uint32_t once = !frame->repeated;

    window_front_add(&ring->front, track, flow, frame->at_ns, once * frame->wire_bytes, once * frame->payload_bytes);
    window_ring_store(ring);
    window->frames -= frame->repeated;
    track->sums.frames -= frame->repeated;
    add_evidence(window, frame->retransmitted, frame->marked);
    for (unsigned i = 0; i < ring->coarser_count; i++)
        add_evidence(&track->coarse[i], frame->retransmitted, frame->marked);
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

void window_record_coarse(const struct record_window *window, uint32_t window_ns, struct record_coarse_window *record)
{
    *record = (struct record_coarse_window){
        .header.source = window->header.source,
        .index = window->index,
        .window_ns = window_ns,
        .first_offset_ns = window->first_offset_ns,
        .last_offset_ns = window->last_offset_ns,
        .frames = window->frames,
        .wire_bytes = window->wire_bytes,
        .payload_bytes = window->payload_bytes,
        .retransmitted_frames = window->retransmitted_frames,
        .marked_frames = window->marked_frames,
    };
}

bool window_ring_passes_over(const struct window_ring *ring)
{
    return ring->passed_over != 0;
}

/* ---- reading ---- */

void window_walk_begin(const struct window_ring *ring, struct window_walk *walk, uint64_t from_ns, uint64_t to_ns,
                       uint32_t flow)
{
    *walk = (struct window_walk){
        .from_index = from_ns / ring->window_ns,
        .to_index = to_ns == 0 ? 0 : (to_ns - 1) / ring->window_ns,
        .flow = flow,
        .end_block = ring->present->number,
        .end_entry = bytes_used(ring, ring->present),
    };
}

/* The held block of the smallest number that is not below this one. */
static const struct block *find_block(const struct window_ring *ring, uint64_t number, bool *from_pin)
{
    uint64_t oldest = oldest_number(ring);

    *from_pin = true;
    for (uint32_t i = 0; i < ring->pinned_count; i++) {
        if (ring->blocks[ring->pinned[i]].number >= number)
            return &ring->blocks[ring->pinned[i]];
    }
    *from_pin = false;
    if (number < oldest)
        number = oldest;
    return number > ring->present->number ? NULL : &ring->blocks[ring->places[number % ring->places_count]];
}

static bool block_matters(const struct window_ring *ring, const struct block *block, const struct window_walk *walk)
{
    return block->entries_count != 0 && block->index_min <= walk->to_index &&
           newest_in(ring, block) >= walk->from_index;
}

/* The block in which something is left to read; NULL at the end of the walk. */
static const struct block *walk_settle(const struct window_ring *ring, struct window_walk *walk)
{
    for (;;) {
        bool from_pin;
        const struct block *block = find_block(ring, walk->block, &from_pin);
        if (block == NULL || block->number > walk->end_block)
            return NULL;
        walk->has_gap |= walk->has_begun && block->number != walk->block;
        walk->has_begun = true;
        if (block->number != walk->block || walk->entry == 0) {
            walk->block = block->number;
            walk->entry = 0;
            walk->newest = block->base;
        }
        uint32_t end = walk->block == walk->end_block ? walk->end_entry : bytes_used(ring, block);
        if (walk->entry < end && block_matters(ring, block, walk)) {
            walk->has_pinned |= from_pin;
            return block;
        }
        walk->block++;
        walk->entry = 0;
    }
}

static bool is_wanted(const struct window_walk *walk, const struct window *window, uint32_t flow)
{
    return flow != 0 && window->index >= walk->from_index && window->index <= walk->to_index &&
           (walk->flow == 0 || walk->flow == flow);
}

size_t window_walk_next(const struct window_ring *ring, struct window_walk *walk, struct record_window *records,
                        size_t capacity, size_t budget, bool *done)
{
    size_t count = 0;

    *done = false;
    for (size_t looked_at = 0; count < capacity && looked_at < budget;) {
        const struct block *block = walk_settle(ring, walk);
        if (block == NULL) {
            *done = true;
            break;
        }
        const uint8_t *bytes = bytes_of(ring, block);
        struct window window;
        uint32_t flow;
        walk->entry =
            (uint32_t)(window_code_take(&block->code, &walk->newest, bytes + walk->entry, &window, &flow) - bytes);
        looked_at += flow != 0;
        if (is_wanted(walk, &window, flow))
            window_record(&window, flow, &records[count++]);
    }
    return count;
}

/* ---- what is held ---- */

uint64_t window_ring_bytes_stored(const struct window_ring *ring)
{
    return ring->bytes_before + bytes_used(ring, ring->present);
}

uint64_t window_ring_bytes_capacity(const struct window_ring *ring)
{
    return (uint64_t)ring->places_count * ring->block_bytes;
}

uint64_t window_ring_held_from(const struct window_ring *ring)
{
    return ring->held_from;
}

bool window_ring_holds(const struct window_ring *ring, uint64_t *from_ns, uint64_t *to_ns)
{
    uint64_t ring_from_ns = ring->held_from * ring->window_ns;
    uint64_t best_from_ns = *from_ns > ring_from_ns ? *from_ns : ring_from_ns, best_to_ns = *to_ns;

    for (unsigned i = 0; i < ring->pins_count; i++) {
        const struct pin *pin = &ring->pins[i];
        uint64_t from = pin->from_index * ring->window_ns, to = (pin->to_index + 1) * ring->window_ns;
        if (from < *from_ns)
            from = *from_ns;
        if (to > *to_ns || to >= ring_from_ns) /* the ring goes on where it ends */
            to = *to_ns;
        bool is_longer = best_from_ns >= best_to_ns || to - from > best_to_ns - best_from_ns;
        if (from < to && is_longer) {
            best_from_ns = from;
            best_to_ns = to;
        }
    }
    if (best_from_ns >= best_to_ns)
        return false;
    *from_ns = best_from_ns;
    *to_ns = best_to_ns;
    return true;
}
