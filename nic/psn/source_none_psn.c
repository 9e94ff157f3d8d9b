/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for source_psn.c in a build without libmnl: says so. */
#include <errno.h>

#include "nic/source/source.h"
#include "wire/log.h"

int source_open_psn(struct source **source, const struct source_device_options *options)
{
    (void)source;
    (void)options;
    return log_error_return(-ENOTSUP, "--source psn: this qpscope-nic was built without libmnl; install libmnl-dev and "
                                      "build again with -Dpsn=enabled");
}
