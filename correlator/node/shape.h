/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a collective looks like on one channel: the sizes of the pieces ("slots" of the connection's buffer) that a
 * rank sends, in order, as NCCL's arithmetic of chunks and slices gives them. Every slot is one message with immediate
 * data on the wire, also when nothing is left for it. Pure functions, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum shape_protocol {
    SHAPE_SIMPLE,
    SHAPE_LL,       /* 8 bytes of data in lines of 16 */
    SHAPE_LL128,    /* 120 in lines of 128, 16 lines at least: NCCL */
    SHAPE_LL128_64, /* 56 in lines of 64, 32 lines at least: RCCL */
    SHAPE_PROTOCOLS,
};

enum shape_division {               /* how a collective is divided among channels, by NCCL's version; see division.c */
                      SHAPE_LOOPS,  /* all channels go over all of it together: to 2.19, and RCCL 5.4.3 */
                      SHAPE_RANGES, /* from here on each channel has a part of its own */
                      SHAPE_CELLS_2_22,
                      SHAPE_CELLS_2_23,
                      SHAPE_CELLS_2_26,
                      SHAPE_CELLS_2_29,
                      SHAPE_DIVISIONS,
};

struct shape {
    enum shape_protocol protocol;
    unsigned channels; /* by which it is divided */
    unsigned threads;
    uint32_t buffer_bytes; /* of one connection; of a tree eight of its chunks, which may be smaller */
    bool tree;             /* an all-reduce that goes up a tree and down again, on all its edges alike; else a ring */
    enum shape_division division;
    unsigned limit; /* channels of the communicator; 0: those by which it is divided */
};

struct collective {
    uint8_t kind;      /* enum operation_kind */
    uint64_t elements; /* as the library splits them */
    uint32_t element_bytes;
    int32_t ranks;
};

/* How the library sees a call: AllGather and Broadcast are split in bytes. False for what is no ring collective. */
bool shape_collective(struct collective *collective, uint8_t kind, uint64_t count, uint8_t datatype, int32_t ranks);

/* Returns false to stop. */
typedef bool (*shape_visit)(void *context, uint64_t slot_bytes);

/*
 * Blocks are numbered up to this. Of SHAPE_LOOPS block n is on any channel; else it is channel n's, and there may be
 * some that take no part.
 */
unsigned shape_blocks(const struct shape *shape, const struct collective *collective);
bool shape_takes(const struct shape *shape, const struct collective *collective, unsigned block);

/* Whether a call of such a communicator may leave a channel out though it is divided by all of them. */
bool shape_may_leave(const struct collective *collective, unsigned channel, unsigned channels,
                     enum shape_division division);

/*
 * Shows every slot that the rank at ring position `index` sends as block `block` of the collective. False when the
 * visitor stopped it.
 */
bool shape_walk(const struct shape *shape, const struct collective *collective, int32_t index, unsigned block,
                shape_visit visit, void *context);

/* Payload bytes that one rank sends in all where nothing is rounded; the protocols with flags send more by their share.
 */
uint64_t shape_volume(const struct collective *collective);

struct shape_range {   /* of shapes to try */
    unsigned channels; /* at most */
    enum shape_division division;
};

/* The number-th ring to try, likely ones first; false when there is none left. */
bool shape_candidate(struct shape *shape, unsigned number, const struct shape_range *range);

/* The number-th tree to try, in the same way. */
bool shape_tree_candidate(struct shape *shape, unsigned number, const struct shape_range *range);
