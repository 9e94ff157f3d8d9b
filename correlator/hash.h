/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash of several values, to tell equal things by (FNV-1a, 64 bits). Not for outsiders' tables: it is not keyed.
 * Pure, any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325ULL

/* `hash` with a number more taken in. */
static inline uint64_t hash_number(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 32);
}

/* `hash` with `count_bytes` more taken in; begin with HASH_START. */
static inline uint64_t hash_mix(uint64_t hash, const void *bytes, size_t count_bytes)
{
    const uint8_t *byte = bytes;

    for (size_t i = 0; i < count_bytes; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3ULL;
    return hash;
}
