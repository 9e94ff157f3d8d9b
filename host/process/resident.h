/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's list of queue pairs, over RDMA netlink. Empty where there are no RDMA devices, and where this build has
 * no libmnl. One thread.
 */
#pragma once

#include <stddef.h>

#include "host/tracker/tracker.h"

struct resident_list {
    struct tracker_resident *items;
    size_t count;
    size_t capacity;
};

/* Fills an empty list. 0 or -errno; what is missing is logged. */
int resident_read(struct resident_list *list);
void resident_free(struct resident_list *list);
