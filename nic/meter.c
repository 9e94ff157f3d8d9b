/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a frame. What is a retransmission follows from what a port can know: a PSN seen before; or one seen for
 * the first time below the highest, when a NAK of the reverse direction had asked for it. Invariant: a frame is counted
 * in one flow's totals once, and its payload once in a window and a message, however often it is sent.
 */
#include "nic/meter.h"

#include <errno.h>
#include <string.h>

#include "nic/flow/train.h"
#include "nic/frame/glance.h"
#include "nic/frame/icrc.h"
#include "nic/port/rdma_port.h"
#include "wire/log.h"

#define ICRC_BYTES 4
_Static_assert(FLOW_BURST_MAX <= WINDOW_OVER_MAX, "a burst's windows are stored together");

#define CANDIDATES_MAX 1024 /* flows of one pair of addresses that an answer is matched with */

size_t meter_fixed_bytes(const struct meter_options *options)
{
    return flow_table_bytes(options->flows_max) + message_queue_bytes(options->messages_max) + set_ups_bytes();
}

int meter_init(struct meter *meter, const struct meter_options *options, struct tallies *tallies)
{
    size_t fixed_bytes = meter_fixed_bytes(options);
    size_t left_bytes = options->memory_bytes > fixed_bytes ? options->memory_bytes - fixed_bytes : 0;

    memset(meter, 0, sizeof *meter);
    meter->tallies = tallies;
    pairing_budget_init(&meter->pairing);
    int error = options->verify_icrc ? icrc_create(&meter->icrc) : 0;
    if (error == 0)
        error = flow_table_create(&meter->flows, options->flows_max);
    if (error == 0)
        error = message_queue_create(&meter->messages, options->messages_max, tallies);
    if (error == 0)
        error = set_ups_create(&meter->set_ups);
    if (error == 0)
        error = tiers_create(&meter->tiers, options->window_ns, left_bytes, tallies);
    if (error == 0) {
        message_queue_set_history(meter->messages, meter->tiers.history);
        meter->windows = meter->tiers.rings[0];
        return 0;
    }
    meter_fini(meter);
    if (error == -EINVAL)
        return log_error_return(
            error,
            "%zu bytes of memory do not suffice: %u flows take %zu, and what is kept needs 1 MiB; raise "
            "--memory or lower --max-flows",
            options->memory_bytes, options->flows_max, fixed_bytes);
    return log_error_return(error, "cannot get %zu bytes of memory; lower --memory", options->memory_bytes);
}

void meter_prepare(struct meter *meter)
{
    const struct tiers *tiers = &meter->tiers;
    const double mib = 1 << 20;

    flow_table_prepare(meter->flows);
    tiers_prepare(&meter->tiers);
    log_info(
        "memory in MiB: %.1f for %u flows, %.1f for windows of %g us, %.1f of %g us, %.1f of %g us, %.1f for messages",
        (double)flow_table_bytes(flow_capacity(meter->flows)) / mib, flow_capacity(meter->flows),
        (double)window_ring_bytes_capacity(tiers->rings[0]) / mib, window_ring_window_ns(tiers->rings[0]) / 1e3,
        (double)window_ring_bytes_capacity(tiers->rings[1]) / mib, window_ring_window_ns(tiers->rings[1]) / 1e3,
        (double)window_ring_bytes_capacity(tiers->rings[2]) / mib, window_ring_window_ns(tiers->rings[2]) / 1e3,
        (double)history_bytes_capacity(tiers->history) / mib);
}

void meter_fini(struct meter *meter)
{
    set_ups_destroy(&meter->set_ups);
    tiers_destroy(&meter->tiers);
    message_queue_destroy(&meter->messages);
    flow_table_destroy(&meter->flows);
    icrc_destroy(&meter->icrc);
}

void meter_set_ports(struct meter *meter, const struct source *source)
{
    meter->ports_count = source_ports(source, meter->ports, SOURCE_PORTS_MAX);
}

uint32_t meter_add_port(struct meter *meter, const struct rdma_port *port)
{
    uint32_t number = 0;

    if (meter->ports_count == SOURCE_PORTS_MAX)
        return 0;
    for (size_t i = 0; i < meter->ports_count; i++)
        if (meter->ports[i].port > number)
            number = meter->ports[i].port;
    struct record_port *record = &meter->ports[meter->ports_count++];
    *record = (struct record_port){.port = number + 1};
    rdma_port_name(port, record->name, sizeof record->name);
    memcpy(record->address, port->address, ADDRESS_BYTES);
    return record->port;
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

/* Joins the flow with that of the other direction, if the connection was seen being made, or was told of. */
static struct flow *join_by_set_up(struct meter *meter, struct flow *flow)
{
    struct flow_key reverse;
    enum paired_by by = set_ups_reverse(meter->set_ups, &flow->key, &reverse);
    struct flow *other = by == PAIRED_NOT ? NULL : flow_find(meter->flows, &reverse);

    if (other != NULL && other != flow && !other->pairing.is_over)
        pairing_join(flow, other, by, meter->tallies);
    return pairing_other(meter->flows, flow);
}

void meter_tell(struct meter *meter, const struct record_queue_pair *pair)
{
    tally_add(meter->tallies, TALLY_CONNECTIONS_TOLD, set_ups_tell(meter->set_ups, pair));
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
    flow->look = frame->look;
    join_by_set_up(meter, flow);
    return flow;
}

static bool is_loop(const struct flow *flow)
{
    return memcmp(flow->key.source, flow->key.destination, sizeof flow->key.source) == 0;
}

static void settle_flow(struct meter *meter, struct flow *flow)
{
    train_end(flow);
    window_close(meter->windows, &flow->windows, flow->number);
    window_close_coarse(meter->windows, &flow->windows, flow->number, UINT64_MAX);
    for (unsigned i = 0; i < FLOW_STREAMS_COUNT; i++)
        flow->messages +=
            message_abandon(meter->messages, &flow->streams[i].messages, flow->number, is_loop(flow), UINT64_MAX);
}

/* A new connection uses the key of an old one. */
static struct flow *succeed_flow(struct meter *meter, struct flow *flow, const struct frame *frame, uint64_t at_ns)
{
    settle_flow(meter, flow);
    pairing_end(meter->flows, flow);
    tally_add(meter->tallies, TALLY_FLOWS_RESTARTED, 1);
    return begin_flow(meter, frame, at_ns);
}

static void ask_again(struct flow *flow, uint32_t psn, bool sure)
{
    recovery_ask(&flow->recovery[FLOW_REQUESTS], psn, flow_sequence(flow)->highest, sure);
}

/*
 * A NAK whose flow is not known: the only one that lacks the PSN (the loss was before us), or the only one that has it
 * (it is behind us). Where there are several, it is kept in mind that each may be sent again.
 */
static void place_nak(struct meter *meter, const struct frame *nak)
{
    struct flow *flow = NULL, *lacking = NULL, *having = NULL;
    unsigned lacking_count = 0, having_count = 0;

    for (unsigned i = 0; i < CANDIDATES_MAX && (flow = flow_next_reverse(meter->flows, &nak->key, flow)) != NULL; i++) {
        const struct sequence *sequence = flow_sequence(flow);
        bool lacks = sequence_misses(sequence, nak->psn);
        if (flow->pairing.flow != 0 || flow->pairing.is_over || (!lacks && !sequence_holds(sequence, nak->psn)))
            continue;
        ask_again(flow, nak->psn, false);
        lacking_count += lacks;
        having_count += !lacks;
        *(lacks ? &lacking : &having) = flow;
    }
    if (lacking_count == 1)
        ask_again(lacking, nak->psn, true);
    else if (lacking_count == 0 && having_count == 1)
        ask_again(having, nak->psn, true);
    else if (lacking_count + having_count != 0)
        tally_add(meter->tallies, TALLY_NAKS_UNPLACED, 1);
}

/* What a NAK asks for will be sent again. */
static void note_nak(struct meter *meter, const struct frame *nak, struct flow *concerned)
{
    bool asks = nak->acknowledgement == FRAME_RNR_NAK || (nak->syndrome & 0x1f) == NAK_SEQUENCE_ERROR;

    if (asks && concerned != NULL)
        ask_again(concerned, nak->psn, true);
    else if (asks)
        place_nak(meter, nak);
}

static void count_answer(struct meter *meter, struct flow *flow, const struct frame *frame, uint64_t at_ns)
{
    if (flow->pairing.is_over)
        flow = succeed_flow(meter, flow, frame, at_ns);
    if (flow == NULL)
        return;
    flow->last_ns = at_ns > flow->last_ns ? at_ns : flow->last_ns;
    answer_note(&flow->answers, frame, meter->tallies);
    struct flow *concerned = frame->acknowledgement == FRAME_ACK
                                 ? pairing_note_ack(&meter->pairing, meter->flows, flow, frame, meter->tallies)
                                 : pairing_other(meter->flows, flow);
    if (concerned == NULL)
        concerned = join_by_set_up(meter, flow);
    if (frame->acknowledgement == FRAME_NAK || frame->acknowledgement == FRAME_RNR_NAK)
        note_nak(meter, frame, concerned);
    tally_add(meter->tallies, TALLY_ANSWERS_UNPAIRED, concerned == NULL);
}

/* Whether answers to the flow's frames were seen: whether a NAK would have been. */
static bool hears_answers(struct meter *meter, const struct flow *flow)
{
    struct flow *other = NULL;

    for (unsigned i = 0; i < CANDIDATES_MAX && (other = flow_next_reverse(meter->flows, &flow->key, other)) != NULL;
         i++)
        if (answer_count(&other->answers) != 0)
            return true;
    return false;
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

/* A READ for a part of the one before: its answer did not come whole, and is asked for again. */
static bool is_read_again(const struct flow_read *read, const struct frame *frame)
{
    return sequence_distance(frame->psn, read->psn) >= 0 && frame->place - read->place < read->bytes;
}

/* A READ's answer comes in the other direction: there it is explained when it comes again. */
static void note_read(struct meter *meter, struct flow *flow, const struct frame *frame, enum sequence_place place)
{
    struct flow *other = pairing_other(meter->flows, flow);

    if (place == SEQUENCE_NEXT) {
        flow->read = (struct flow_read){.place = frame->place, .bytes = frame->dma_bytes, .psn = frame->psn};
        return;
    }
    if (place == SEQUENCE_LATE && is_read_again(&flow->read, frame))
        ask_again(flow, frame->psn, true);
    if (other != NULL)
        recovery_ask(&other->recovery[FLOW_RESPONSES], frame->psn, other->streams[FLOW_RESPONSES].sequence.highest,
                     true);
}

/* A frame that is out of order, or comes after a pause: was it sent again? */
static void judge(struct meter *meter, struct flow *flow, const struct frame *frame, enum sequence_place place,
                  uint64_t pause_ns, struct window_frame *counted)
{
    unsigned stream = (frame->flags & FRAME_RESPONDER) != 0 ? FLOW_RESPONSES : FLOW_REQUESTS;
    uint64_t frames = flow_data(flow).frames;
    struct recovery_frame seen = {
        .psn = frame->psn,
        .highest = flow->streams[stream].sequence.highest,
        .place = place,
        .pause_ns = pause_ns,
        .payload_bytes = frame->payload_bytes,
        .goes_on = !begins_message(frame),
        .at_sender = flow->vantage == VANTAGE_TX,
    };

    if (frames == 0)
        return;
    counted->repeated = place == SEQUENCE_REPEATED || place == SEQUENCE_FAR;
    seen.usual_ns = (flow->data_ns - pause_ns - flow->first_ns) / frames;
    seen.answers_heard = counted->repeated && frame->psn == seen.highest && hears_answers(meter, flow);
    if (place != SEQUENCE_NEXT && frame->opcode->kind == OPCODE_READ_REQUEST)
        note_read(meter, flow, frame, place);
    counted->retransmitted = recovery_judge(&flow->recovery[stream], &seen);
    flow->odd.repeated_frames += counted->repeated;
    flow->odd.repeated_wire_bytes += counted->repeated ? frame->wire_bytes : 0;
    flow->odd.repeated_payload_bytes += counted->repeated ? frame->payload_bytes : 0;
    flow->odd.late_frames += place == SEQUENCE_LATE;
    flow->odd.retransmitted_frames += counted->retransmitted;
    flow->odd.retransmitted_bytes += counted->retransmitted ? frame->payload_bytes : 0;
}

/* The UDP source port, the DSCP or the ECN bits are not those of the data frame before. */
static void note_look(struct flow *flow, const struct frame *frame)
{
    if (flow_data(flow).frames != 0) {
        flow->codepoints |= (uint8_t)(1u << flow->look.ecn);
        flow->source_port_changes += flow->look.udp_source_port != frame->look.udp_source_port;
    }
    flow->look = frame->look;
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

/* The first frame of a message, seen for the first time and in order. */
static void note_begin(struct meter *meter, struct flow *flow, const struct frame *frame)
{
    reuse_note(&flow->reuse, frame);
    if (frame->opcode->kind == OPCODE_READ_REQUEST)
        note_read(meter, flow, frame, SEQUENCE_NEXT);
    else if (frame->opcode->kind == OPCODE_READ_RESPONSE)
        pairing_note_ack(&meter->pairing, meter->flows, flow, frame, meter->tallies);
}

static void count_data(struct meter *meter, struct flow *flow, const struct frame *frame, uint64_t stamped_ns)
{
    train_end(flow);
    uint64_t before_ns = flow->data_ns;
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
        flow->last_ns = at_ns;
        place = place_frame(flow, frame);
    }
    if (memcmp(&flow->look, &frame->look, sizeof flow->look) != 0)
        note_look(flow, frame);
    if (place == SEQUENCE_NEXT && begins_message(frame))
        note_begin(meter, flow, frame);
    else if (place == SEQUENCE_LATE && begins_message(frame))
        reuse_note(&flow->reuse, frame);
    if (place != SEQUENCE_NEXT || at_ns - before_ns >= RECOVERY_PAUSE_NS)
        judge(meter, flow, frame, place, at_ns - before_ns, &counted);
    window_note(meter->windows, &flow->windows, flow->number, &counted);
    flow->messages += message_note(meter->messages, &flow->streams[is_response].messages, flow->number, frame, at_ns,
                                   &flow->streams[is_response].sequence, place);
    if (place == SEQUENCE_NEXT && !is_response && opcode_is_connected(frame->opcode_number))
        train_begin(flow, frame);
}

static void count_frame(struct meter *meter, struct flow *flow, const struct frame *frame, uint64_t at_ns)
{
    if (flow == NULL)
        flow = begin_flow(meter, frame, at_ns);
    if (flow == NULL)
        return;
    if (at_ns > flow->last_ns)
        flow->last_ns = at_ns;
    flow->odd.marked_frames += (frame->flags & FRAME_MARKED) != 0;
    if (frame->acknowledgement != 0 || frame->opcode->kind == OPCODE_CONGESTION)
        count_answer(meter, flow, frame, at_ns);
    else
        count_data(meter, flow, frame, at_ns);
}

static enum tally parse_frame(const struct icrc *icrc, struct frame *frame, const struct source_frame *from)
{
    if (icrc == NULL)
        return frame_parse(frame, from->layer, from->bytes, from->captured_bytes, from->original_bytes);
    return frame_parse_verified(frame, icrc, from->layer, from->bytes, from->captured_bytes, from->original_bytes);
}

/* A management datagram, when all of it is there: it ends with the ICRC. */
static void note_set_up(struct meter *meter, const struct frame *frame, const struct source_frame *seen)
{
    if (frame->payload_bytes != SET_UP_MAD_BYTES || seen->captured_bytes != seen->original_bytes ||
        seen->captured_bytes < SET_UP_MAD_BYTES + ICRC_BYTES)
        return;
    const uint8_t *mad = (const uint8_t *)seen->bytes + seen->captured_bytes - SET_UP_MAD_BYTES - ICRC_BYTES;
    if (set_ups_note(meter->set_ups, frame, mad, SET_UP_MAD_BYTES))
        tally_add(meter->tallies, TALLY_CONNECTIONS_SET_UP, 1);
}

/* A frame that is in no train, or whose flow is not known. Returns whether it began a flow. */
static bool count_other(struct meter *meter, struct flow *flow, const struct source_frame *seen)
{
    struct frame frame;
    enum tally verdict = parse_frame(meter->icrc, &frame, seen);
    uint32_t known = flow_count(meter->flows);

    tally_add(meter->tallies, verdict, 1);
    if (!frame_is_kept(verdict))
        return false;
    frame.key.port = seen->port;
    pairing_budget_add(&meter->pairing, 1);
    if (frame.key.destination_qpn == SET_UP_QPN)
        note_set_up(meter, &frame, seen);
    count_frame(meter, flow != NULL ? flow : flow_find(meter->flows, &frame.key), &frame, seen->at_ns);
    return flow_count(meter->flows) != known;
}

/* At the frames of a burst; where that does not suffice the way is lost. Not inlined: it needs all registers. */
__attribute__((noinline)) static void glance_at(const struct source_frame *seen, size_t count, struct glance *glances)
{
    for (size_t i = 0; i < count; i++) {
        if (seen[i].layer != FRAME_LAYER_ETHERNET ||
            glance_take(&glances[i], seen[i].bytes, seen[i].captured_bytes, seen[i].original_bytes, seen[i].port) == 0)
            glances[i].name = (struct plain_name){.way = GLANCE_LOST_WAY};
    }
}

/* Passes over a burst, so that the memory of one frame's flow is on its way while others are worked on. */
static void count_burst(struct meter *meter, const struct source_frame *seen, size_t count)
{
    struct glance glances[FLOW_BURST_MAX];
    struct flow *flows[FLOW_BURST_MAX];
    struct window_front *front = window_ring_front(meter->windows);
    uint64_t others = 0;

    glance_at(seen, count, glances);
    flow_find_burst(meter->flows, glances, count, flows);
    for (size_t i = 0; i < count; i++) {
        const struct glance *glance = &glances[i];
        struct flow *flow = flows[i];
        if (flow != NULL && train_take(flow, glance, seen[i].at_ns)) {
            window_front_add(front, &flow->windows, flow->number, seen[i].at_ns, glance->wire_bytes,
                             glance->behind_bytes);
            continue;
        }
        others++;
        window_ring_store(meter->windows);
        if (count_other(meter, flow, &seen[i])) /* what was found before is no longer right */
            memset(&flows[i], 0, (count - i) * sizeof flows[i]);
    }
    window_ring_store(meter->windows);
    tally_add(meter->tallies, TALLY_FRAMES_ROCE, count - others);
    pairing_budget_add(&meter->pairing, count - others);
}

void meter_frames(struct meter *meter, const struct source_frame *frames, size_t count)
{
    for (; meter->icrc != NULL && count > 0; frames++, count--) /* a glance does not suffice */
        count_other(meter, NULL, frames);
    for (; count > FLOW_BURST_MAX; frames += FLOW_BURST_MAX, count -= FLOW_BURST_MAX)
        count_burst(meter, frames, FLOW_BURST_MAX);
    count_burst(meter, frames, count);
}

uint32_t meter_settle_some(struct meter *meter, uint32_t number, uint32_t count, uint64_t now_ns, uint64_t stale_ns)
{
    uint64_t present = now_ns / window_ring_window_ns(meter->windows);

    for (; count > 0 && number <= flow_count(meter->flows); number++, count--) {
        struct flow *flow = flow_at(meter->flows, number);
        train_end(flow);
        if (flow->windows.present.index < present)
            window_close(meter->windows, &flow->windows, number);
        window_close_coarse(meter->windows, &flow->windows, number, now_ns);
        for (unsigned i = 0; i < FLOW_STREAMS_COUNT; i++)
            flow->messages +=
                message_abandon(meter->messages, &flow->streams[i].messages, number, is_loop(flow), stale_ns);
    }
    return number <= flow_count(meter->flows) ? number : 0;
}

void meter_settle(struct meter *meter, uint64_t now_ns, uint64_t stale_ns)
{
    meter_settle_some(meter, 1, UINT32_MAX, now_ns, stale_ns);
}
