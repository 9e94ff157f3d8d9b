/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cells are handed to one channel after the other, each as many as its quota, until there are none left. The quota is
 * an equal share of what the operation costs on the wire; a channel of little cost is not worth opening, so that a cell
 * costs at least as much. When the channels are used up before the cells, all but the first are filled alike.
 */
#include "tests/simulation/sharing.h"

#include <string.h>

#define CHANNELS_MAX 64

struct hand { /* cells of each channel */
    uint64_t cells[CHANNELS_MAX];
    uint32_t used; /* may be one more than there are */
};

static uint64_t up(uint64_t bytes, uint64_t unit)
{
    return bytes % unit == 0 ? bytes : bytes - bytes % unit + unit;
}

static uint64_t parts(uint64_t all, uint64_t part)
{
    return up(all, part) / part;
}

static uint64_t cost_of_byte(const struct sharing *sharing)
{
    uint64_t cost = 1;

    if (sharing->operation == OPERATION_ALL_REDUCE)
        cost = 2;
    if (sharing->operation == OPERATION_ALL_GATHER || sharing->operation == OPERATION_REDUCE_SCATTER)
        cost = sharing->ranks;
    return sharing->protocol == SLICING_LL && sharing->version >= 22600 ? 4 * cost : cost;
}

static uint64_t worth_a_channel(const struct sharing *sharing)
{
    if (sharing->version < 22300)
        return 512;
    return sharing->version < 22900 ? 16384 : 32768;
}

static uint64_t cell_bytes(const struct sharing *sharing)
{
    return sharing->version < 22300 ? 16 : up(parts(worth_a_channel(sharing), cost_of_byte(sharing)), 16);
}

/* What a channel should cost. */
static uint64_t cost_of_channel(const struct sharing *sharing)
{
    uint64_t worth = worth_a_channel(sharing), cost = sharing->bytes * cost_of_byte(sharing);

    if (sharing->version >= 22300 && cost < worth)
        cost = worth;
    cost /= sharing->channels;
    if (sharing->version >= 22900)
        return up(cost, 16);
    return cost < worth ? worth : cost;
}

static void fill_alike(struct hand *hand, uint64_t cells, uint32_t channels)
{
    uint64_t left = cells - hand->cells[0];

    for (uint32_t channel = 1; channel < channels; channel++)
        hand->cells[channel] = left / (channels - 1);
    hand->cells[channels - 1] += left % (channels - 1);
    hand->used = channels;
}

static void hand_out(struct hand *hand, const struct sharing *sharing)
{
    uint64_t cell_cost = cell_bytes(sharing) * cost_of_byte(sharing), cost = cost_of_channel(sharing);
    uint64_t cells = parts(sharing->bytes, cell_bytes(sharing)), left = cells;

    memset(hand, 0, sizeof *hand);
    while (left > 0 && hand->used <= sharing->channels) {
        bool whole = hand->used == 0 && sharing->version < 22300;
        uint64_t quota = whole ? cost / cell_cost : parts(cost, cell_cost);
        if (sharing->channels == 1)
            quota = cells;
        hand->cells[hand->used] = left < quota ? left : quota;
        left -= hand->cells[hand->used++];
    }
    if (left > 0 || hand->used - (hand->cells[0] == 0) > sharing->channels)
        fill_alike(hand, cells, sharing->channels);
}

uint32_t sharing_unit(const struct sharing *sharing)
{
    if (sharing->version >= 22200)
        return 16;
    return sharing->protocol == SLICING_LL      ? 8 * sharing->threads
           : sharing->protocol == SLICING_LL128 ? 480 * (sharing->threads / 32)
                                                : 4096;
}

uint32_t sharing_grain(const struct sharing *sharing)
{
    if (sharing->version < 22200)
        return 4;
    return sharing->protocol == SLICING_LL ? 16 : sharing->protocol == SLICING_LL128 ? 1920 : 512;
}

uint64_t sharing_bytes(const struct sharing *sharing, uint32_t channel)
{
    uint64_t before = 0, mine;

    if (sharing->version < 22200) {
        mine = up(parts(sharing->bytes, sharing->channels), sharing_unit(sharing));
        before = channel * mine;
    } else {
        struct hand hand;
        hand_out(&hand, sharing);
        for (uint32_t other = 0; other < channel; other++)
            before += hand.cells[other] * cell_bytes(sharing);
        mine = hand.cells[channel] * cell_bytes(sharing);
    }
    if (before >= sharing->bytes)
        return 0;
    return mine < sharing->bytes - before ? mine : sharing->bytes - before;
}
