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
    SHAPE_LL128,    /* 120 in 128: NCCL */
    SHAPE_LL128_64, /* 56 in 64: RCCL */
    SHAPE_PROTOCOLS,
};

struct shape {
    enum shape_protocol protocol;
    unsigned channels;
    unsigned threads;
    uint32_t buffer_bytes; /* of one connection; of a tree eight of its chunks, which may be smaller */
    bool tree;             /* an all-reduce that goes up a tree and down again, on all its edges alike; else a ring */
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
 * Shows every slot that the rank at ring position `index` sends as block `block` of the collective. False when the
 * visitor stopped it.
 */
bool shape_walk(const struct shape *shape, const struct collective *collective, int32_t index, unsigned block,
                shape_visit visit, void *context);

/* Payload bytes that one rank sends in all where nothing is rounded; the protocols with flags send more by their share.
 */
uint64_t shape_volume(const struct collective *collective);

/* The number-th tree to try, in the same way. */
bool shape_tree_candidate(struct shape *shape, unsigned number, unsigned channels);

/* The number-th ring to try with at most `channels` channels, likely ones first; false when there is none left. */
bool shape_candidate(struct shape *shape, unsigned number, unsigned channels);
