/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A block device that is slow: null_blk, loaded so that it completes each request after a while (the lab does this for
 * faults that need it). Without it the program ends, saying so. What is read is never read again, so nothing is cached.
 */
#pragma once

#include <stdint.h>

/* The calling thread reads blocks, past the page cache, until the time is over. */
void disk_read_for(uint64_t duration_ns);

/* It touches pages of the mapped device until the time is over. */
void disk_touch_for(uint64_t duration_ns);
