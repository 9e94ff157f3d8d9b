/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of a source that counts, from its first reading to its end: nothing is measured, all is passed on. One thread.
 */
#pragma once

#include <stdatomic.h>

#include "nic/port/port_watch.h"
#include "nic/report.h"
#include "wire/metric/metric_page.h"

struct census_options {
    const char *name; /* of the source's kind */
    struct publisher_options publisher;
    struct port_watch_options ports;
    bool is_published;                    /* there is a link, or a capture file */
    uint64_t duration_ns;                 /* 0 = until it is stopped */
    const struct metric_page_place *http; /* where metrics are served: never NULL, its address may be */
};

/* Takes over the source, which is open; `report` may be NULL. -errno after logging. */
int census_run(struct source *source, const struct census_options *options, struct report *report,
               const atomic_bool *stop);
