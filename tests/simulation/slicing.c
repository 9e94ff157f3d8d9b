/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rounds, chunks and slices. A rank's chunk in a ring step of an AllReduce depends on which rank's part passes; of the
 * other operations all chunks of a round are alike. A slice with nothing left for it is still sent, with no bytes.
 */
#include "tests/simulation/slicing.h"

#include <string.h>

#define SLICE_GRAIN_BYTES 64u /* 16 elements of 4 bytes */

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

static uint64_t chunk_most(const struct slicing *slicing)
{
    return (uint64_t)slicing->slot_bytes * slicing->slots_a_slice * slicing->slices_a_chunk;
}

static uint32_t chunks_a_round(enum operation_kind operation, uint32_t ranks, bool tree)
{
    if (operation == OPERATION_ALL_REDUCE && !tree)
        return 2 * (ranks - 1);
    return operation == OPERATION_ALL_GATHER || operation == OPERATION_REDUCE_SCATTER ? ranks - 1 : 1;
}

void slicing_init(struct slicing *slicing, const struct slicing_options *options, enum operation_kind operation,
                  uint64_t bytes, uint32_t ranks, uint32_t channels)
{
    bool deep = is_deep(operation) && !options->tree;

    memset(slicing, 0, sizeof *slicing);
    slicing->operation = operation;
    slicing->bytes = bytes;
    slicing->ranks = ranks;
    slicing->channels = channels;
    slicing->slot_bytes = options->buffer_bytes / SLICING_STEPS;
    slicing->round_bytes = options->round_bytes;
    slicing->slices_a_chunk = slicing->slots_a_slice = deep ? 2 : 1;
    slicing->chunks_a_round = chunks_a_round(operation, ranks, options->tree);
    slicing->parts = channels * (operation == OPERATION_ALL_REDUCE && !options->tree ? ranks : 1);
    slicing->depth = SLICING_STEPS / slicing->slots_a_slice;
    if (operation == OPERATION_SEND) {
        slicing->slot_bytes = options->message_bytes;
        slicing->round_bytes = 4;
    }
    uint64_t rounds = divide_up(bytes, slicing->parts * chunk_most(slicing));
    if (rounds == 0)
        rounds = 1;
    slicing->count = (uint32_t)rounds * slicing->chunks_a_round * slicing->slices_a_chunk;
}

static uint64_t chunk_bytes(const struct slicing *slicing, uint32_t place, uint32_t channel, uint32_t round,
                            uint32_t step)
{
    uint64_t begin = round * slicing->parts * chunk_most(slicing);
    uint64_t chunk = smaller(chunk_most(slicing), divide_up(slicing->bytes - begin, slicing->parts));
    uint64_t first = channel;

    chunk = divide_up(chunk, slicing->round_bytes) * slicing->round_bytes;
    if (slicing->parts > slicing->channels) {
        uint32_t part = (place + 2 * slicing->ranks - 1 - step) % slicing->ranks;
        first = (uint64_t)channel * slicing->ranks + part;
    }
    first = begin + first * chunk;
    return first >= slicing->bytes ? 0 : smaller(chunk, slicing->bytes - first);
}

uint32_t slicing_bytes(const struct slicing *slicing, uint32_t place, uint32_t channel, uint32_t number)
{
    uint32_t chunk = number / slicing->slices_a_chunk, slice = number % slicing->slices_a_chunk;
    uint64_t bytes =
        chunk_bytes(slicing, place, channel, chunk / slicing->chunks_a_round, chunk % slicing->chunks_a_round);
    uint64_t grain = SLICE_GRAIN_BYTES * slicing->slices_a_chunk;
    uint64_t most = divide_up(bytes, grain) * SLICE_GRAIN_BYTES;
    uint64_t least = (uint64_t)slicing->slot_bytes * slicing->slots_a_slice / 32;

    if (slicing->slices_a_chunk == 1)
        return (uint32_t)bytes;
    if (most < least)
        most = least;
    return (uint32_t)(bytes <= slice * most ? 0 : smaller(bytes - slice * most, most));
}
