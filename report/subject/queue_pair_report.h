/* SPDX-License-Identifier: BSD-2-Clause */
/* The map of queue pairs: what qpscope qps prints. */
#pragma once

#include <stdbool.h>

#include "report/report.h"

/* Only those that fit; a member that is NULL (rank: STORE_NULL) asks for nothing. */
struct queue_pair_filter {
    struct store_value rank;
    const char *device;       /* mlx5_0 or mlx5_0/1 */
    const char *communicator; /* its number, or at least four digits of its identity */
    bool all;                 /* also destroyed, unused, flush and foreign ones, and flows without an owner */
};

/* -errno after logging. */
int queue_pair_report_print(struct report *report, const struct queue_pair_filter *filter);
