/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key that repeats itself every 16 bits makes each 16-bit word of the input count alike, wherever it stands: the hash
 * is one of the exclusive or of all words, and does not change when source and destination address change places.
 * Source: Shinae Woo, KyoungSoo Park: Scalable TCP Session Monitoring with Symmetric Receive-side Scaling, KAIST 2012.
 */
#include "nic/dpdk/spread.h"

void spread_key(uint8_t *key, size_t length_bytes)
{
    for (size_t i = 0; i < length_bytes; i++)
        key[i] = i % 2 == 0 ? 0x6d : 0x5a;
}
