/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a connection between the device and a proxy: eight buffer steps, the counters by which both sides
 * hand them over (as RCCL's protocol Simple has them), and the operations that the proxy shall carry. It lies in memory
 * that another process can map, for proxies that work for a neighbour's device. The enqueuing thread pushes operations,
 * the proxy's progress thread takes them.
 */
#pragma once

#include "rccl_layout.h"

#include <stdatomic.h>
#include <stdint.h>

enum { LANE_OPS = 1024 };

struct lane_op {
    uint64_t base, steps; /* the first step and how many */
    uint32_t slice_steps; /* steps that go together in one message */
};

struct lane_region {
    _Alignas(64) uint64_t head; /* of steps; what is behind it may be filled again */
    _Alignas(64) uint64_t tail; /* what is before it is filled */
    _Alignas(64) int sizes[STEPS];
    _Alignas(64) atomic_ulong pushed;
    _Alignas(64) atomic_ulong finished;
    struct lane_op ops[LANE_OPS];
};

struct lane {
    struct lane_region *region;
    char *buffer;
    int fd, step_bytes;
    uint64_t next_step; /* of the enqueuing side: where the next operation may begin */
};

/* 0 or -errno. */
int lane_create(struct lane *lane, int step_bytes);

/* Maps the lane whose descriptor is `fd` in process `pid`. */
int lane_attach(struct lane *lane, int pid, int fd, int step_bytes);
void lane_close(struct lane *lane);

/* The connection as the device's emulation wants it. */
void lane_describe(const struct lane *lane, struct conn *conn);

/* Waits for room when very many operations are pending. `unit`: the operation begins at a multiple of it. */
void lane_push(struct lane *lane, uint64_t unit, uint64_t steps, uint32_t slice_steps);

/* The oldest operation that is not finished, or NULL. */
const struct lane_op *lane_peek(const struct lane *lane);
void lane_finish(struct lane *lane);

char *lane_slot(const struct lane *lane, uint64_t step);
