/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A strand: the data that one queue pair of a connection carried, in the order in which it was begun, cut into pieces.
 * A piece ends with the message that carries immediate data: a big one is a write and a 0-byte write with immediate, a
 * small one a single write with immediate. It is a slot, or the part of one that went over this queue pair. One thread.
 */
#pragma once

#include "correlator/naming/naming.h"

struct slot { /* of the connection's buffer: what the library sends at once */
    uint64_t first_ns;
    uint64_t last_ns;
    uint64_t data_last_ns; /* last frame that carried data; first_ns when none did */
    uint64_t bytes;
    uint32_t retransmitted; /* messages */
    bool whole;             /* all its frames were seen, and its size is what its immediate data says */
};

struct piece {
    struct slot slot; /* `whole`: no frame is known to be missing; whether its size is right is not looked at */
    uint32_t immediate;
    bool ended;   /* with `immediate` */
    size_t place; /* the slot that it became: set by rotation_weave */
};

struct slot_message {
    size_t slot; /* of a strand: the piece */
    int32_t message;
};

struct strand {
    size_t stream; /* the emitter that saw it */
    ARRAY(struct piece) pieces;
    ARRAY(struct slot_message) messages;
};

/* The data of a flow; of none (-1) an empty strand. */
void strand_build(struct strand *strand, const struct naming *naming, int32_t flow);
void strand_fini(struct strand *strand);

/* Whether the size in immediate data is `bytes`. It is in the sender's byte order up to NCCL 2.29, big-endian after. */
bool strand_says(uint32_t immediate, uint64_t bytes);
