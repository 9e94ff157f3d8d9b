/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a frame to a flow's windows, messages and totals: the way that every frame goes. Fixed memory, set at init. No
 * allocation, lock, system call or log line in meter_frames. One thread.
 */
#pragma once

#include "nic/flow/flow.h"
#include "nic/flow/set_up.h"
#include "nic/source/source.h"
#include "nic/tally.h"
#include "nic/window/tier.h"

struct meter_options {
    uint32_t window_ns;
    uint32_t flows_max;
    uint32_t messages_max; /* that wait to be taken */
    size_t memory_bytes;   /* for all of it */
    bool verify_icrc;
};

/* What of the memory goes to flows and waiting messages; the rest is the tiers'. */
size_t meter_fixed_bytes(const struct meter_options *options);

struct meter {
    struct tallies *tallies;
    struct icrc *icrc; /* NULL: not verified */
    struct flow_table *flows;
    struct tiers tiers;
    struct window_ring *windows; /* the first of the tiers' rings */
    struct message_queue *messages;
    struct pairing_budget pairing;
    struct set_ups *set_ups;
    struct record_port ports[SOURCE_PORTS_MAX];
    size_t ports_count;
};

/* -EINVAL (logged) when the memory does not suffice for what is asked, -ENOMEM. */
int meter_init(struct meter *meter, const struct meter_options *options, struct tallies *tallies);
void meter_fini(struct meter *meter);

/* Has all memory taken now, so that no frame waits for a page, and logs how it is split; for live traffic. */
void meter_prepare(struct meter *meter);

/* The ports that frames will come from: their addresses decide a flow's vantage. */
void meter_set_ports(struct meter *meter, const struct source *source);

/* A port that no frames come from: only its counters are read. Returns its number, 0 when there is no room. */
struct rdma_port;
uint32_t meter_add_port(struct meter *meter, const struct rdma_port *port);

/* The host side's word on a queue pair: whom its flows are paired with. */
void meter_tell(struct meter *meter, const struct record_queue_pair *pair);

/* A burst, in the order in which it came; `count` is at most SOURCE_BURST_FRAMES. */
void meter_frames(struct meter *meter, const struct source_frame *frames, size_t count);

/*
 * Stores the windows that are over at `now_ns`, and ends messages that nothing has been added to since `stale_ns`
 * though their last frame was seen. UINT64_MAX for both: everything.
 */
void meter_settle(struct meter *meter, uint64_t now_ns, uint64_t stale_ns);

/* The same in pieces between bursts: `count` flows from number `number` on; returns the next one, 0 when all are done.
 */
uint32_t meter_settle_some(struct meter *meter, uint32_t number, uint32_t count, uint64_t now_ns, uint64_t stale_ns);
