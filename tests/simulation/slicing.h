/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How NCCL cuts an operation into slices, in the arithmetic of its device code: rounds over all channels (2.13's, which
 * RCCL 5.4 has too) or over a channel's own part (2.20 and later), chunks of a ring step or a message, slices of a
 * chunk, each in one slot or two of the connection's eight. With LL and LL128 a chunk is one slice, in one slot, and
 * more goes over the wire than is in it: LL stores 8 bytes with 8 of flags, LL128 writes 1920 bytes in 2048, and no
 * less than that. Bytes of data, all of them multiples of an element's 4, unless the wire's are meant. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

#define SLICING_STEPS 8 /* slots of a connection */

enum slicing_protocol {
    SLICING_SIMPLE,
    SLICING_LL,
    SLICING_LL128,
    SLICING_MIXED, /* LL, LL128 and Simple by the bytes of a rank, as the library chooses */
};

struct slicing {
    enum slicing_protocol protocol;
    enum operation_kind operation;
    bool tree;
    uint64_t bytes; /* AllReduce, Broadcast, SEND: all of it; AllGather, ReduceScatter: a rank's part */
    uint32_t ranks, channels;
    uint32_t parts;          /* of a round: a channel's, or each rank's on each channel */
    uint32_t slot_bytes;     /* of one of the eight */
    uint32_t round_bytes;    /* a chunk is a multiple of it */
    uint32_t slices_a_chunk; /* 1 or 2 */
    uint32_t slots_a_slice;  /* 1 or 2 */
    uint32_t chunks_a_round; /* that a rank sends on a channel in a round */
    uint32_t count;          /* slices that a rank sends on a channel, in all */
    uint32_t grain_bytes;    /* of a channel's own part: a full chunk is a multiple of it, */
    bool is_own;             /* and of round_bytes in the last round alone */
    uint32_t depth;          /* slices for which there are slots */
};

struct slicing_options {
    uint32_t buffer_bytes; /* of a connection: NCCL_BUFFSIZE */
    uint32_t round_bytes;
    uint32_t message_bytes;         /* the chunk of sends */
    enum slicing_protocol protocol; /* of collectives */
    bool tree;                      /* an AllReduce goes up and down a tree, slices of one slot */
    uint32_t version;               /* of the library; 0: before 2.20 */
};

void slicing_init(struct slicing *slicing, const struct slicing_options *options, enum operation_kind operation,
                  uint64_t bytes, uint32_t ranks, uint32_t channels);

/* That of one channel; where all go over all of it together, nothing changes. count is 0 when it takes no part. */
void slicing_narrow(struct slicing *slicing, const struct slicing_options *options, uint32_t channel);

/* Bytes on the wire of the n-th slice that the rank at `place` of the channel's ring sends. */
uint32_t slicing_bytes(const struct slicing *slicing, uint32_t place, uint32_t channel, uint32_t number);
