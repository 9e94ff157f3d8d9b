/* SPDX-License-Identifier: BSD-2-Clause */
/* How frames are spread over receive queues. No DPDK inside. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SPREAD_KEY_BYTES_MAX 64

/*
 * The key of a card's Toeplitz hash, as long as the card wants it: with it, frames between two addresses with the same
 * UDP source port meet the same queue in both directions.
 */
void spread_key(uint8_t *key, size_t length_bytes);
