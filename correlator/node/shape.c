/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NCCL's arithmetic (its public sources, 2.13 to 2.30; RCCL 5.4.3's is that of 2.13): a collective is cut into loops of
 * one chunk (all-reduce: one for each rank), a chunk into slices, a slice fills one slot. To 2.19 a loop takes a chunk
 * of each channel, and what is left for the last one is shared out equally, in multiples that depend on the protocol
 * and the number of threads. From 2.20 on a channel has a part of its own (division.c) and loops over it alone: chunks
 * are full until the last one takes what is left; only an all-reduce shares out its last loop, in multiples of what
 * the part is cut in (2.20, 2.21) or of 16 bytes. From 2.22 on chunks are multiples of 512 bytes with Simple, 16 with
 * LL, 1920 with LL128. Slices, slots and flags are the same in all: a chunk of Simple is two slices of two steps in
 * rings that pass on each rank's part, else one of one step; a tree's chunk is one step, of LL128 halved while there
 * are few (to 2.19 also of Simple). Not here: PAT (2.23 on, gathers and scatters of one rank a node), NVLS, CollNet.
 * Invariant: the slots of all blocks together carry each byte as often as the ring passes it on.
 */
#include "correlator/node/shape.h"

#include <stddef.h>

#include "correlator/node/division.h"
#include "wire/record.h"

#define BUFFER_STEPS 8
#define BYTES_MAX    (1ULL << 47) /* of one call; more is damage */
#define RANKS_MAX    65536

struct line {            /* how a protocol spreads data over what has flags in it; Simple has none */
    uint32_t data_bytes; /* of the least that is sent */
    uint32_t wire_bytes; /* that it takes */
    uint32_t share;      /* of a buffer's bytes, those of data: */
    uint32_t whole;
    uint32_t thread_eighths; /* of bytes: chunks are multiples of it for each thread of the GPU */
};
static const struct line lines[SHAPE_PROTOCOLS] = {
    [SHAPE_LL] = {8, 16, 1, 2, 64},
    [SHAPE_LL128] = {1920, 2048, 15, 16, 480}, /* a warp's lines, whether all of them are filled or not */
    [SHAPE_LL128_64] = {1792, 2048, 7, 8, 224},
};

struct ring { /* in elements */
    const struct shape *shape;
    const struct collective *collective;
    unsigned slices;
    int64_t channels; /* that share `size` in loops */
    int64_t size;
    int64_t step;  /* what one step of the buffer holds */
    int64_t chunk; /* what a block does in one loop at most */
    int64_t loop;
    int64_t unit; /* a last loop is shared out in multiples of it, where channels have parts of their own */
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
        return ring->visit(ring->context, (uint64_t)(divide_up(bytes, line->data_bytes) * line->wire_bytes));
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
    int64_t channels = ring->channels;
    int64_t parts = channels * (kind == OPERATION_ALL_REDUCE ? ring->collective->ranks : 1);

    if (shape->division != SHAPE_LOOPS)
        return kind == OPERATION_ALL_REDUCE && left < ring->loop ? round_up(divide_up(left, parts), ring->unit)
                                                                 : ring->chunk;
    if (shape->protocol == SHAPE_SIMPLE)
        return round_up(least(ring->chunk, divide_up(left, parts)), (int64_t)shape->threads * 8 / element);
    if (shape->protocol == SHAPE_LL && kind != OPERATION_ALL_REDUCE)
        return left >= ring->loop
                   ? ring->chunk
                   : round_up(divide_up(left * element, channels), (int64_t)shape->threads * 8) / element;
    bool halved = shape->protocol != SHAPE_LL && kind != OPERATION_BROADCAST && kind != OPERATION_REDUCE;
    int64_t unit = (int64_t)shape->threads * lines[shape->protocol].thread_eighths / 8 / element / (halved ? 2 : 1);
    return unit == 0 ? ring->chunk : least(ring->chunk, round_up(divide_up(left, parts), unit));
}

static bool all_reduce_loop(const struct ring *ring, int64_t at, int64_t chunk, int32_t index, unsigned block)
{
    int32_t ranks = ring->collective->ranks;

    for (int32_t step = 0; step < 2 * ranks - 2; step++) {
        int64_t part = (index + 2 * ranks - 1 - step) % ranks;
        int64_t place =
            ring->shape->protocol == SHAPE_SIMPLE ? (int64_t)block * ranks + part : part * ring->channels + block;
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
    int64_t channels = ring->channels;
    enum shape_protocol protocol = ring->shape->protocol;
    int64_t threads = ring->shape->threads;
    int64_t unit_bytes = protocol == SHAPE_SIMPLE ? threads * 64
                         : protocol == SHAPE_LL   ? threads * 8
                                                  : threads * lines[protocol].thread_eighths / 64;
    int64_t unit = unit_bytes / ring->collective->element_bytes;
    int64_t chunk = ring->chunk;

    if (ring->shape->division == SHAPE_LOOPS && channels * ring->chunk > ring->size && unit > 0)
        chunk = divide_up(ring->size, channels * unit) * unit;
    for (int64_t at = 0; at < ring->size; at += channels * ring->chunk)
        if (!show_chunk(ring, least(chunk, ring->size - at - (int64_t)block * chunk)))
            return false;
    return true;
}

/* Chunks in whole grains, as they are counted from 2.22 on. */
static int64_t whole_grains(const struct ring *ring, int64_t chunk)
{
    enum shape_protocol protocol = ring->shape->protocol;
    int64_t grain_bytes = protocol == SHAPE_SIMPLE ? 512 : protocol == SHAPE_LL ? 16 : lines[protocol].data_bytes;
    int64_t grain = grain_bytes / ring->collective->element_bytes;

    return ring->shape->division < SHAPE_CELLS_2_22 || chunk < grain ? chunk : chunk / grain * grain;
}

static void lay_out(struct ring *ring, unsigned block)
{
    const struct shape *shape = ring->shape;
    const struct line *line = &lines[shape->protocol];
    uint8_t kind = ring->collective->kind;
    bool deep = kind != OPERATION_BROADCAST && kind != OPERATION_REDUCE && !shape->tree; /* two slices of two steps */
    int64_t step_bytes = shape->buffer_bytes / BUFFER_STEPS;

    if (line->data_bytes != 0)
        step_bytes = step_bytes / line->whole * line->share;
    ring->slices = deep ? 2 : 1;
    ring->channels = shape->division == SHAPE_LOOPS ? shape->channels : 1;
    ring->size = (int64_t)division_part(shape, ring->collective, block);
    ring->step = step_bytes / ring->collective->element_bytes;
    ring->chunk = whole_grains(ring, ring->step * (shape->protocol == SHAPE_SIMPLE && deep ? 4 : 1));
    ring->loop = ring->channels * ring->chunk * (kind == OPERATION_ALL_REDUCE ? ring->collective->ranks : 1);
    ring->unit = (int64_t)division_unit(shape, ring->collective);
}

unsigned shape_blocks(const struct shape *shape, const struct collective *collective)
{
    unsigned most = shape->limit > shape->channels ? shape->limit : shape->channels;
    unsigned blocks = division_channels(shape, collective);

    return blocks < most ? blocks : most;
}

bool shape_takes(const struct shape *shape, const struct collective *collective, unsigned block)
{
    return division_part(shape, collective, block) > 0;
}

bool shape_may_leave(const struct collective *collective, unsigned channel, unsigned channels,
                     enum shape_division division)
{
    static const enum shape_protocol protocols[] = {SHAPE_SIMPLE, SHAPE_LL, SHAPE_LL128};
    struct shape shape = {.channels = channels, .threads = 640, .division = division};

    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++) {
        shape.protocol = protocols[i];
        if (!shape_takes(&shape, collective, channel))
            return true;
    }
    return false;
}

bool shape_walk(const struct shape *shape, const struct collective *collective, int32_t index, unsigned block,
                shape_visit visit, void *context)
{
    struct ring ring = {.shape = shape, .collective = collective, .visit = visit, .context = context};

    lay_out(&ring, block);
    if (shape->division != SHAPE_LOOPS)
        block = 0;
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

/* Whether sizes depend on the number of the GPU's threads. */
static bool needs_threads(enum shape_division division, enum shape_protocol protocol)
{
    return division == SHAPE_LOOPS || (division == SHAPE_RANGES && protocol != SHAPE_SIMPLE);
}

static bool candidate(struct shape *shape, const struct kind *kinds, size_t kinds_count, unsigned number,
                      const struct shape_range *range)
{
    static const uint16_t threads[] = {256, 512, 544, 320, 288, 128, 64, 192, 384, 448, 576, 640, 96, 160, 224};

    for (size_t kind = 0; kind < kinds_count; kind++) {
        bool needs = needs_threads(range->division, kinds[kind].protocol);
        unsigned variants = needs ? sizeof threads / sizeof threads[0] : 1;
        if (number >= range->channels * variants) {
            number -= range->channels * variants;
            continue;
        }
        *shape = (struct shape){
            .protocol = kinds[kind].protocol,
            .buffer_bytes = kinds[kind].buffer_bytes,
            .channels = range->channels - number / variants,
            .threads = threads[number % variants],
            .division = range->division,
            .limit = range->channels,
        };
        return true;
    }
    return false;
}

bool shape_candidate(struct shape *shape, unsigned number, const struct shape_range *range)
{
    static const struct kind kinds[] = {
        {SHAPE_SIMPLE, 4u << 20}, {SHAPE_LL, 256u << 10},    {SHAPE_LL, 512u << 10},
        {SHAPE_LL128, 4915200},   {SHAPE_LL128_64, 1966080}, {SHAPE_LL128_64, 4915200},
    };

    return candidate(shape, kinds, sizeof kinds / sizeof kinds[0], number, range);
}

/* The library halves a tree's chunk down to 32 KiB until there are enough of them to keep all its levels busy. */
bool shape_tree_candidate(struct shape *shape, unsigned number, const struct shape_range *range)
{
    static const struct kind kinds[] = {
        {SHAPE_SIMPLE, 4u << 20},   {SHAPE_SIMPLE, 2u << 20}, {SHAPE_SIMPLE, 1u << 20}, {SHAPE_SIMPLE, 512u << 10},
        {SHAPE_SIMPLE, 256u << 10}, {SHAPE_LL, 256u << 10},   {SHAPE_LL, 512u << 10},   {SHAPE_LL128, 4915200},
        {SHAPE_LL128, 2457600},     {SHAPE_LL128, 1228800},   {SHAPE_LL128, 614400},    {SHAPE_LL128, 307200},
        {SHAPE_LL128, 153600},
    };
    bool found = candidate(shape, kinds, sizeof kinds / sizeof kinds[0], number, range);

    if (found)
        shape->tree = true;
    return found;
}
