/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one stream has told of each port, added up for who watches the program: it sees the records on their way out
 * (emitter_options.tap), every 100 ms or so, never a frame. Written by the stream's thread without waiting; read by any
 * other.
 */
#pragma once

#include "nic/source/source.h"
#include "wire/record.h"

enum board_traffic {
#define TRAFFIC(name, text, field, unit, help) BOARD_##name,
#include "wire/metric/traffic.def"
#undef TRAFFIC
    BOARD_TRAFFIC,
};

#define BOARD_VANTAGES 3
#define BOARD_METRICS  69 /* above the largest number in wire/port_metric.def */
#define BOARD_SLOTS    9  /* priorities 0 to 7, and the whole port */

struct board_port {
    struct record_port record;
    uint64_t traffic[BOARD_VANTAGES][BOARD_TRAFFIC]; /* by enum vantage */
    uint64_t counters[BOARD_METRICS][BOARD_SLOTS];
    uint64_t known[BOARD_METRICS]; /* a bit a slot */
    uint64_t lost_frames;
};

struct board;

/* For flows numbered up to `flows_max`. -ENOMEM, logged. */
int board_create(struct board **board, uint32_t flows_max);
void board_destroy(struct board **board);

/* Of emitter_options. */
void board_take(void *board, const struct record_header *record);

/* Any thread: how many ports there are, and one of them as it is now. */
size_t board_ports(const struct board *board);
void board_read(const struct board *board, size_t index, struct board_port *port);
