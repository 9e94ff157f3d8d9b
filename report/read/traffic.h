/* SPDX-License-Identifier: BSD-2-Clause */
/* The named flows of a store, and what each carried over time. One thread a store reader. */
#pragma once

#include <stdint.h>

#include "report/read/rate.h"
#include "report/read/store_reader.h"

enum traffic_detail {
    TRAFFIC_MESSAGES, /* data messages, each spread evenly over its time */
    TRAFFIC_WINDOWS,  /* windows, where they were asked for */
};

/* Of traffic_flows_sql: a named flow a row, where it is seen best. */
enum traffic_column {
    TRAFFIC_FLOW,
    TRAFFIC_RANK, /* who sends; NULL: not known */
    TRAFFIC_PEER_RANK,
    TRAFFIC_COMMUNICATOR,
    TRAFFIC_DEVICE, /* as "mlx5_0/1" */
    TRAFFIC_QPN,
};

extern const char traffic_flows_sql[];

/*
 * What flow carried from times[0] to times[1] (STORE_NULL twice: ever), ready for rate_next. `rate` begins as
 * zeros and is to be ended by rate_fini in any case. -errno after logging.
 */
int traffic_rate(struct store_reader *store, enum traffic_detail detail, int64_t flow,
                 const struct store_value times[2], struct rate *rate);

/* When the steps range[0] to range[1] begin and end; STORE_NULL twice of STORE_NULL twice. -errno after logging. */
int traffic_times(struct store_reader *store, const struct store_value range[2], struct store_value times[2]);
