/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as frames. The first two bytes say the link layer and how much longer the frame was on the wire. Checked:
 * no more payload than the frame had bytes; the same answer twice; and that counting the frame breaks no sum.
 */
#include "nic/meter.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check_parse(enum frame_layer layer, const uint8_t *bytes, size_t captured_bytes, size_t original_bytes)
{
    struct frame frame, again;
    enum tally verdict = frame_parse(&frame, layer, bytes, captured_bytes, original_bytes);

    if (verdict > TALLY_FRAMES_UNKNOWN_SYNDROME)
        abort();
    if (verdict == TALLY_FRAMES_ROCE && frame.payload_bytes >= original_bytes)
        abort();
    if (frame_parse(&again, layer, bytes, captured_bytes, original_bytes) != verdict)
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
