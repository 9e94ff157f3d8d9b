/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows are told at their first message, as by an agent that meets them there; totals when they have changed. */
#include "tests/simulation/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETH_BYTES 16u

struct sighting {
    struct view *view;
    struct sighting *pair;
    struct record_flow flow;
    struct record_flow_total total;
    bool told, changed;
};

struct view {
    const struct setting *setting;
    struct agent *agent;
    const struct fabric *fabric;
    uint32_t first_nic;
    struct sighting **sightings;
    uint32_t count, room;
    uint64_t ticked_ns;
    struct fabric_count *told;
};

void view_address(uint8_t address[ADDRESS_BYTES], uint32_t nic)
{
    uint32_t number = nic + 257; /* 10.0.1.1 is the first */

    memset(address, 0, ADDRESS_BYTES);
    address[10] = address[11] = 0xff;
    address[12] = 10;
    address[13] = (uint8_t)(number >> 16);
    address[14] = (uint8_t)(number >> 8);
    address[15] = (uint8_t)number;
}

struct view *view_create(const struct setting *setting, struct agent *agent, const struct fabric *fabric,
                         uint32_t first_nic)
{
    struct view *view = calloc(1, sizeof *view);

    if (view == NULL)
        abort();
    view->setting = setting;
    view->agent = agent;
    view->fabric = fabric;
    view->first_nic = first_nic;
    view->told = calloc(setting->gpus, sizeof *view->told);
    return view;
}

void view_destroy(struct view *view)
{
    for (uint32_t i = 0; i < view->count; i++)
        free(view->sightings[i]);
    free(view->sightings);
    free(view->told);
    free(view);
}

void view_begin(struct view *view, uint64_t now_ns)
{
    bool counts = view->setting->sight == SIGHT_COUNTERS;
    struct record_traffic_source source = {.kind = counts ? TRAFFIC_SOURCE_MLX5 : TRAFFIC_SOURCE_DPDK,
                                           .grain_ns = counts ? 1000000 : 8000};

    source.fields = traffic_source_fields(source.kind);
    source.at_ns = agent_time_ns(view->agent, now_ns);
    strcpy(source.name, counts ? "mlx5" : "dpdk");
    agent_add(view->agent, RECORD_TRAFFIC_SOURCE, &source, now_ns);
    for (uint32_t nic = 0; nic < view->setting->gpus; nic++) {
        struct record_port port = {.port = nic + 1};
        snprintf(port.name, sizeof port.name, "p%u", nic);
        view_address(port.address, view->first_nic + nic);
        agent_add(view->agent, RECORD_PORT, &port, now_ns);
    }
    view->ticked_ns = now_ns;
}

struct sighting *view_add(struct view *view, const struct view_flow *flow)
{
    struct sighting *sighting = calloc(1, sizeof *sighting);

    if (view->count == view->room) {
        view->room = view->room == 0 ? 64 : 2 * view->room;
        view->sightings = realloc(view->sightings, view->room * sizeof(struct sighting *));
    }
    if (sighting == NULL || view->sightings == NULL)
        abort();
    view->sightings[view->count++] = sighting;
    sighting->view = view;
    sighting->flow.flow = view->count;
    view_address(sighting->flow.source, flow->from);
    view_address(sighting->flow.destination, flow->to);
    sighting->flow.destination_qpn = flow->destination_qpn;
    sighting->flow.udp_source_port = (uint16_t)(0xc000 | (flow->destination_qpn * 2654435761u >> 18));
    sighting->flow.vantage = (uint8_t)flow->vantage;
    sighting->flow.port = (flow->vantage == VANTAGE_TX ? flow->from : flow->to) - view->first_nic + 1;
    sighting->total.header.source = view->count;
    sighting->total.source_qpn = flow->source_qpn;
    sighting->total.paired_by = PAIRED_BY_ACKNOWLEDGEMENTS;
    sighting->total.codepoints = 1 << 2;
    return sighting;
}

void sighting_pair(struct sighting *one, struct sighting *other)
{
    if (one == NULL || other == NULL)
        return;
    one->pair = other;
    other->pair = one;
}

static void tell(struct sighting *sighting, uint64_t first_ns, uint64_t now_ns)
{
    struct record_flow flow = sighting->flow;

    if (sighting->told)
        return;
    flow.first_ns = agent_time_ns(sighting->view->agent, first_ns);
    agent_add(sighting->view->agent, RECORD_FLOW, &flow, now_ns);
    sighting->told = true;
}

static void count(struct sighting *sighting, const struct sighted *sighted, uint32_t frames)
{
    const struct passage *passage = sighted->passage;
    struct record_flow_total *total = &sighting->total;

    total->data_frames += frames;
    total->covered_psns += frames;
    total->payload_bytes += sighted->bytes;
    total->wire_bytes += sighted->bytes + frames * FRAME_HEADER_BYTES + RETH_BYTES;
    total->messages++;
    total->got_acks++;
    total->last_ns = sighted->last_ns;
    sighting->changed = true;
    if (sighting->pair != NULL)
        sighting->pair->total.acks++, sighting->pair->changed = true;
    if (passage == NULL)
        return;
    total->data_frames += passage->resent_frames;
    total->retransmitted_frames += passage->resent_frames;
    total->retransmitted_bytes += (uint64_t)passage->resent_frames * FRAME_BYTES;
    if (sighting->flow.vantage == VANTAGE_TX)
        total->repeated_frames += passage->resent_frames;
    else
        total->late_frames += passage->resent_frames;
    total->got_naks[0] += passage->naks;
    total->got_rnr_naks += passage->rnr_naks;
    total->rnr_wait_ns += passage->rnr_wait_ns;
    total->got_cnps += passage->cnps;
    if (sighting->flow.vantage == VANTAGE_RX)
        total->marked_frames += passage->marked_frames;
    total->codepoints |= passage->marked_frames > 0 && sighting->flow.vantage == VANTAGE_RX ? 1 << 3 : 0;
}

void sighting_message(struct sighting *sighting, const struct sighted *sighted, uint64_t now_ns)
{
    uint32_t frames = sighted->bytes == 0 ? 1 : (sighted->bytes + FRAME_BYTES - 1) / FRAME_BYTES;

    if (sighting == NULL)
        return;
    tell(sighting, sighted->first_ns, now_ns);
    struct record_message message = {
        .header.source = sighting->flow.flow,
        .first_ns = sighted->first_ns,
        .duration_ns = (uint32_t)(sighted->last_ns - sighted->first_ns),
        .payload_bytes = sighted->bytes,
        .frames = frames + (sighted->passage == NULL ? 0 : sighted->passage->resent_frames),
        .immediate = sighted->immediate,
        .place = sighted->place,
        .role = (uint8_t)sighted->role,
        .opcode = sighted->opcode,
        .flags = sighted->flags,
    };
    if (sighted->passage != NULL && sighted->passage->resent_frames > 0)
        message.flags |= MESSAGE_RETRANSMITTED;
    agent_add_message(sighting->view->agent, &message, now_ns);
    count(sighting, sighted, frames);
}

static void tell_counter(struct view *view, uint32_t nic, enum port_metric metric, uint64_t value, uint64_t *told,
                         uint64_t now_ns)
{
    struct record_port_counter counter = {
        .header.source = nic + 1, .metric = (uint16_t)metric, .priority = PRIORITY_NONE, .value = value};

    if (value == *told)
        return;
    *told = value;
    counter.from_ns = agent_time_ns(view->agent, view->ticked_ns);
    counter.to_ns = agent_time_ns(view->agent, now_ns);
    agent_add(view->agent, RECORD_PORT_COUNTER, &counter, now_ns);
}

static void tell_port(struct view *view, uint32_t nic, uint64_t now_ns)
{
    const struct fabric_count *count = fabric_counts(view->fabric, view->first_nic + nic);
    struct fabric_count *told = &view->told[nic];

#define TELL(metric, member) tell_counter(view, nic, PORT_METRIC_##metric, count->member, &told->member, now_ns)
    TELL(SENT_BYTES, sent_bytes);
    TELL(RECEIVED_BYTES, received_bytes);
    TELL(PAUSE_RECEIVED, pauses);
    TELL(PAUSE_RECEIVED_TIME, paused_ns);
    TELL(ECN_MARKED, marked);
    TELL(CNP_SENT, cnps_sent);
    TELL(CNP_HANDLED, cnps_handled);
    TELL(RETRIES, resent);
    TELL(SEQUENCE_NAKS, naks);
    TELL(RNR_NAKS_SENT, rnr_sent);
    TELL(RNR_NAKS_RECEIVED, rnr_received);
#undef TELL
}

void view_tick(struct view *view, uint64_t now_ns)
{
    for (uint32_t i = 0; i < view->count; i++) {
        struct sighting *sighting = view->sightings[i];
        if (!sighting->changed || !sighting->told)
            continue;
        struct record_flow_total total = sighting->total;
        total.at_ns = agent_time_ns(view->agent, now_ns);
        total.last_ns = agent_time_ns(view->agent, total.last_ns);
        total.pair = sighting->pair != NULL && sighting->pair->told ? sighting->pair->flow.flow : 0;
        total.paired_by = total.pair != 0 ? total.paired_by : PAIRED_NOT;
        agent_add(view->agent, RECORD_FLOW_TOTAL, &total, now_ns);
        sighting->changed = false;
    }
    for (uint32_t nic = 0; nic < view->setting->gpus; nic++)
        tell_port(view, nic, now_ns);
    view->ticked_ns = now_ns;
}
