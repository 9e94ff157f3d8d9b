/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering's rules as DPDK's rte_flow takes them (DPDK inside). The thread that starts and ends the ports. */
#pragma once

#include <stdint.h>

#include "nic/dpdk/spread.h"
#include "nic/dpdk/steering.h"

/* How frames are spread over the queues of a port: filled before rules are made. */
struct rule_context {
    uint16_t queues[64];
    unsigned queues_count;
    uint64_t spread_by; /* RTE_ETH_RSS_... */
    uint8_t spread_key[SPREAD_KEY_BYTES_MAX];
    unsigned spread_key_bytes; /* 0: the driver's own key */
    char why[128];             /* the driver's words for the last refusal */
};

/* Whether the headers know the BTH. */
bool rule_can_match_bth(void);

/* The calls that steering makes; they use `context` as long as it does. */
struct steering_calls rule_calls(struct rule_context *context);

/* Asks the port to give us what rules name, and nothing else. Before it is set up. -errno, logged. */
int rule_isolate(uint16_t port);
