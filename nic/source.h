/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where frames come from: a capture file, or DPDK ports. A source hands out bursts; the bytes of a burst stay valid
 * until the next one is asked for. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/frame.h"
#include "wire/option.h"
#include "wire/record.h"

#define SOURCE_BURST_FRAMES 64
#define SOURCE_PORTS_MAX    32

struct source;

struct source_frame {
    const uint8_t *bytes;
    uint32_t captured_bytes;
    uint32_t original_bytes;
    uint64_t at_ns; /* a file: as it says; live: CLOCK_MONOTONIC of this process; 0 = unknown */
    uint32_t port;  /* counts from 1 */
    enum frame_layer layer;
};

struct source_loss {
    uint32_t port;
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t frames;
};

/* All are -errno after logging what happened. */
int source_open_file(struct source **source, const char *path);
int source_open_dpdk(struct source **source, const struct option_list *ports, const struct option_list *eal_arguments);
void source_close(struct source **source);

/*
 * The next burst, up to SOURCE_BURST_FRAMES. Returns how many; 0 = none at present; -ENODATA at the end of a file;
 * another -errno (logged) when the source cannot go on: what came before stands.
 */
int source_receive(struct source *source, struct source_frame frames[SOURCE_BURST_FRAMES]);

/* The ports that are watched: fills up to `capacity` records, returns how many there are. */
size_t source_ports(const struct source *source, struct record_port *ports, size_t capacity);

/* A loss that was found since the last call; false when there is none. Not for every burst: it may read files. */
bool source_take_loss(struct source *source, struct source_loss *loss);

/*
 * Every frame stamped up to this time has been handed out (a file: as far as it has been read; live: CLOCK_MONOTONIC).
 * 0 = none yet.
 */
uint64_t source_covered_ns(const struct source *source);

/* Live: sleeps when there is little to do; `received` is what the last bursts brought. A file: returns at once. */
void source_rest(struct source *source, size_t received);
