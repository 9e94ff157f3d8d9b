/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums by arithmetic: of n frames that flows take turns with, each flow has n / flows. A FIRST frame has a RETH, and so
 * that all frames are of one length its 16 bytes are missing from the payload.
 */
#include "tests/bench/nic/traffic.h"

#include <errno.h>
#include <string.h>

#include "nic/window/pages.h"
#include "wire/log.h"

#define AT_IP_LENGTH   16
#define AT_UDP_LENGTH  38
#define AT_SOURCE      26
#define AT_DESTINATION 30
#define AT_OPCODE      42
#define AT_QPN         47
#define AT_PSN         51
#define HEADERS_BYTES  54u
#define RETH_BYTES     16u
#define ICRC_BYTES     4u
#define STRANGER       0x0b000000u /* 11.0.0.0 and what follows */

static void put_be16(uint8_t *at, uint16_t value)
{
    value = __builtin_bswap16(value);
    memcpy(at, &value, sizeof value);
}

static void put_be32(uint8_t *at, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(at, &value, sizeof value);
}

static void make_frame(uint8_t *bytes, const struct traffic *traffic)
{
    static const uint8_t headers[HEADERS_BYTES] = {
        2,    0,    0, 0, 0, 1, 2,    0,    0,    0,    0,    2,    0x08, 0x00, /* Ethernet */
        0x45, 0x68, 0, 0, 0, 0, 0x40, 0,    64,   17,   0,    0,                /* IPv4 up to its addresses */
        0,    0,    0, 0, 0, 0, 0,    0,    0xc0, 0x00, 0x12, 0xb7,             /* those, and UDP's ports */
        0,    0,    0, 0, 0, 0, 0xff, 0xff, /* UDP's length, BTH up to the partition key */
    };
    uint16_t udp_bytes = (uint16_t)(8 + 12 + traffic->payload_bytes + ICRC_BYTES);

    memcpy(bytes, headers, sizeof headers);
    put_be16(bytes + AT_IP_LENGTH, udp_bytes + 20);
    put_be16(bytes + AT_UDP_LENGTH, udp_bytes);
}

uint8_t *traffic_frame(const struct traffic *traffic, size_t buffer)
{
    return traffic->buffers + buffer * TRAFFIC_BUFFER_BYTES + TRAFFIC_HEADROOM;
}

uint32_t traffic_frame_bytes(const struct traffic *traffic)
{
    return HEADERS_BYTES + traffic->payload_bytes + ICRC_BYTES;
}

int traffic_create(struct traffic *traffic, uint32_t flows, uint32_t payload_bytes, uint32_t strangers,
                   size_t buffers_wanted)
{
    size_t unit = strangers != 0 ? 2 * (size_t)flows : flows;
    size_t count = buffers_wanted < unit ? unit : buffers_wanted - buffers_wanted % unit;

    *traffic = (struct traffic){
        .flows = flows, .payload_bytes = payload_bytes, .strangers = strangers, .buffers_count = count};
    traffic->buffers = pages_create(count * TRAFFIC_BUFFER_BYTES);
    if (traffic->buffers == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        make_frame(traffic_frame(traffic, i), traffic);
    return 0;
}

void traffic_destroy(struct traffic *traffic)
{
    pages_destroy(traffic->buffers, traffic->buffers_count * TRAFFIC_BUFFER_BYTES);
    traffic->buffers = NULL;
}

static void fill_own(struct traffic *traffic, uint8_t *frame)
{
    uint32_t message_frames = TRAFFIC_MESSAGE_BYTES / traffic->payload_bytes;
    uint32_t within = traffic->next_psn % message_frames;

    put_be32(frame + AT_SOURCE, 0x0a000000u + traffic->next_flow % 8);
    put_be32(frame + AT_DESTINATION, 0x0a010000u + traffic->next_flow % 64);
    frame[AT_OPCODE] = within == 0 ? 0x06 : within == message_frames - 1 ? 0x08 : 0x07;
    put_be32(frame + AT_QPN - 1, traffic->next_flow);
    put_be32(frame + AT_PSN - 1, traffic->next_psn & 0xffffff);
    if (++traffic->next_flow == traffic->flows) {
        traffic->next_flow = 0;
        traffic->next_psn++;
    }
}

/* An ONLY frame of a flow that may never come again. */
static void fill_strange(struct traffic *traffic, uint8_t *frame)
{
    uint32_t stranger = (uint32_t)(traffic->strange_frames++ % traffic->strangers);

    put_be32(frame + AT_SOURCE, STRANGER + stranger);
    put_be32(frame + AT_DESTINATION, 0x0a010000u);
    frame[AT_OPCODE] = 0x0a;
    put_be32(frame + AT_QPN - 1, 7);
    put_be32(frame + AT_PSN - 1, 0);
}

void traffic_fill(struct traffic *traffic)
{
    for (size_t i = 0; i < traffic->buffers_count; i++, traffic->frames++) {
        if (traffic->strangers != 0 && i % 2 == 1)
            fill_strange(traffic, traffic_frame(traffic, i));
        else
            fill_own(traffic, traffic_frame(traffic, i));
    }
}

static uint64_t firsts_of(uint64_t frames, uint32_t message_frames)
{
    return (frames + message_frames - 1) / message_frames;
}

bool traffic_is_counted(const struct traffic *traffic, struct meter *meter)
{
    uint64_t own_frames = traffic->frames - traffic->strange_frames;
    uint32_t message_frames = TRAFFIC_MESSAGE_BYTES / traffic->payload_bytes;
    uint64_t each = own_frames / traffic->flows; /* turns are whole */
    uint64_t each_bytes = each * traffic->payload_bytes - firsts_of(each, message_frames) * RETH_BYTES;
    uint32_t right = 0;

    for (uint32_t number = 1; number <= flow_count(meter->flows); number++) {
        const struct flow *flow = flow_at(meter->flows, number);
        struct window_sums data = flow_data(flow);
        bool is_own = ((const uint8_t *)flow->key.source)[12] == 10;
        right += is_own && data.frames == each && data.payload_bytes == each_bytes && flow->odd.repeated_frames == 0 &&
                 flow->odd.late_frames == 0 && flow->messages == each / message_frames;
    }
    if (right == traffic->flows)
        return true;
    return log_error_return(false, "%u of %u flows have %llu frames and %llu bytes each", right, traffic->flows,
                            (unsigned long long)each, (unsigned long long)each_bytes);
}
