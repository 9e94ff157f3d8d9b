/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set of RCCL connections that move data together, as its device code drives them. Opened, used and closed by one
 * thread; what was handed to the network is told to the launch's facts at the close.
 */
#pragma once

#include "fact.h"
#include "rccl_layout.h"

#include <stdbool.h>

struct place { /* where in a launch a thread works */
    const struct devcomm *devcomm;
    const struct channel *channel;
    int channel_number;
    const struct work *work;
    struct facts *facts;
};

struct link_end {
    struct conn *conn;
    int peer;
    uint64_t step;
    uint64_t bytes, pieces; /* handed to the network; of sending ends */
};

struct links {
    const struct place *place;
    enum proto proto;
    enum redop redop;
    enum dtype type;
    int elem_bytes;
    int slices, steps; /* Simple only: slices in one move, buffer steps in one slice */
    int receive_count, send_count;
    struct link_end receive[TREE_ARITY], send[TREE_ARITY];
    bool aborted;
};

/* from and to: peers, ended by -1 or by the count; conn_index: which of a peer's connections. */
void links_open(struct links *links, int conn_index, const int *from, int from_max, const int *to, int to_max);
void links_close(struct links *links);

/* One move of n elements. in: the user's operand, or NULL; out: where the result goes in user memory, or NULL. */
void links_move(struct links *links, bool receives, bool sends, const char *in, char *out, int64_t n);
