/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the kernel for its RDMA devices and queue pairs (libmnl inside; nowhere else). Needs no device to be opened.
 * One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/rdma/rdma_message.h"

struct rdma_netlink;

/* A queue pair, read by the kernel at some time within [from_ns, to_ns] of CLOCK_MONOTONIC. */
typedef void (*rdma_netlink_visit)(void *context, const struct rdma_queue_pair *pair, uint64_t from_ns, uint64_t to_ns);

/* -errno after logging what is missing. */
int rdma_netlink_open(struct rdma_netlink **netlink);
void rdma_netlink_close(struct rdma_netlink **netlink);

/* The kernel's index of a device, or -ENODEV, -errno. */
int rdma_netlink_device(struct rdma_netlink *netlink, const char *name);

/* All queue pairs of a device. 0 or -errno, not logged. */
int rdma_netlink_queue_pairs(struct rdma_netlink *netlink, uint32_t device, rdma_netlink_visit visit, void *context);

/*
 * The device's own context of a queue pair, as its driver dumps it. 0 with *length_bytes, or -errno, not logged:
 * -EOPNOTSUPP where the driver has none, -EPERM without CAP_NET_ADMIN.
 */
int rdma_netlink_context(struct rdma_netlink *netlink, uint32_t device, uint32_t qpn, uint8_t *bytes, size_t capacity,
                         size_t *length_bytes);
