/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the sources have in common that count in RDMA devices: ports, endpoints, the readings of one round, and when the
 * next round is due. A kind embeds it as its first member, and puts the functions below into its operations. One
 * thread.
 */
#pragma once

#include "nic/counting/endpoint.h"
#include "nic/port/rdma_port.h"
#include "nic/source/source_private.h"

struct rdma_netlink;

struct device_source_port {
    struct rdma_port port;
    uint32_t device; /* the kernel's index */
};

struct device_source {
    struct source source;
    struct rdma_netlink *netlink;
    struct device_source_port ports[SOURCE_PORTS_MAX];
    size_t ports_count;
    struct endpoint_table *endpoints;
    struct record_reading *readings; /* as many as there can be endpoints */
    size_t readings_count;
    size_t readings_taken;
    uint64_t interval_ns;
    uint64_t due_ns; /* the next round */
    uint64_t covered_ns;
    uint64_t grain_ns; /* between rounds, of late */
};

/* Room for that many endpoints. -ENOMEM after logging; device_source_close is to be called all the same. */
int device_source_init(struct device_source *source, unsigned endpoints_max, uint64_t interval_ns);
void device_source_fini(struct device_source *source);

/*
 * Opens netlink and calls `add` for each port that was asked for, which has its index then, so that it can be added to
 * the ports (or not). -errno after logging.
 */
int device_source_open_ports(struct device_source *source, const struct option_list *devices,
                             int (*add)(struct device_source *source, const struct device_source_port *port));

/* A round of readings, begun at `began_ns`, is whole: says how often they come. */
void device_source_end_round(struct device_source *source, uint64_t began_ns);

/* What has changed of endpoints, then what is left of the readings. */
size_t device_source_hand_out(struct device_source *source, struct source_count *counts, size_t capacity);

/* Operations of the seam. */
size_t device_source_ports(const struct source *source, struct record_port *ports, size_t capacity);
uint64_t device_source_covered_ns(const struct source *source);
void device_source_describe(const struct source *source, struct record_traffic_source *description);
void device_source_repeat(struct source *source);
void device_source_rest(struct source *source, size_t received);
