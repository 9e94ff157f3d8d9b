/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dividing a collective among channels. Source: NCCL's public sources, enqueue.cc and device.h of 2.18 to 2.30, read
 * for a call that is alone in its group (calls of one group share channels, which is not known here).
 *
 * - to 2.19: every channel goes over all of it, in loops of one chunk a channel; shape.c.
 * - 2.20, 2.21: channels have ranges one behind the other, as long as an equal share of the bytes rounded up to what
 *   the protocol moves at once: 4096 bytes with Simple, 8 for each thread with LL, 480 for each warp with LL128.
 * - from 2.22 on: ranges of whole cells. A channel is worth `traffic / channels` bytes on the wire, where a byte of a
 *   call is worth 2 of an all-reduce, as many as there are ranks of a gather or scatter, else 1. Cells of 16 bytes and
 *   512 of traffic a channel at least; from 2.23 on the least is 16 KiB and a cell is worth as much; from 2.26 on LL
 *   counts four times; from 2.29 on 32 KiB, and a channel's traffic is a multiple of 16.
 *
 * Invariant: the parts of all channels add up to the collective.
 */
#include "correlator/node/division.h"

#include "wire/record.h"

#define CELL_BYTES 16u /* all cells are multiples of it */
#define WARP       32u

static const struct rule {
    uint32_t version;        /* from this one on */
    uint32_t least_traffic;  /* of a channel */
    uint32_t little_traffic; /* of a call at least */
    uint32_t flag_times;     /* that LL's bytes count */
    bool worth_cells;        /* a cell is worth the least traffic, and a channel's cells are rounded up */
    bool rounds;             /* a channel's traffic is rounded up, and may be less than the least */
} rules[] = {
    [SHAPE_LOOPS] = {.version = 0},
    [SHAPE_RANGES] = {.version = 22000},
    [SHAPE_CELLS_2_22] = {.version = 22200, .least_traffic = 512, .flag_times = 1},
    [SHAPE_CELLS_2_23] = {22300, 16u << 10, 16u << 10, 1, true, false},
    [SHAPE_CELLS_2_26] = {22600, 16u << 10, 16u << 10, 4, true, false},
    [SHAPE_CELLS_2_29] = {22900, 32u << 10, 32u << 10, 4, true, true},
};

struct cells {      /* of the channels that take part, from the `first` on */
    uint64_t bytes; /* of a cell */
    uint64_t all;
    uint64_t low;
    uint64_t each; /* of those in the middle */
    uint64_t high;
    uint64_t middle; /* channels */
    unsigned first;
};

static uint64_t divide_up(uint64_t value, uint64_t by)
{
    return (value + by - 1) / by;
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return divide_up(value, to) * to;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

enum shape_division division_of_version(uint32_t version)
{
    enum shape_division division = SHAPE_LOOPS;

    for (unsigned i = 0; i < SHAPE_DIVISIONS; i++)
        if (version >= rules[i].version)
            division = (enum shape_division)i;
    return division;
}

enum shape_division division_in_turn(enum shape_division first, unsigned turn)
{
    return turn == 0 ? first : (enum shape_division)(turn <= first ? turn - 1 : turn);
}

uint64_t division_unit(const struct shape *shape, const struct collective *collective)
{
    uint64_t bytes = shape->protocol == SHAPE_SIMPLE ? 4096
                     : shape->protocol == SHAPE_LL   ? (uint64_t)shape->threads * 8
                                                     : shape->threads / WARP * (uint64_t)480;

    if (shape->division != SHAPE_RANGES)
        bytes = CELL_BYTES;
    return most(bytes / collective->element_bytes, 1);
}

static uint64_t traffic_of_byte(const struct collective *collective)
{
    switch (collective->kind) {
    case OPERATION_ALL_REDUCE:
        return 2;
    case OPERATION_ALL_GATHER:
    case OPERATION_REDUCE_SCATTER:
        return (uint64_t)collective->ranks;
    default:
        return 1;
    }
}

/* More channels would be needed than there are: all but the first have equal parts, the last one the rest, too. */
static void squeeze(struct cells *cells, uint64_t limit)
{
    uint64_t left = cells->all - cells->low;

    cells->middle = limit - 2;
    cells->each = left / (limit - 1);
    cells->high = cells->each + left % (limit - 1);
}

/* The last channel that takes part is the high one, if there are several; the first one the low one. */
static void settle(struct cells *cells)
{
    if (cells->high == 0 && cells->middle > 0) {
        cells->high = cells->each;
        cells->middle--;
    }
    if (cells->low > 0)
        return;
    cells->first = 1;
    cells->low = cells->middle == 0 ? cells->high : cells->each;
    if (cells->middle == 0)
        cells->high = 0;
    else
        cells->middle--;
}

static struct cells deal(const struct shape *shape, const struct collective *collective)
{
    const struct rule *rule = &rules[shape->division];
    uint64_t times = traffic_of_byte(collective) * (shape->protocol == SHAPE_LL ? rule->flag_times : 1);
    uint64_t bytes = collective->elements * collective->element_bytes;
    uint64_t traffic = most(bytes * times, rule->little_traffic) / shape->channels;
    uint64_t limit = shape->limit == 0 ? shape->channels : shape->limit;
    struct cells cells = {.bytes = CELL_BYTES};

    traffic = rule->rounds ? round_up(traffic, CELL_BYTES) : most(traffic, rule->least_traffic);
    if (rule->worth_cells)
        cells.bytes = round_up(divide_up(rule->least_traffic, times), CELL_BYTES);
    uint64_t worth = cells.bytes * times;
    cells.all = divide_up(bytes, cells.bytes);
    cells.each = least(cells.all, divide_up(traffic, worth));
    cells.low = least(cells.all, rule->worth_cells ? divide_up(traffic, worth) : traffic / worth);
    if (limit == 1)
        cells.low = cells.all;
    cells.middle = (cells.all - cells.low) / cells.each;
    cells.high = (cells.all - cells.low) % cells.each;
    if ((cells.low > 0) + cells.middle + (cells.high > 0) > limit)
        squeeze(&cells, limit);
    settle(&cells);
    return cells;
}

static uint64_t part_in_cells(const struct shape *shape, const struct collective *collective, unsigned channel)
{
    const struct cells cells = deal(shape, collective);
    uint64_t a_cell = cells.bytes / collective->element_bytes;
    uint64_t last = cells.middle + (cells.high > 0);

    if (channel < cells.first || channel - cells.first > last)
        return 0;
    uint64_t number = channel - cells.first;
    uint64_t here = number == 0 ? cells.low : number == last ? cells.high : cells.each;
    return here * a_cell - (number == last ? cells.all * a_cell - collective->elements : 0);
}

static uint64_t range_of(const struct shape *shape, const struct collective *collective)
{
    return round_up(divide_up(collective->elements, shape->channels), division_unit(shape, collective));
}

uint64_t division_part(const struct shape *shape, const struct collective *collective, unsigned channel)
{
    if (shape->division == SHAPE_LOOPS)
        return channel < shape->channels ? collective->elements : 0;
    if (shape->division != SHAPE_RANGES)
        return part_in_cells(shape, collective, channel);
    uint64_t part = range_of(shape, collective);
    uint64_t before = channel * part;
    return before >= collective->elements ? 0 : least(part, collective->elements - before);
}

unsigned division_channels(const struct shape *shape, const struct collective *collective)
{
    if (shape->division == SHAPE_LOOPS)
        return shape->channels;
    if (shape->division == SHAPE_RANGES)
        return (unsigned)divide_up(collective->elements, range_of(shape, collective));
    const struct cells cells = deal(shape, collective);
    return (unsigned)(cells.first + 1 + cells.middle + (cells.high > 0));
}
