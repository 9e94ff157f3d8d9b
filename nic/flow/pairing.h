/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which two flows are the directions of one connection: answers that travel in the one concern the other, but a BTH
 * names the receiver's queue pair only. Known by the connection's set-up or from the host (pairing_join), else by
 * agreement: of the flows of the opposite direction only one has sent everything that was acknowledged by the time when
 * it was. What is not known stays unpaired. Its work is bounded by the number of frames that pass. On the measuring
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/frame/frame.h"
#include "nic/tally.h"
#include "wire/record.h"

#define PAIRING_POSSIBLE_MAX 8

struct flow;
struct flow_table;

/* A flow's part, embedded in it; zero is: nothing known. */
struct pairing {
    uint32_t flow;                           /* number of the other direction's flow; 0 = not known */
    uint32_t possible[PAIRING_POSSIBLE_MAX]; /* flows that no acknowledgement has contradicted, and then zeros */
    uint32_t last_psn;
    uint32_t skip;  /* acknowledgements that are not looked at */
    uint32_t pause; /* how many were skipped last */
    uint8_t by;     /* enum paired_by */
    uint8_t agreements;
    uint8_t doubts;
    bool is_over; /* the other direction's queue pair has a new connection: what comes now is no longer of this one */
};

/* How much may be looked for: grows with the frames that pass. */
struct pairing_budget {
    uint64_t frames;
};

void pairing_budget_init(struct pairing_budget *budget);

static inline void pairing_budget_add(struct pairing_budget *budget, uint64_t frames)
{
    budget->frames += frames;
}

/*
 * An acknowledgement (not a NAK) that travelled in `flow`. Returns the flow that it concerns, NULL when that is not
 * known (any more).
 */
struct flow *pairing_note_ack(struct pairing_budget *budget, struct flow_table *table, struct flow *flow,
                              const struct frame *frame, struct tallies *tallies);

/* The flow that answers in `flow` concern, or NULL. */
struct flow *pairing_other(struct flow_table *table, const struct flow *flow);

/* The two are known to be the directions of one connection. */
void pairing_join(struct flow *flow, struct flow *other, enum paired_by by, struct tallies *tallies);

/* A new connection has taken the flow's key. */
void pairing_end(struct flow_table *table, struct flow *flow);
