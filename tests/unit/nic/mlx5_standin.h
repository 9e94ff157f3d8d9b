/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that answers as an mlx5 device is documented to: takes commands and rules apart by bit offsets of its own
 * (the programmer's reference as public headers state it), keeps counters, and counts the traffic that a test lets
 * pass.
 */
#pragma once

#include "nic/mlx5/mlx5_device.h"

struct standin_limits {
    unsigned counters;      /* in all */
    unsigned bulk_log_most; /* larger bulks are refused */
    unsigned rules;
    bool has_memory;
    bool has_offsets;
    bool has_received;
    bool has_table;
    bool is_transport; /* of another function, with this vport */
    uint16_t vport;
    unsigned query_ms; /* how long a query takes */
};

struct mlx5_device *standin_open(const struct standin_limits *limits);

/* Packets of a queue pair: counted where a rule matches, as a device does. */
void standin_pass(struct mlx5_device *device, enum mlx5_direction direction, uint32_t qpn, uint64_t packets,
                  uint64_t octets);

/* Sets all counters to zero. */
void standin_reset(struct mlx5_device *device);

struct standin_tally {
    unsigned counters; /* that are there now */
    unsigned rules;
    unsigned queries; /* ever */
    unsigned dumps;   /* those of them to memory */
    unsigned unaligned;
    const char *wrong; /* the first thing that no device would take; NULL: none */
};
void standin_tally(const struct mlx5_device *device, struct standin_tally *tally);
