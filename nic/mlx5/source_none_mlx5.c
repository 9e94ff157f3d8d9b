/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for source_mlx5.c in a build without mlx5: says so. */
#include <errno.h>

#include "nic/source/source.h"
#include "wire/log.h"

int source_open_mlx5(struct source **source, const struct source_device_options *options)
{
    (void)source;
    (void)options;
    return log_error_return(-ENOTSUP,
                            "--source mlx5: this qpscope-nic was built without mlx5; install libibverbs-dev and "
                            "build again with -Dmlx5=enabled");
}
