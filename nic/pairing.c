/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairing by agreement. An acknowledgement's PSN has been sent in the flow that it concerns; while connections between
 * the same two addresses count in step, it is the one that is ahead whose acknowledgements nobody else can be meant by,
 * and who is paired is no candidate any more, so all are found in the end. The UDP source port, which some devices give
 * both directions alike, only makes fewer agreements suffice. A pair that turns out wrong is dissolved.
 * Invariant: flow.pairing.flow is mutual; a flow is in at most one pair.
 */
#include "nic/pairing.h"

#include "nic/flow.h"

#define LOOKS_MAX       512 /* candidates of one pair of addresses; more are too many to tell */
#define FRAMES_A_LOOK   32  /* so many frames pay for one look */
#define FRAMES_MIN      ((LOOKS_MAX + 1) * FRAMES_A_LOOK)
#define FRAMES_MAX      (65536 * FRAMES_A_LOOK)
#define AGREEMENTS_LONE 4
#define AGREEMENTS_PORT 3 /* where the UDP source ports are alike */
#define DOUBTS_MAX      8
#define PAUSE_MAX       4096

void pairing_budget_init(struct pairing_budget *budget)
{
    budget->frames = FRAMES_MAX;
}

struct flow *pairing_other(struct flow_table *table, const struct flow *flow)
{
    return flow->pairing.flow == 0 ? NULL : flow_at(table, flow->pairing.flow);
}

static bool can_be_answered(const struct flow *flow, uint32_t psn)
{
    return sequence_holds(&flow->streams[FLOW_REQUESTS].sequence, psn);
}

/* The only flow that may be meant, or NULL; *looks says how many were looked at. */
static struct flow *find_only(struct flow_table *table, const struct flow *flow, uint32_t psn, uint32_t *looks,
                              bool *is_ambiguous)
{
    struct flow *found = NULL;

    for (struct flow *other = NULL; (other = flow_next_reverse(table, &flow->key, other)) != NULL;) {
        if (++*looks > LOOKS_MAX) {
            *is_ambiguous = true;
            return NULL;
        }
        if (other->pairing.flow != 0 || other->pairing.is_over || !can_be_answered(other, psn))
            continue;
        if (found != NULL) {
            *is_ambiguous = true;
            return NULL;
        }
        found = other;
    }
    return found;
}

static void look(struct pairing_budget *budget, struct flow_table *table, struct flow *flow, uint32_t psn,
                 struct tallies *tallies)
{
    struct pairing *pairing = &flow->pairing;
    uint32_t looks = 0;
    bool is_ambiguous = false;
    struct flow *only = find_only(table, flow, psn, &looks, &is_ambiguous);

    budget->frames -= (uint64_t)looks * FRAMES_A_LOOK;
    if (only == NULL) {
        pairing->pause = pairing->pause * 2 + 1 < PAUSE_MAX ? pairing->pause * 2 + 1 : PAUSE_MAX;
        pairing->skip = pairing->pause;
        pairing->agreements = is_ambiguous ? pairing->agreements : 0;
        return;
    }
    pairing->pause = 0;
    pairing->agreements = only->number == pairing->candidate ? pairing->agreements + 1 : 1;
    pairing->candidate = only->number;
    if (pairing->agreements >=
        (only->look.udp_source_port == flow->look.udp_source_port ? AGREEMENTS_PORT : AGREEMENTS_LONE))
        pairing_join(flow, only, PAIRED_BY_ACKNOWLEDGEMENTS, tallies);
}

/* An acknowledgement of what was never sent: one may be a frame that was not captured, many are a wrong pair. */
static void doubt(struct flow *flow, struct flow *other, uint32_t psn, struct tallies *tallies)
{
    struct pairing *pairing = &flow->pairing;

    if (sequence_distance(psn, other->streams[FLOW_REQUESTS].sequence.highest) <= 0) {
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
    else if (is_new && budget->frames >= FRAMES_MIN)
        look(budget, table, flow, frame->psn, tallies);
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
