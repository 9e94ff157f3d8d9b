/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Made traffic for the benchmarks: RDMA writes of 512 KiB, flows taking turns frame by frame, in buffers 4 KiB apart
 * that are filled again before each turn; and what a meter must have counted of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/meter.h"

#define TRAFFIC_BUFFER_BYTES   4096u
#define TRAFFIC_HEADROOM       128u /* before the frame in its buffer, as DPDK has it */
#define TRAFFIC_CAPTURED_BYTES 70u
#define TRAFFIC_MESSAGE_BYTES  (512u * 1024u)

struct traffic {
    uint32_t flows;
    uint32_t payload_bytes; /* a frame */
    uint32_t strangers;     /* of so many other flows a frame comes behind each of ours; 0 = none */
    size_t buffers_count;
    uint8_t *buffers;
    size_t next_buffer;
    uint32_t next_flow;
    uint32_t next_psn;
    uint64_t frames; /* filled so far, strangers' included */
    uint64_t strange_frames;
};

/* -ENOMEM. Its buffers are a multiple of the flows. */
int traffic_create(struct traffic *traffic, uint32_t flows, uint32_t payload_bytes, uint32_t strangers,
                   size_t buffers_wanted);
void traffic_destroy(struct traffic *traffic);

/* Fills all buffers with the frames that come next. */
void traffic_fill(struct traffic *traffic);

/* The frame in a buffer. */
uint8_t *traffic_frame(const struct traffic *traffic, size_t buffer);
uint32_t traffic_frame_bytes(const struct traffic *traffic);

/* Whether the meter has counted all that was filled, to the frame and byte; says what is wrong on standard error. */
bool traffic_is_counted(const struct traffic *traffic, struct meter *meter);
