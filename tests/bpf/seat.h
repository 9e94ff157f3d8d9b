/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the ranks of a child communicator meet, when all ranks are threads of one process: each takes a seat, waits
 * until all that are expected sit, and then knows its rank, as NCCL orders them: by key, then by the parent's rank.
 */
#pragma once

#include <stdint.h>

struct seat {
    uint64_t parent; /* its hash */
    int child;       /* which of its children */
    int color;       /* < 0: takes no part */
    int key;
    int rank; /* in the parent */
};

/* Blocks until `expected` seats of this child are taken. Of those with the same colour: how many, and which this is. */
void seat_take(const struct seat *seat, int expected, int *ranks, int *rank);
