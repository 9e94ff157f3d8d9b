/* SPDX-License-Identifier: BSD-2-Clause */
/* How a collective is cut: ring or tree, channels, threads, and how many buffer steps a rank sends and receives on each
 * channel. */
#pragma once

#include "communicator/communicator.h"

struct shape {
    int function, channels, threads;
    uint64_t unit; /* steps of a chunk: an operation begins at a multiple of it */
    uint32_t slice_steps;
    uint64_t send_steps, receive_steps;
    bool is_tree;            /* else the ring; the steps go each way between a rank and its parent or child */
    uint64_t chunk_elements; /* of a tree */
};

struct shape shape_of(const struct ncclComm *comm, const struct task *task);
