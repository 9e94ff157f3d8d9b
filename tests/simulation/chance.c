/* SPDX-License-Identifier: BSD-2-Clause */
/* Chance by mixing: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over the three names. */
#include "tests/simulation/chance.h"

#include <math.h>

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

uint64_t chance_bits(uint64_t seed, enum chance_stream stream, uint64_t index)
{
    return mix(mix(mix(seed) ^ (uint64_t)stream) ^ index);
}

double chance_even(uint64_t seed, enum chance_stream stream, uint64_t index)
{
    return (double)(chance_bits(seed, stream, index) >> 11) * 0x1p-53;
}

double chance_normal(uint64_t seed, enum chance_stream stream, uint64_t index)
{
    double sum = -6; /* twelve even ones: variance 12 / 12 */

    for (uint64_t i = 0; i < 12; i++)
        sum += chance_even(seed ^ (i + 1) << 48, stream, index);
    return sum;
}

double chance_decaying(uint64_t seed, enum chance_stream stream, uint64_t index)
{
    return -log1p(-chance_even(seed, stream, index));
}
