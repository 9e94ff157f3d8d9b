/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for source_dpdk.c in a build without DPDK: says so. */
#include <errno.h>

#include "nic/source/source.h"
#include "wire/log.h"

static int refuse(void)
{
    return log_error_return(-ENOTSUP, "--port: this qpscope-nic was built without DPDK; install libdpdk-dev and build "
                                      "again with -Ddpdk=enabled, or give --file a capture");
}

int source_open_dpdk(struct source **sources, const struct source_dpdk_options *options)
{
    (void)sources;
    (void)options;
    return refuse();
}

int source_print_dpdk(const struct source_dpdk_options *options, FILE *to)
{
    (void)options;
    (void)to;
    return refuse();
}
