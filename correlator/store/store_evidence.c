/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happened to each flow on its way, and what its receiver answered. The other direction's flow is known from the
 * host, which names both ends' queue pairs; else from what the NIC side found out. Invariant: counts are put to a flow
 * only from the one flow that is its other direction.
 */
#include "correlator/analysis.h"
#include "correlator/store/store_private.h"

typedef int64_t i64; /* what the formats take */

static uint8_t opposite(uint8_t vantage)
{
    return vantage == VANTAGE_TX ? VANTAGE_RX : vantage == VANTAGE_RX ? VANTAGE_TX : vantage;
}

/* The other direction at the same port, by the host's word; -1 when it does not say, or several fit. */
static int32_t pair_by_host(const struct naming *naming, const struct flow *flow)
{
    int32_t found = -1;

    if (flow->sender < 0 || flow->receiver < 0)
        return -1;
    const struct queue_pair *answering = &naming->queue_pairs.items[flow->receiver];
    for (size_t i = 0; i < answering->flows_out.count; i++) {
        int32_t index = answering->flows_out.items[i];
        const struct flow *other = &naming->flows.items[index];
        if (other->receiver != flow->sender || other->record.vantage != opposite(flow->record.vantage) ||
            other->record.port != flow->record.port)
            continue;
        if (found >= 0)
            return -1;
        found = index;
    }
    return found;
}

static bool is_pair(const struct flow *flow, const struct flow *other)
{
    return other->stream == flow->stream && other->record.flow == flow->total.pair;
}

/* The NIC side's own finding: a flow of the same stream. Their order is mostly that of their numbers. */
static int32_t pair_by_nic(const struct naming *naming, size_t index)
{
    const struct flow *flow = &naming->flows.items[index];
    size_t likely = index + flow->total.pair - flow->record.flow;

    if (flow->total.pair == 0)
        return -1;
    if (likely < naming->flows.count && is_pair(flow, &naming->flows.items[likely]))
        return (int32_t)likely;
    for (size_t i = 0; i < naming->flows.count; i++)
        if (is_pair(flow, &naming->flows.items[i]))
            return (int32_t)i;
    return -1;
}

struct flow_fate {
    int32_t pair;
    const char *paired_by;
    i64 source_qpn;
    bool by_code; /* `total` has the NAKs by their code */
    struct record_flow_total total;
};

static void find_fate(struct flow_fate *fate, const struct naming *naming, size_t index)
{
    const struct flow *flow = &naming->flows.items[index];
    static const char *const ways[] = {NULL, "acknowledgements", "set-up", "host"};
    int32_t by_nic = pair_by_nic(naming, index), by_host = pair_by_host(naming, flow);
    uint8_t way = flow->total.paired_by;

    *fate = (struct flow_fate){.pair = by_host >= 0 ? by_host : by_nic, .total = flow->total};
    fate->by_code = fate->pair >= 0 && fate->pair == by_nic;
    fate->paired_by = by_host >= 0 ? "host" : by_nic >= 0 ? ways[way < 4 ? way : 0] : NULL;
    if (fate->pair < 0)
        return;
    const struct flow *other = &naming->flows.items[fate->pair];
    fate->source_qpn = other->record.destination_qpn;
    fate->total.got_acks = other->total.acks;
    fate->total.got_rnr_naks = other->total.rnr_naks;
    fate->total.got_cnps = other->total.cnps;
}

void store_evidence_rows(struct store *store, const struct naming *naming)
{
    for (size_t i = 0; i < naming->flows.count; i++) {
        struct flow_fate fate;
        find_fate(&fate, naming, i);
        const struct record_flow_total *total = &fate.total;
        int known = fate.pair >= 0, by_code = fate.by_code;
        i64 naks = known ? naming->flows.items[fate.pair].total.naks : 0;
        store_put(store, STORE_flow_evidence, "irskiiiiiiiikkkkkkkkkk", (i64)i + 1,
                  fate.pair < 0 ? (i64)-1 : (i64)fate.pair + 1, fate.paired_by, known, fate.source_qpn,
                  (i64)total->covered_psns, (i64)total->late_unknown_frames, (i64)total->reordered_frames,
                  (i64)total->duplicate_frames, (i64)total->timeouts, (i64)total->pauses,
                  (i64)total->source_port_changes, (i64)total->codepoints, known, (i64)total->got_acks, known, naks,
                  by_code, (i64)total->got_naks[0], by_code, (i64)total->got_naks[1], by_code, (i64)total->got_naks[2],
                  by_code, (i64)total->got_naks[3], known, (i64)total->got_rnr_naks, by_code, (i64)total->rnr_wait_ns,
                  by_code, (i64)total->rnr_last_ns, known, (i64)total->got_cnps);
    }
    for (size_t i = 0; i < naming->flow_events.count; i++) {
        const struct flow_event *event = &naming->flow_events.items[i];
        if (!limit_has_detail(store_limit(store), event->to_ns))
            continue;
        store_put(store, STORE_flow_event, "iisiii", (i64)i + 1, (i64)event->flow + 1, flow_metric_name(event->metric),
                  (i64)event->from_ns, (i64)event->to_ns, (i64)event->amount);
    }
}

void store_pins(struct store *store, const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->pins.count; i++) {
        const struct pin *pin = &analysis->pins.items[i];
        store_put(store, STORE_pin, "iiisii", (i64)pin->flow + 1, (i64)pin->from_ns, (i64)pin->to_ns,
                  pin_cause_name(pin->record.cause), (i64)pin->record.usual_ns, (i64)pin->record.found_ns);
    }
}
