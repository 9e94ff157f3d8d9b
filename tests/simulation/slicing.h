/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How NCCL cuts an operation into slices, in the arithmetic of its device code (Simple protocol; 2.13's, which RCCL 5.4
 * has too): rounds over all channels, chunks of a ring step or a message, slices of a chunk, each in one slot or two of
 * the connection's eight. Bytes, all of them multiples of an element's 4. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

#define SLICING_STEPS 8 /* slots of a connection */

struct slicing {
    enum operation_kind operation;
    uint64_t bytes; /* AllReduce, Broadcast, SEND: all of it; AllGather, ReduceScatter: a rank's part */
    uint32_t ranks, channels;
    uint32_t parts;          /* of a round: a channel's, or each rank's on each channel */
    uint32_t slot_bytes;     /* of one of the eight */
    uint32_t round_bytes;    /* a chunk is a multiple of it */
    uint32_t slices_a_chunk; /* 1 or 2 */
    uint32_t slots_a_slice;  /* 1 or 2 */
    uint32_t chunks_a_round; /* that a rank sends on a channel in a round */
    uint32_t count;          /* slices that a rank sends on a channel, in all */
    uint32_t depth;          /* slices for which there are slots */
};

struct slicing_options {
    uint32_t buffer_bytes; /* of a connection: NCCL_BUFFSIZE */
    uint32_t round_bytes;
    uint32_t message_bytes; /* the chunk of sends */
    bool tree;              /* an AllReduce goes up and down a tree, slices of one slot */
};

void slicing_init(struct slicing *slicing, const struct slicing_options *options, enum operation_kind operation,
                  uint64_t bytes, uint32_t ranks, uint32_t channels);

/* Bytes of the n-th slice that the rank at `place` of the channel's ring sends. */
uint32_t slicing_bytes(const struct slicing *slicing, uint32_t place, uint32_t channel, uint32_t number);
