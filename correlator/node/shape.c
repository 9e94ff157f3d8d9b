/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NCCL's arithmetic (its public sources, 2.13 to 2.18; RCCL's is the same): a collective is cut into loops of one
 * chunk a channel (all-reduce: one chunk a channel and rank), a chunk into slices, a slice fills one slot. Invariant:
 * the slots of all blocks together carry each byte as often as the ring passes it on.
 */
#include "correlator/node/shape.h"

#include <stddef.h>

#include "wire/record.h"

#define BUFFER_STEPS 8
#define BYTES_MAX    (1ULL << 47) /* of one call; more is damage */
#define RANKS_MAX    65536

struct line { /* how a protocol spreads data over lines with flags; Simple has none */
    uint32_t data_bytes;
    uint32_t line_bytes;
};
static const struct line lines[SHAPE_PROTOCOLS] = {
    [SHAPE_LL] = {8, 16},
    [SHAPE_LL128] = {120, 128},
    [SHAPE_LL128_64] = {56, 64},
};

struct ring { /* in elements */
    const struct shape *shape;
    const struct collective *collective;
    unsigned slices;
    int64_t size;
    int64_t step;  /* what one step of the buffer holds */
    int64_t chunk; /* what a block does in one loop at most */
    int64_t loop;
    shape_visit visit;
    void *context;
};

static int64_t divide_up(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

static int64_t round_up(int64_t value, int64_t to)
{
    return divide_up(value, to) * to;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool shape_collective(struct collective *collective, uint8_t kind, uint64_t count, uint8_t datatype, int32_t ranks)
{
    uint32_t element_bytes = datatype_bytes(datatype);
    uint64_t most = BYTES_MAX / (element_bytes == 0 ? 1 : element_bytes);
    bool in_bytes = kind == OPERATION_ALL_GATHER || kind == OPERATION_BROADCAST;

    if (element_bytes == 0 || ranks < 2 || ranks > RANKS_MAX || count == 0 || count > most ||
        kind < OPERATION_ALL_REDUCE || kind > OPERATION_REDUCE)
        return false;
    *collective = (struct collective){
        .kind = kind,
        .elements = in_bytes ? count * element_bytes : count,
        .element_bytes = in_bytes ? 1 : element_bytes,
        .ranks = ranks,
    };
    return true;
}

uint64_t shape_volume(const struct collective *collective)
{
    uint64_t bytes = collective->elements * collective->element_bytes;
    uint64_t others = (uint64_t)collective->ranks - 1;

    switch (collective->kind) {
    case OPERATION_ALL_REDUCE:
        return 2 * bytes * others / (others + 1);
    case OPERATION_ALL_GATHER:
    case OPERATION_REDUCE_SCATTER:
        return bytes * others;
    default:
        return bytes;
    }
}

/* One chunk, in the slots that carry it. */
static bool show_chunk(const struct ring *ring, int64_t count)
{
    const struct line *line = &lines[ring->shape->protocol];
    int64_t bytes = (count < 0 ? 0 : count) * ring->collective->element_bytes;

    if (line->data_bytes != 0)
        return ring->visit(ring->context, (uint64_t)(divide_up(bytes, line->data_bytes) * line->line_bytes));
    int64_t left = count < 0 ? 0 : count;
    int64_t slice = divide_up(left, 16 * (int64_t)ring->slices) * 16;
    int64_t smallest = ring->step * (int64_t)ring->slices / 32;
    if (slice < smallest)
        slice = smallest;
    for (unsigned i = 0; i < ring->slices; i++) {
        int64_t now = least(slice, left);
        left -= now;
        if (!ring->visit(ring->context, (uint64_t)(now * ring->collective->element_bytes)))
            return false;
    }
    return true;
}

/* What a block does of the `left` elements in one loop. */
static int64_t chunk_now(const struct ring *ring, int64_t left)
{
    const struct shape *shape = ring->shape;
    uint8_t kind = ring->collective->kind;
    int64_t element = ring->collective->element_bytes;
    int64_t channels = shape->channels;
    int64_t parts = channels * (kind == OPERATION_ALL_REDUCE ? ring->collective->ranks : 1);

    if (shape->protocol == SHAPE_SIMPLE)
        return round_up(least(ring->chunk, divide_up(left, parts)), (int64_t)shape->threads * 8 / element);
    if (shape->protocol == SHAPE_LL && kind != OPERATION_ALL_REDUCE)
        return left >= ring->loop
                   ? ring->chunk
                   : round_up(divide_up(left * element, channels), (int64_t)shape->threads * 8) / element;
    int64_t unit = (int64_t)shape->threads * ((shape->protocol == SHAPE_LL ? 8 : 28) / element);
    bool halved = shape->protocol != SHAPE_LL && kind != OPERATION_BROADCAST && kind != OPERATION_REDUCE;
    unit = halved ? unit / 2 : unit;
    return unit == 0 ? ring->chunk : least(ring->chunk, round_up(divide_up(left, parts), unit));
}

static bool all_reduce_loop(const struct ring *ring, int64_t at, int64_t chunk, int32_t index, unsigned block)
{
    int32_t ranks = ring->collective->ranks;

    for (int32_t step = 0; step < 2 * ranks - 2; step++) {
        int64_t part = (index + 2 * ranks - 1 - step) % ranks;
        int64_t place = ring->shape->protocol == SHAPE_SIMPLE ? (int64_t)block * ranks + part
                                                              : part * ring->shape->channels + block;
        if (!show_chunk(ring, least(chunk, ring->size - at - place * chunk)))
            return false;
    }
    return true;
}

static bool plain_loop(const struct ring *ring, int64_t at, int64_t chunk, unsigned block)
{
    uint8_t kind = ring->collective->kind;
    bool all = kind == OPERATION_ALL_GATHER || kind == OPERATION_REDUCE_SCATTER;
    int32_t times = all ? ring->collective->ranks - 1 : 1;
    int64_t count = least(chunk, ring->size - at - (int64_t)block * chunk);

    while (times-- > 0)
        if (!show_chunk(ring, count))
            return false;
    return true;
}

/* Every edge of a tree carries all that is the block's, once in each direction. */
static bool tree_loops(const struct ring *ring, unsigned block)
{
    int64_t channels = ring->shape->channels;
    int64_t unit_bytes = (int64_t)ring->shape->threads * (ring->shape->protocol == SHAPE_SIMPLE ? 64 : 8);
    int64_t unit = unit_bytes / ring->collective->element_bytes;
    int64_t chunk = ring->step;

    if (channels * ring->step > ring->size && unit > 0)
        chunk = divide_up(ring->size, channels * unit) * unit;
    for (int64_t at = 0; at < ring->size; at += channels * ring->step)
        if (!show_chunk(ring, least(chunk, ring->size - at - (int64_t)block * chunk)))
            return false;
    return true;
}

static void lay_out(struct ring *ring)
{
    const struct shape *shape = ring->shape;
    const struct line *line = &lines[shape->protocol];
    uint8_t kind = ring->collective->kind;
    bool deep = kind != OPERATION_BROADCAST && kind != OPERATION_REDUCE && !shape->tree; /* two slices of two steps */
    int64_t step_bytes = shape->buffer_bytes / BUFFER_STEPS;

    if (line->data_bytes != 0)
        step_bytes = shape->protocol == SHAPE_LL ? step_bytes / 2 : step_bytes / line->line_bytes * line->data_bytes;
    ring->slices = deep ? 2 : 1;
    ring->size = (int64_t)ring->collective->elements;
    ring->step = step_bytes / ring->collective->element_bytes;
    ring->chunk = ring->step * (shape->protocol == SHAPE_SIMPLE && deep ? 4 : 1);
    ring->loop = shape->channels * ring->chunk * (kind == OPERATION_ALL_REDUCE ? ring->collective->ranks : 1);
}

bool shape_walk(const struct shape *shape, const struct collective *collective, int32_t index, unsigned block,
                shape_visit visit, void *context)
{
    struct ring ring = {.shape = shape, .collective = collective, .visit = visit, .context = context};

    lay_out(&ring);
    if (shape->tree)
        return tree_loops(&ring, block);
    for (int64_t at = 0; at < ring.size; at += ring.loop) {
        int64_t chunk = chunk_now(&ring, ring.size - at);
        bool more = collective->kind == OPERATION_ALL_REDUCE ? all_reduce_loop(&ring, at, chunk, index, block)
                                                             : plain_loop(&ring, at, chunk, block);
        if (!more)
            return false;
    }
    return true;
}

struct kind {
    enum shape_protocol protocol;
    uint32_t buffer_bytes;
};

static bool candidate(struct shape *shape, const struct kind *kinds, size_t kinds_count, unsigned number,
                      unsigned channels)
{
    static const uint16_t threads[] = {256, 512, 544, 320, 288, 128, 64, 192, 384, 448, 576, 640, 96, 160, 224};
    const unsigned threads_count = sizeof threads / sizeof threads[0];
    unsigned kind = channels == 0 ? 0 : number / (channels * threads_count);

    if (channels == 0 || kind >= kinds_count)
        return false;
    *shape = (struct shape){
        .protocol = kinds[kind].protocol,
        .buffer_bytes = kinds[kind].buffer_bytes,
        .channels = channels - number / threads_count % channels,
        .threads = threads[number % threads_count],
    };
    return true;
}

bool shape_candidate(struct shape *shape, unsigned number, unsigned channels)
{
    static const struct kind kinds[] = {
        {SHAPE_SIMPLE, 4u << 20}, {SHAPE_LL, 256u << 10},    {SHAPE_LL, 512u << 10},
        {SHAPE_LL128, 4915200},   {SHAPE_LL128_64, 1966080}, {SHAPE_LL128_64, 4915200},
    };

    return candidate(shape, kinds, sizeof kinds / sizeof kinds[0], number, channels);
}

/* The library halves a tree's chunk down to 32 KiB until there are enough of them to keep all its levels busy. */
bool shape_tree_candidate(struct shape *shape, unsigned number, unsigned channels)
{
    static const struct kind kinds[] = {
        {SHAPE_SIMPLE, 4u << 20},   {SHAPE_SIMPLE, 2u << 20}, {SHAPE_SIMPLE, 1u << 20}, {SHAPE_SIMPLE, 512u << 10},
        {SHAPE_SIMPLE, 256u << 10}, {SHAPE_LL, 256u << 10},   {SHAPE_LL, 512u << 10},
    };
    bool found = candidate(shape, kinds, sizeof kinds / sizeof kinds[0], number, channels);

    if (found)
        shape->tree = true;
    return found;
}
