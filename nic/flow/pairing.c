/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairing by agreement. An acknowledgement's PSN has been sent in the flow that it concerns. The first one gives the
 * flows that are possible; each further one strikes out those that have not come so far. While connections between the
 * same two addresses count in step, each is ahead of the others now and then, and who is paired is possible no more.
 * The UDP source port, which some devices give both directions alike, only makes fewer agreements suffice. A pair that
 * turns out wrong is dissolved. Invariant: flow.pairing.flow is mutual; a flow is in at most one pair.
 */
#include "nic/flow/pairing.h"

#include <string.h>

#include "nic/flow/flow.h"

#define LOOKS_MAX        512 /* candidates of one pair of addresses; more are too many to tell */
#define FRAMES_A_LOOK    8   /* so many frames pay for one look */
#define FRAMES_MIN       ((LOOKS_MAX + 1) * FRAMES_A_LOOK)
#define FRAMES_MAX       (262144 * FRAMES_A_LOOK)
#define AGREEMENTS_MIN   4
#define AGREEMENTS_ALIKE 3 /* where the UDP source ports are alike */
#define DOUBTS_MAX       8
#define PAUSE_MAX        4096

void pairing_budget_init(struct pairing_budget *budget)
{
    budget->frames = FRAMES_MAX;
}

struct flow *pairing_other(struct flow_table *table, const struct flow *flow)
{
    return flow->pairing.flow == 0 ? NULL : flow_at(table, flow->pairing.flow);
}

static bool is_free(const struct flow *flow)
{
    return flow->pairing.flow == 0 && !flow->pairing.is_over;
}

/* How many flows may be meant, those in `possible`; more than there is room for: too many to tell. */
static unsigned find_possible(struct flow_table *table, const struct flow *flow, uint32_t psn, uint32_t *possible,
                              uint32_t *looks)
{
    struct flow *other = NULL;
    unsigned count = 0;

    while ((other = flow_next_reverse(table, &flow->key, other)) != NULL) {
        if (++*looks > LOOKS_MAX)
            return PAIRING_POSSIBLE_MAX + 1;
        if (!is_free(other) || !sequence_holds(flow_sequence(other), psn))
            continue;
        if (count == PAIRING_POSSIBLE_MAX)
            return PAIRING_POSSIBLE_MAX + 1;
        possible[count++] = other->number;
    }
    return count;
}

/* Strikes out what is taken or has not come so far; one that was not captured is not held against a flow. */
static unsigned strike_out(struct flow_table *table, struct pairing *pairing, uint32_t psn)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < PAIRING_POSSIBLE_MAX && pairing->possible[i] != 0; i++) {
        struct flow *other = flow_at(table, pairing->possible[i]);
        if (is_free(other) && sequence_distance(psn, flow_sequence(other)->highest) <= 0)
            pairing->possible[kept++] = pairing->possible[i];
    }
    memset(&pairing->possible[kept], 0, (PAIRING_POSSIBLE_MAX - kept) * sizeof pairing->possible[0]);
    return kept;
}

/* Nobody can have been meant: the other direction is not seen here, so look ever more seldom. */
static void rest(struct pairing *pairing)
{
    pairing->pause = pairing->pause * 2 + 1 < PAUSE_MAX ? pairing->pause * 2 + 1 : PAUSE_MAX;
    pairing->skip = pairing->pause;
}

static void begin(struct pairing_budget *budget, struct flow_table *table, struct flow *flow, uint32_t psn)
{
    struct pairing *pairing = &flow->pairing;
    uint32_t possible[PAIRING_POSSIBLE_MAX] = {0};
    uint32_t looks = 0;
    unsigned count = find_possible(table, flow, psn, possible, &looks);

    budget->frames -= (uint64_t)looks * FRAMES_A_LOOK;
    pairing->agreements = 0;
    if (count == 0)
        rest(pairing);
    if (count == 0 || count > PAIRING_POSSIBLE_MAX)
        return;
    pairing->pause = 0;
    pairing->agreements = 1;
    memcpy(pairing->possible, possible, sizeof possible);
}

static void go_on(struct flow_table *table, struct flow *flow, uint32_t psn, struct tallies *tallies)
{
    struct pairing *pairing = &flow->pairing;
    unsigned kept = strike_out(table, pairing, psn);

    if (kept != 1)
        return;
    struct flow *only = flow_at(table, pairing->possible[0]);
    bool is_alike = only->look.udp_source_port == flow->look.udp_source_port;
    pairing->agreements += sequence_holds(flow_sequence(only), psn);
    if (pairing->agreements >= (is_alike ? AGREEMENTS_ALIKE : AGREEMENTS_MIN))
        pairing_join(flow, only, PAIRED_BY_ACKNOWLEDGEMENTS, tallies);
}

/* An acknowledgement of what was never sent: one may be a frame that was not captured, many are a wrong pair. */
static void doubt(struct flow *flow, struct flow *other, uint32_t psn, struct tallies *tallies)
{
    struct pairing *pairing = &flow->pairing;

    if (sequence_distance(psn, flow_sequence(other)->highest) <= 0) {
        pairing->doubts -= pairing->doubts > 0;
        return;
    }
    if (pairing->by != PAIRED_BY_ACKNOWLEDGEMENTS || ++pairing->doubts < DOUBTS_MAX)
        return;
    tally_add(tallies, TALLY_PAIRS_DISSOLVED, 1);
    flow->pairing = (struct pairing){0};
    other->pairing = (struct pairing){0};
}

struct flow *pairing_note_ack(struct pairing_budget *budget, struct flow_table *table, struct flow *flow,
                              const struct frame *frame, struct tallies *tallies)
{
    struct pairing *pairing = &flow->pairing;
    bool is_new = frame->psn != pairing->last_psn;

    if (budget->frames > FRAMES_MAX)
        budget->frames = FRAMES_MAX;
    pairing->last_psn = frame->psn;
    if (pairing->flow != 0)
        doubt(flow, flow_at(table, pairing->flow), frame->psn, tallies);
    else if (is_new && pairing->skip != 0)
        pairing->skip--;
    else if (is_new && pairing->possible[0] != 0)
        go_on(table, flow, frame->psn, tallies);
    else if (is_new && budget->frames >= FRAMES_MIN)
        begin(budget, table, flow, frame->psn);
    return pairing_other(table, flow);
}

void pairing_join(struct flow *flow, struct flow *other, enum paired_by by, struct tallies *tallies)
{
    if (flow->pairing.flow != 0 || other->pairing.flow != 0)
        return;
    flow->pairing = (struct pairing){.flow = other->number, .by = (uint8_t)by};
    other->pairing = (struct pairing){.flow = flow->number, .by = (uint8_t)by};
    tally_add(tallies, TALLY_PAIRS, 1);
}

void pairing_end(struct flow_table *table, struct flow *flow)
{
    struct flow *other = pairing_other(table, flow);

    flow->pairing.is_over = true;
    if (other != NULL)
        other->pairing.is_over = true;
}
