/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chance that depends on names only: (seed, stream, index) always give the same number, in whatever order they are
 * asked for. So a fault changes nothing but what it does. Any thread.
 */
#pragma once

#include <stdint.h>

enum chance_stream {
    CHANCE_RANK_SPEED,
    CHANCE_COMPUTE,
    CHANCE_HOST,
    CHANCE_PROXY,
    CHANCE_LATENCY,
    CHANCE_CLOCK,
    CHANCE_EXCHANGE,
    CHANCE_IDENTITY,
    CHANCE_LENGTH,
    CHANCE_FRAMES,
};

uint64_t chance_bits(uint64_t seed, enum chance_stream stream, uint64_t index);

/* At least 0, below 1. */
double chance_even(uint64_t seed, enum chance_stream stream, uint64_t index);

/* Mean 0, standard deviation 1, within 6. */
double chance_normal(uint64_t seed, enum chance_stream stream, uint64_t index);

/* Mean 1. */
double chance_decaying(uint64_t seed, enum chance_stream stream, uint64_t index);
