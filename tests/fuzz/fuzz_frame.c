/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as frames. The first two bytes say the link layer and how much longer the frame was on the wire. Checked:
 * no more payload than the frame had bytes; the same answer by the short way and by the long one; and that counting the
 * frame breaks no sum.
 */
#include "nic/icrc.h"
#include "nic/meter.h"

#include <stdlib.h>
#include <string.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    const struct meter_options options = {
        .window_ns = 1000, .flows_max = 16, .messages_max = 64, .memory_bytes = 2u << 20};
    struct tallies tallies = {0};
    struct meter meter;

    if (length_bytes < 2 || meter_init(&meter, &options, &tallies) != 0)
        return 0;
    struct source_frame frame = {.bytes = bytes + 2,
                                 .captured_bytes = (uint32_t)length_bytes - 2,
                                 .original_bytes = (uint32_t)length_bytes - 2 + bytes[1] * 16u,
                                 .at_ns = 1,
                                 .port = 1,
                                 .layer = (enum frame_layer)(bytes[0] % (FRAME_LAYER_OTHER + 1))};
    check_parse(frame.layer, frame.bytes, frame.captured_bytes, frame.original_bytes);
    const struct source_frame burst[2] = {frame, frame};
    meter_frames(&meter, burst, 2);
    meter_settle(&meter, UINT64_MAX, UINT64_MAX);
    if (flow_count(meter.flows) == 1) {
        struct record_flow_total total;
        flow_total_record(meter.flows, flow_at(meter.flows, 1), &total);
        if (total.data_frames + total.acks + total.naks + total.rnr_naks + total.cnps != 2)
            abort();
        if (total.retransmitted_bytes > total.payload_bytes || total.messages > 2)
            abort();
    }
    meter_fini(&meter);
    return 0;
}
