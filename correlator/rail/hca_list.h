/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NCCL_IB_HCA: which ports of which RDMA devices NCCL may use. "[^][=]NAME[:PORT],...": ^ = all but these; = : names
 * are whole, else they are beginnings. Bounds-checked; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hca_list {
    const char *text; /* borrowed; not necessarily terminated. NULL: not given, and all may be used */
    size_t bytes;
};

bool hca_list_allows(struct hca_list list, const char *device, unsigned port);

/* Whether it asks for this very device, by its whole name. */
bool hca_list_names(struct hca_list list, const char *device, unsigned port);

/* The n-th device, from 0, that it asks for by its whole name ("="); false when there are no more. */
bool hca_list_name(struct hca_list list, size_t n, char *device, size_t device_bytes);
