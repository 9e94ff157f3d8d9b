/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which ports' own counters are read beside a worker's traffic: those of its source, and those of RDMA devices that
 * were named. One thread.
 */
#pragma once

#include "nic/worker.h"

struct port_watch_options {
    const struct option_list *devices; /* "NAME[/PORT]" */
    uint64_t interval_ns;              /* 0 = none are read */
};

/*
 * Begins to read them. A source of frames keeps statistics of its own, and named devices get port numbers behind its
 * ports; of a source that counts the devices are its ports. -errno after logging.
 */
int port_watch_start(struct worker *worker, const struct port_watch_options *options, bool is_counting);
