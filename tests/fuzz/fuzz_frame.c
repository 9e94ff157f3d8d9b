/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as frames. The first two bytes say the link layer and how much longer the frame was on the wire. Checked:
 * no more payload than the frame had bytes; the same answer by the short way and by the long one; and that counting the
 * frame breaks no sum.
 */
#include "nic/frame/icrc.h"
#include "nic/meter.h"

#include <stdlib.h>
#include <string.h>

#define FLOWS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check_parse(enum frame_layer layer, const uint8_t *bytes, size_t captured_bytes, size_t original_bytes)
{
    static struct icrc *icrc;
    struct frame frame = {.key.port = 0}, again = {.key.port = 0};
    enum tally verdict = frame_parse(&frame, layer, bytes, captured_bytes, original_bytes);

    if (icrc == NULL && icrc_create(&icrc) != 0)
        return;
    if (verdict > TALLY_FRAMES_UNKNOWN_SYNDROME)
        abort();
    if (verdict == TALLY_FRAMES_ROCE && frame.payload_bytes >= frame.wire_bytes)
        abort();
    if (verdict == TALLY_FRAMES_ROCE && frame.key.mirror == 0 && layer != FRAME_LAYER_ERF &&
        frame.wire_bytes > original_bytes)
        abort();
    enum tally verified = frame_parse_verified(&again, icrc, layer, bytes, captured_bytes, original_bytes);
    if (verified == TALLY_FRAMES_ICRC_UNVERIFIED || verified == TALLY_FRAMES_BAD_ICRC)
        verified = TALLY_FRAMES_ROCE;
    if (verified != verdict || (frame_is_kept(verdict) && memcmp(&frame, &again, sizeof frame) != 0))
        abort();
}

/* A meter serves many inputs, each at a port of its own, hence in a flow of its own. */
static struct meter *take_meter(void)
{
    static const struct meter_options options = {
        .window_ns = 1000, .flows_max = FLOWS_MAX, .messages_max = 1024, .memory_bytes = 8u << 20};
    static struct tallies tallies;
    static struct meter meter;
    static bool is_open;

    if (is_open && flow_count(meter.flows) < FLOWS_MAX)
        return &meter;
    if (is_open)
        meter_fini(&meter);
    is_open = meter_init(&meter, &options, &tallies) == 0;
    return is_open ? &meter : NULL;
}

static void check_total(const struct meter *meter)
{
    struct record_flow_total total;
    struct record_message message;

    flow_total_record(meter->flows, flow_at(meter->flows, flow_count(meter->flows)), &total);
    if (total.data_frames + total.acks + total.naks + total.rnr_naks + total.cnps != 2)
        abort();
    if (total.retransmitted_bytes > total.payload_bytes || total.messages > 2)
        abort();
    while (message_take(meter->messages, &message))
        continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    static uint32_t port;
    struct meter *meter = take_meter();

    if (length_bytes < 2 || meter == NULL)
        return 0;
    struct source_frame frame = {.bytes = bytes + 2,
                                 .captured_bytes = (uint32_t)length_bytes - 2,
                                 .original_bytes = (uint32_t)length_bytes - 2 + bytes[1] * 16u,
                                 .at_ns = 1,
                                 .port = ++port,
                                 .layer = (enum frame_layer)(bytes[0] % (FRAME_LAYER_OTHER + 1))};
    check_parse(frame.layer, frame.bytes, frame.captured_bytes, frame.original_bytes);
    const struct source_frame burst[2] = {frame, frame};
    uint32_t known = flow_count(meter->flows);
    meter_frames(meter, burst, 2);
    meter_settle(meter, UINT64_MAX, UINT64_MAX);
    if (flow_count(meter->flows) > known + 1)
        abort();
    if (flow_count(meter->flows) == known + 1)
        check_total(meter);
    return 0;
}
