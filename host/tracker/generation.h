/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often each QPN of each device has been used, as far as it was seen. Fixed memory: when the table is full, numbers
 * that it does not hold are not counted. Pure logic; one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct generation_table;

/* Room for so many numbers (a power of two) of at most 256 devices; -ENOMEM. */
int generation_table_create(struct generation_table **table, size_t numbers_max);
void generation_table_destroy(struct generation_table **table);

/* The next generation of this number, from 1; 0 = there is no room to count it. `device` need not be terminated. */
uint32_t generation_next(struct generation_table *table, const char *device, size_t device_bytes, uint32_t qpn);
