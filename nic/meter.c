/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a frame. What is a retransmission follows from what a port can know: a PSN seen before; or one seen for
 * the first time below the highest, when a NAK of the reverse direction had asked for it. Invariant: a frame is counted
 * in one flow's totals once, and its payload once in a window and a message, however often it is sent.
 */
#include "nic/meter.h"

#include <errno.h>
#include <string.h>

#include "wire/log.h"

#define NAK_SEQUENCE_ERROR 0
#define NAK_FLOWS_MAX      1024 /* flows of one pair of addresses that a NAK is matched with */

int meter_init(struct meter *meter, const struct meter_options *options, struct tallies *tallies)
{
    size_t fixed_bytes = flow_table_bytes(options->flows_max) + options->messages_max * sizeof(struct record_message);
    size_t left_bytes = options->memory_bytes > fixed_bytes ? options->memory_bytes - fixed_bytes : 0;

    memset(meter, 0, sizeof *meter);
    meter->tallies = tallies;
    int error = flow_table_create(&meter->flows, options->flows_max);
    if (error == 0)
        error = message_queue_create(&meter->messages, options->messages_max, tallies);
    if (error == 0)
        error = window_ring_create(&meter->windows, options->window_ns, left_bytes, tallies);
    if (error == 0)
        return 0;
    meter_fini(meter);
    if (error == -EINVAL)
        return log_error_return(error,
                                "%zu bytes of memory do not suffice: %u flows take %zu, and windows need 1 MiB; raise "
                                "--memory or lower --max-flows",
                                options->memory_bytes, options->flows_max, fixed_bytes);
    return log_error_return(error, "cannot get %zu bytes of memory; lower --memory", options->memory_bytes);
}

void meter_fini(struct meter *meter)
{
    window_ring_destroy(&meter->windows);
    message_queue_destroy(&meter->messages);
    flow_table_destroy(&meter->flows);
}

void meter_set_ports(struct meter *meter, const struct source *source)
{
    meter->ports_count = source_ports(source, meter->ports, SOURCE_PORTS_MAX);
}

static uint8_t find_vantage(const struct meter *meter, const struct flow_key *key)
{
    static const uint8_t unknown[ADDRESS_BYTES];

    for (size_t i = 0; i < meter->ports_count; i++) {
        const struct record_port *port = &meter->ports[i];
        if (port->port != key->port || memcmp(port->address, unknown, ADDRESS_BYTES) == 0)
            continue;
        if (memcmp(port->address, key->source, ADDRESS_BYTES) == 0)
            return VANTAGE_TX;
        if (memcmp(port->address, key->destination, ADDRESS_BYTES) == 0)
            return VANTAGE_RX;
    }
    return VANTAGE_MIDDLE;
}

static struct flow *begin_flow(struct meter *meter, const struct frame *frame, uint64_t at_ns)
{
    struct flow *flow = flow_add(meter->flows, &frame->key);

    if (flow == NULL) {
        tally_add(meter->tallies, TALLY_FRAMES_FLOW_TABLE_FULL, 1);
        return NULL;
    }
    tally_add(meter->tallies, TALLY_FLOWS, 1);
    flow->first_ns = at_ns;
    flow->vantage = find_vantage(meter, &frame->key);
    flow->dscp = frame->dscp;
    flow->udp_source_port = frame->udp_source_port;
    return flow;
}

static bool is_loop(const struct flow *flow)
{
    return memcmp(flow->key.source, flow->key.destination, sizeof flow->key.source) == 0;
}

static void settle_flow(struct meter *meter, struct flow *flow)
{
    window_close(meter->windows, &flow->window, flow->number);
    for (unsigned i = 0; i < FLOW_STREAMS_COUNT; i++)
        flow->total.messages +=
            message_abandon(meter->messages, &flow->streams[i].messages, flow->number, is_loop(flow), UINT64_MAX);
}

/* A new connection uses the key of an old one. */
static struct flow *succeed_flow(struct meter *meter, struct flow *flow, const struct frame *frame, uint64_t at_ns)
{
    settle_flow(meter, flow);
    tally_add(meter->tallies, TALLY_FLOWS_RESTARTED, 1);
    return begin_flow(meter, frame, at_ns);
}

/* Remembers what a NAK asks for in each flow that lacks it: the frames that will come late for it. */
static void note_nak(struct meter *meter, const struct frame *nak)
{
    unsigned looked_at = 0;

    if ((nak->syndrome & 0x1f) != NAK_SEQUENCE_ERROR)
        return;
    for (struct flow *flow = NULL;
         (flow = flow_next_reverse(meter->flows, &nak->key, flow)) != NULL && looked_at < NAK_FLOWS_MAX; looked_at++) {
        const struct sequence *sequence = &flow->streams[FLOW_REQUESTS].sequence;
        if (!sequence_misses(sequence, nak->psn))
            continue;
        flow->refused_psn = nak->psn;
        flow->refused_highest = sequence->highest;
        flow->has_refused = true;
    }
}

static void count_answer(struct meter *meter, struct flow *flow, const struct frame *frame)
{
    switch (frame->acknowledgement) {
    case FRAME_ACK:
        flow->total.acks++;
        break;
    case FRAME_RNR_NAK:
        flow->total.rnr_naks++;
        break;
    case FRAME_NAK:
        flow->total.naks++;
        note_nak(meter, frame);
        break;
    default:
        flow->total.cnps++;
    }
}

static bool is_explained(const struct flow *flow, uint32_t psn)
{
    return flow->has_refused && sequence_distance(psn, flow->refused_psn) >= 0 &&
           sequence_distance(psn, flow->refused_highest) <= 0;
}

static bool begins_message(const struct frame *frame)
{
    return frame->opcode->position == OPCODE_FIRST || frame->opcode->position == OPCODE_ONLY;
}

static enum sequence_place place_frame(struct flow *flow, const struct frame *frame)
{
    bool is_response = (frame->flags & FRAME_RESPONDER) != 0;

    if (!opcode_is_connected(frame->opcode_number))
        return SEQUENCE_NEXT;
    return sequence_add(&flow->streams[is_response ? FLOW_RESPONSES : FLOW_REQUESTS].sequence, frame->psn);
}

static bool is_new_connection(const struct flow *flow, const struct frame *frame, enum sequence_place place)
{
    if (!begins_message(frame) || (frame->flags & FRAME_RESPONDER) != 0)
        return false;
    return place == SEQUENCE_FAR || (place == SEQUENCE_REPEATED && reuse_is_new_connection(&flow->reuse, frame));
}

static void count_sequence(struct flow *flow, const struct frame *frame, struct window_frame *counted,
                           enum sequence_place place)
{
    bool is_response = (frame->flags & FRAME_RESPONDER) != 0;

    counted->repeated = place == SEQUENCE_REPEATED || place == SEQUENCE_FAR;
    counted->retransmitted = counted->repeated;
    flow->total.repeated_frames += counted->repeated;
    if (place == SEQUENCE_LATE) {
        flow->total.late_frames++;
        counted->retransmitted = !is_response && is_explained(flow, frame->psn);
    }
    flow->total.retransmitted_frames += counted->retransmitted;
    flow->total.retransmitted_bytes += counted->retransmitted ? frame->payload_bytes : 0;
}

/* A time that does not run backwards from one data frame of the flow to the next. */
static uint64_t find_time(struct meter *meter, struct flow *flow, uint64_t at_ns)
{
    if (at_ns == 0 || at_ns < flow->data_ns)
        tally_add(meter->tallies, at_ns == 0 ? TALLY_FRAMES_NO_TIME : TALLY_FRAMES_TIME_BACKWARDS, 1);
    else
        flow->data_ns = at_ns;
    return flow->data_ns;
}

static void count_data(struct meter *meter, struct flow *flow, const struct frame *frame, uint64_t stamped_ns)
{
    uint64_t at_ns = find_time(meter, flow, stamped_ns);
    struct window_frame counted = {.at_ns = at_ns,
                                   .wire_bytes = frame->wire_bytes,
                                   .payload_bytes = frame->payload_bytes,
                                   .marked = (frame->flags & FRAME_MARKED) != 0};
    bool is_response = (frame->flags & FRAME_RESPONDER) != 0;
    enum sequence_place place = place_frame(flow, frame);

    if (is_new_connection(flow, frame, place)) {
        flow = succeed_flow(meter, flow, frame, at_ns);
        if (flow == NULL)
            return;
        flow->data_ns = at_ns;
        flow->total.last_ns = at_ns;
        place = place_frame(flow, frame);
    }
    if (place == SEQUENCE_NEXT && begins_message(frame))
        reuse_note(&flow->reuse, frame);
    flow->total.data_frames++;
    flow->total.wire_bytes += frame->wire_bytes;
    flow->total.payload_bytes += frame->payload_bytes;
    count_sequence(flow, frame, &counted, place);
    window_note(meter->windows, &flow->window, flow->number, &counted);
    flow->total.messages +=
        message_note(meter->messages, &flow->streams[is_response].messages, flow->number, frame, at_ns, place);
}

static void count_frame(struct meter *meter, const struct frame *frame, uint32_t hash, uint64_t at_ns)
{
    struct flow *flow = flow_find(meter->flows, &frame->key, hash);

    if (flow == NULL)
        flow = begin_flow(meter, frame, at_ns);
    if (flow == NULL)
        return;
    if (at_ns > flow->total.last_ns)
        flow->total.last_ns = at_ns;
    flow->total.marked_frames += (frame->flags & FRAME_MARKED) != 0;
    if (frame->acknowledgement != 0 || frame->opcode->kind == OPCODE_CONGESTION)
        count_answer(meter, flow, frame);
    else
        count_data(meter, flow, frame, at_ns);
}

/*
 * Three passes over a burst, so that the memory of one frame's flow is on its way while others are worked on.
 */
void meter_frames(struct meter *meter, const struct source_frame *frames, size_t count)
{
    struct frame parsed[SOURCE_BURST_FRAMES];
    uint32_t hashes[SOURCE_BURST_FRAMES];
    uint64_t times_ns[SOURCE_BURST_FRAMES];
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct frame *frame = &parsed[kept];
        enum tally verdict =
            frame_parse(frame, frames[i].layer, frames[i].bytes, frames[i].captured_bytes, frames[i].original_bytes);
        tally_add(meter->tallies, verdict, 1);
        if (verdict != TALLY_FRAMES_ROCE)
            continue;
        frame->key.port = frames[i].port;
        hashes[kept] = flow_hash(meter->flows, &frame->key);
        times_ns[kept] = frames[i].at_ns;
        flow_expect(meter->flows, hashes[kept++]);
    }
    for (size_t i = 0; i < kept; i++)
        flow_expect_frame(meter->flows, hashes[i], parsed[i].psn);
    for (size_t i = 0; i < kept; i++)
        count_frame(meter, &parsed[i], hashes[i], times_ns[i]);
}

void meter_settle(struct meter *meter, uint64_t now_ns, uint64_t stale_ns)
{
    uint64_t present = now_ns / window_ring_window_ns(meter->windows);

    for (uint32_t number = 1; number <= flow_count(meter->flows); number++) {
        struct flow *flow = flow_at(meter->flows, number);
        if (flow->window.index < present)
            window_close(meter->windows, &flow->window, number);
        for (unsigned i = 0; i < FLOW_STREAMS_COUNT; i++)
            flow->total.messages +=
                message_abandon(meter->messages, &flow->streams[i].messages, number, is_loop(flow), stale_ns);
    }
}
