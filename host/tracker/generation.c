/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open table with linear probing (Knuth 6.4, algorithm L) that is never more than three quarters full. Invariant: an
 * entry once made stays where it is; generation 0 marks a free place.
 */
#include "host/tracker/generation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX       256
#define DEVICE_BYTES_MAX  16
#define QPN_BITS          24
#define GOLDEN_RATIO_BITS 2654435769u /* 2^32 / golden ratio: Knuth's multiplicative hashing */

struct number {
    uint32_t key; /* device << 24 | QPN */
    uint32_t generation;
};

struct generation_table {
    char devices[DEVICES_MAX][DEVICE_BYTES_MAX];
    size_t devices_count;
    size_t numbers_max;
    size_t numbers_count;
    struct number numbers[];
};

int generation_table_create(struct generation_table **table, size_t numbers_max)
{
    struct generation_table *fresh = calloc(1, sizeof *fresh + numbers_max * sizeof fresh->numbers[0]);
    if (fresh == NULL)
        return -ENOMEM;
    fresh->numbers_max = numbers_max;
    *table = fresh;
    return 0;
}

void generation_table_destroy(struct generation_table **table)
{
    free(*table);
    *table = NULL;
}

/* DEVICES_MAX = there is no room for it. */
static uint32_t device_number(struct generation_table *table, const char *device, size_t device_bytes)
{
    char name[DEVICE_BYTES_MAX] = {0};
    memcpy(name, device, device_bytes < sizeof name ? device_bytes : sizeof name);
    uint32_t number = 0;
    while (number < table->devices_count && memcmp(table->devices[number], name, sizeof name) != 0)
        number++;
    if (number == table->devices_count && number < DEVICES_MAX)
        memcpy(table->devices[table->devices_count++], name, sizeof name);
    return number;
}

uint32_t generation_next(struct generation_table *table, const char *device, size_t device_bytes, uint32_t qpn)
{
    const uint32_t device_at = device_number(table, device, device_bytes);
    const uint32_t key = device_at << QPN_BITS | (qpn & ((1u << QPN_BITS) - 1));
    if (device_at == DEVICES_MAX)
        return 0;
    const uint32_t hash = key * GOLDEN_RATIO_BITS;
    size_t at = (hash ^ hash >> 16) & (table->numbers_max - 1);
    while (table->numbers[at].generation != 0 && table->numbers[at].key != key)
        at = (at + 1) & (table->numbers_max - 1);
    if (table->numbers[at].generation != 0)
        return ++table->numbers[at].generation;
    if (table->numbers_count >= table->numbers_max / 4 * 3)
        return 0;
    table->numbers_count++;
    table->numbers[at] = (struct number){key, 1};
    return 1;
}
