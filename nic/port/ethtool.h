/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics that an interface's driver keeps (SIOCETHTOOL inside; nowhere else). One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ethtool;

/* -ENODEV, -EOPNOTSUPP where the driver keeps none, another -errno; not logged. */
int ethtool_open(struct ethtool **ethtool, const char *interface);
void ethtool_close(struct ethtool **ethtool);

size_t ethtool_count(const struct ethtool *ethtool);
/* At most 31 characters. */
const char *ethtool_name(const struct ethtool *ethtool, size_t index);
const char *ethtool_driver(const struct ethtool *ethtool);

/* All values, in the order of the names; valid until the next call. NULL when they cannot be read now. */
const uint64_t *ethtool_read(struct ethtool *ethtool);
