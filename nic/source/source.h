/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where traffic comes from. Two sorts: a source of frames (a capture file, DPDK ports) hands out bursts, whose bytes
 * stay valid until the next one is asked for; a counting source (mlx5, psn; the place of dpa) hands out what others
 * have counted of each queue pair: endpoints, and readings of them with their true intervals. Which fields a kind fills
 * is said in wire/traffic_source.def. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "nic/dpdk/steering.h"
#include "nic/frame/frame.h"
#include "wire/option.h"
#include "wire/record.h"

#define SOURCE_BURST_FRAMES 64
#define SOURCE_PORTS_MAX    32
#define SOURCE_QUEUES_MAX   64
#define SOURCE_HEADER_BYTES 256 /* of a frame that is split: the headers of every encapsulation */

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

/* What a counting source hands out; the endpoint's record comes before a reading of it, and again when it changed. */
struct source_count {
    enum record_kind kind; /* RECORD_ENDPOINT or RECORD_READING */
    union {
        struct record_endpoint endpoint;
        struct record_reading reading;
    };
};

struct source_device_options {
    const struct option_list *devices; /* "NAME[/PORT]" of RDMA devices; none: all */
    uint64_t interval_ns;              /* between two readings; 0 = psn: 10 ms, mlx5: as fast as they are answered */
    bool is_dry;                       /* mlx5: print on standard output what would be asked of the device, and end */
};

struct source_dpdk_options {
    const struct option_list *ports;
    const struct option_list *eal_arguments;
    unsigned queues;     /* of each port, each read by a thread of its own: 1 to SOURCE_QUEUES_MAX */
    bool is_promiscuous; /* frames of other hosts too */
    struct steering_wish steering;
};

/* One of a port's own statistics, under the name that its driver gives it. */
typedef void (*source_statistic)(void *context, const char *name, uint64_t value);

/* All are -errno after logging what happened. */
int source_open_file(struct source **source, const char *path);
/* `sources`: one a queue; on an error those that are not NULL are to be closed. */
int source_open_dpdk(struct source **sources, const struct source_dpdk_options *options);
/* Prints the rules that it would make at the ports, and makes none. */
int source_print_dpdk(const struct source_dpdk_options *options, FILE *to);
int source_open_mlx5(struct source **source, const struct source_device_options *options);
int source_open_psn(struct source **source, const struct source_device_options *options);
void source_close(struct source **source);

/* Its kind, name, fields and grain as far as it knows them; a source of frames leaves grain_ns 0. */
void source_describe(const struct source *source, struct record_traffic_source *description);

/*
 * The next burst, up to SOURCE_BURST_FRAMES. Returns how many; 0 = none at present; -ENODATA at the end of a file;
 * another -errno (logged) when the source cannot go on: what came before stands.
 */
int source_receive(struct source *source, struct source_frame frames[SOURCE_BURST_FRAMES]);

/*
 * Of a counting source: what is new, up to `capacity`; returns how many, 0 = none at present. Reads the counters when
 * it is time to. Sources of frames have none.
 */
size_t source_counts(struct source *source, struct source_count *counts, size_t capacity);

/* Asks a counting source to hand out all its endpoints once more: somebody may not have heard of them. */
void source_repeat(struct source *source);

/* Queue pairs that a counting source knows of but does not count, for want of room or of the device's counters; only
 * rises. */
uint64_t source_refused(const struct source *source);

/*
 * The host side's word on a queue pair, for sources that have to be told which there are. `is_here`: it is one of this
 * machine's, so that its device's name means one of ours.
 */
void source_tell(struct source *source, const struct record_queue_pair *pair, bool is_here);

/*
 * Calls `visit` for each statistic that the port's driver keeps (DPDK: its xstats). May take milliseconds: it is called
 * from a thread of its own, beside all of the above but source_close.
 */
void source_statistics(struct source *source, uint32_t port, source_statistic visit, void *context);

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
