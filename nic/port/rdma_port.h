/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of the machine's RDMA devices, as sysfs lists them. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/option.h"
#include "wire/record.h"

#define RDMA_NAME_BYTES 64

struct rdma_port {
    char device[RDMA_NAME_BYTES];
    unsigned number;
    char interface[16]; /* the network interface below it; empty where there is none */
    char driver[32];    /* the device's driver as its directory in sysfs says; empty for a software device */
    uint8_t address[ADDRESS_BYTES]; /* as it was given, or its one GID beside link-local ones; zeros when there are
                                       several, or none */
    uint32_t mtu_bytes;             /* the largest path MTU that it allows; 0 = not known */
    uint64_t bits_a_second;         /* 0 = not known */
};

/*
 * The ports that `wanted` ("DEVICE" or "DEVICE/PORT", and "@ADDRESS" behind it) names, or all when it is empty. `sysfs`
 * is the root of sysfs, "/sys". Returns how many, or -ENODEV after logging which one is not there and which are, or
 * -EINVAL after logging that an address is none.
 */
int rdma_port_list(const char *sysfs, const struct option_list *wanted, struct rdma_port *ports, size_t capacity);

/* "DEVICE/PORT", cut to fit. */
void rdma_port_name(const struct rdma_port *port, char *name, size_t bytes);
