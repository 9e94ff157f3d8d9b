/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for source_dpdk.c in a build without DPDK: says so. */
#include <errno.h>

#include "nic/source.h"
#include "wire/log.h"

int source_open_dpdk(struct source **source, const struct option_list *ports, const struct option_list *eal_arguments)
{
    (void)source;
    (void)ports;
    (void)eal_arguments;
    return log_error_return(-ENOTSUP, "--port: this qpscope-nic was built without DPDK; install libdpdk-dev and build "
                                      "again with -Ddpdk=enabled, or give --file a capture");
}
