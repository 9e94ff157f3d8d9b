/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named counters: each program lists its own in a counter.def as COUNTER(NAME, "name_with_unit", "help"), makes an enum
 * and a `counter_spec` table from it, and keeps the values in one array. A counter only rises, unless its help says
 * that it tells what is so at present. Written by one thread;
 * other threads may read (relaxed, aligned 64-bit).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct counter_spec {
    const char *name; /* below 40 characters, lower case, unit last: "frames_not_roce_total" */
    const char *help;
};

struct counter_table {
    const struct counter_spec *specs;
    uint64_t *values;
    size_t count;
};

static inline void counter_add(uint64_t *values, size_t index, uint64_t amount)
{
    __atomic_store_n(&values[index], values[index] + amount, __ATOMIC_RELAXED);
}

static inline void counter_set(uint64_t *values, size_t index, uint64_t value)
{
    __atomic_store_n(&values[index], value, __ATOMIC_RELAXED);
}

static inline uint64_t counter_read(const uint64_t *values, size_t index)
{
    return __atomic_load_n(&values[index], __ATOMIC_RELAXED);
}
