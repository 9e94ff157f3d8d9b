/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rounds, chunks and slices. A rank's chunk in a ring step of an AllReduce depends on which rank's part passes; of the
 * other operations all chunks of a round are alike. A slice with nothing left for it is still sent, with no bytes.
 */
#include "tests/simulation/slicing.h"

#include <string.h>

#include "tests/simulation/sharing.h"

#define SLICE_GRAIN      16u /* elements */
#define LL_MOST_BYTES    (16u << 10)
#define LL128_MOST_BYTES (1u << 20)

static const struct {
    uint32_t buffer_bytes;         /* of a connection, on the wire; 0: the setting's */
    uint32_t data_bytes;           /* of a piece */
    uint32_t wire_bytes;           /* that it takes */
    uint32_t share, whole;         /* of the buffer's bytes, those of data */
    uint32_t thread_eighths;       /* of bytes: what a chunk is a multiple of, for each of the GPU's threads */
    uint32_t tree_thread_eighths;  /* of a tree's */
    uint32_t chain_thread_eighths; /* of a Broadcast's */
} protocols[] = {
    [SLICING_SIMPLE] = {0, 1, 1, 1, 1, 64, 512, 64},
    [SLICING_LL] = {512u << 10, 8, 16, 1, 2, 64, 64, 64},
    [SLICING_LL128] = {4915200, 1920, 2048, 15, 16, 240, 60, 480},
};

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_deep(enum operation_kind operation)
{
    return operation == OPERATION_ALL_REDUCE || operation == OPERATION_ALL_GATHER ||
           operation == OPERATION_REDUCE_SCATTER;
}

/* What only moves data is split in bytes; all else here has elements of four. */
static uint64_t grain_bytes(const struct slicing *slicing)
{
    bool moves = slicing->operation == OPERATION_ALL_GATHER || slicing->operation == OPERATION_BROADCAST;

    return SLICE_GRAIN * (moves ? 1 : 4);
}

static uint64_t chunk_most(const struct slicing *slicing)
{
    uint64_t most = (uint64_t)slicing->slot_bytes * slicing->slots_a_slice * slicing->slices_a_chunk;

    return slicing->is_own ? most / slicing->grain_bytes * slicing->grain_bytes : most;
}

static uint64_t rounds_of(const struct slicing *slicing)
{
    return divide_up(slicing->bytes, slicing->parts * chunk_most(slicing));
}

static uint32_t chunks_a_round(enum operation_kind operation, uint32_t ranks, bool tree)
{
    if (operation == OPERATION_ALL_REDUCE && !tree)
        return 2 * (ranks - 1);
    return operation == OPERATION_ALL_GATHER || operation == OPERATION_REDUCE_SCATTER ? ranks - 1 : 1;
}

static enum slicing_protocol protocol_of(const struct slicing_options *options, enum operation_kind operation,
                                         uint64_t bytes)
{
    if (operation == OPERATION_SEND)
        return SLICING_SIMPLE;
    if (options->protocol != SLICING_MIXED)
        return options->protocol;
    return bytes <= LL_MOST_BYTES ? SLICING_LL : bytes <= LL128_MOST_BYTES ? SLICING_LL128 : SLICING_SIMPLE;
}

/* What chunks are multiples of: `options->round_bytes` is 8 for each thread. */
static uint32_t unit_of(const struct slicing *slicing, const struct slicing_options *options)
{
    uint32_t threads = options->round_bytes / 8;
    uint32_t eighths = slicing->tree                               ? protocols[slicing->protocol].tree_thread_eighths
                       : slicing->operation == OPERATION_BROADCAST ? protocols[slicing->protocol].chain_thread_eighths
                                                                   : protocols[slicing->protocol].thread_eighths;

    return threads * eighths / 8 < 4 ? 4 : threads * eighths / 8 / 4 * 4;
}

void slicing_init(struct slicing *slicing, const struct slicing_options *options, enum operation_kind operation,
                  uint64_t bytes, uint32_t ranks, uint32_t channels)
{
    enum slicing_protocol protocol = protocol_of(options, operation, bytes);
    bool deep = is_deep(operation) && !options->tree && protocol == SLICING_SIMPLE;
    uint32_t buffer_bytes = protocol == SLICING_SIMPLE ? options->buffer_bytes : protocols[protocol].buffer_bytes;

    memset(slicing, 0, sizeof *slicing);
    slicing->protocol = protocol;
    slicing->operation = operation;
    slicing->tree = options->tree && operation == OPERATION_ALL_REDUCE;
    slicing->bytes = bytes;
    slicing->ranks = ranks;
    slicing->channels = channels;
    slicing->slot_bytes = buffer_bytes / SLICING_STEPS / protocols[protocol].whole * protocols[protocol].share;
    slicing->round_bytes = unit_of(slicing, options);
    slicing->slices_a_chunk = slicing->slots_a_slice = deep ? 2 : 1;
    slicing->chunks_a_round = chunks_a_round(operation, ranks, options->tree);
    slicing->parts = channels * (operation == OPERATION_ALL_REDUCE && !options->tree ? ranks : 1);
    slicing->depth = SLICING_STEPS / slicing->slots_a_slice;
    if (operation == OPERATION_SEND) {
        slicing->slot_bytes = options->message_bytes;
        slicing->round_bytes = 4;
    }
    uint64_t rounds = rounds_of(slicing);
    if (rounds == 0)
        rounds = 1;
    slicing->count = (uint32_t)rounds * slicing->chunks_a_round * slicing->slices_a_chunk;
}

void slicing_narrow(struct slicing *slicing, const struct slicing_options *options, uint32_t channel)
{
    const struct sharing sharing = {options->version, slicing->protocol, slicing->operation,      slicing->bytes,
                                    slicing->ranks,   slicing->channels, options->round_bytes / 8};

    if (options->version == 0 || slicing->operation == OPERATION_SEND)
        return;
    slicing->is_own = true;
    slicing->bytes = sharing_bytes(&sharing, channel);
    slicing->parts /= slicing->channels;
    slicing->channels = 1;
    slicing->round_bytes = sharing_unit(&sharing);
    slicing->grain_bytes = sharing_grain(&sharing);
    slicing->count = (uint32_t)rounds_of(slicing) * slicing->chunks_a_round * slicing->slices_a_chunk;
}

/* A tree's chunk is the same in all rounds, unless one round is all there is. */
static uint64_t chunk_size(const struct slicing *slicing, uint64_t left)
{
    uint64_t most = chunk_most(slicing), unit = slicing->round_bytes;

    if (slicing->is_own)
        return slicing->parts > 1 && left < slicing->parts * most
                   ? divide_up(divide_up(left, slicing->parts), unit) * unit
                   : most;
    if (slicing->tree)
        return slicing->parts * most > slicing->bytes ? divide_up(slicing->bytes, slicing->parts * unit) * unit : most;
    if (slicing->protocol == SLICING_SIMPLE)
        return divide_up(smaller(most, divide_up(left, slicing->parts)), unit) * unit;
    if (slicing->protocol == SLICING_LL && slicing->operation != OPERATION_ALL_REDUCE)
        return left < slicing->parts * most ? divide_up(divide_up(left, slicing->parts), unit) * unit : most;
    return smaller(most, divide_up(left, slicing->parts * unit) * unit);
}

static uint64_t chunk_bytes(const struct slicing *slicing, uint32_t place, uint32_t channel, uint32_t round,
                            uint32_t step)
{
    uint64_t begin = round * slicing->parts * chunk_most(slicing);
    uint64_t chunk = chunk_size(slicing, slicing->bytes - begin);
    uint64_t first = slicing->is_own ? 0 : channel;

    if (slicing->parts > slicing->channels) {
        uint32_t part = (place + 2 * slicing->ranks - 1 - step) % slicing->ranks;
        first = slicing->protocol == SLICING_SIMPLE ? first * slicing->ranks + part
                                                    : (uint64_t)part * slicing->channels + first;
    }
    first = begin + first * chunk;
    return first >= slicing->bytes ? 0 : smaller(chunk, slicing->bytes - first);
}

uint32_t slicing_bytes(const struct slicing *slicing, uint32_t place, uint32_t channel, uint32_t number)
{
    uint32_t chunk = number / slicing->slices_a_chunk, slice = number % slicing->slices_a_chunk;
    uint64_t bytes =
        chunk_bytes(slicing, place, channel, chunk / slicing->chunks_a_round, chunk % slicing->chunks_a_round);
    uint64_t grain = grain_bytes(slicing);
    uint64_t most = divide_up(bytes, grain * slicing->slices_a_chunk) * grain;
    uint64_t least = (uint64_t)slicing->slot_bytes * slicing->slots_a_slice / 32;

    if (slicing->slices_a_chunk == 1)
        return (uint32_t)(divide_up(bytes, protocols[slicing->protocol].data_bytes) *
                          protocols[slicing->protocol].wire_bytes);
    if (most < least)
        most = least;
    return (uint32_t)(bytes <= slice * most ? 0 : smaller(bytes - slice * most, most));
}
