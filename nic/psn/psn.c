/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PSNs are compared in 24-bit serial arithmetic (RFC 1982): half the circle forwards is progress, half backwards is a
 * sender that went back. Invariant: what is counted once is not counted again when it is sent again, and nothing is
 * counted when the port could have sent half the circle between two looks without saying so.
 *
 * Bytes: a message of k packets carries more than (k - 1) and at most k path MTUs. Of all packets in an interval at
 * most one a message that ended in it is short, and one more belongs to a message still under way.
 */
#include "nic/psn/psn.h"

#include <string.h>

#define PSN_BITS       24
#define PSN_HALF       (1u << (PSN_BITS - 1))
#define RATE_LEAST_BPS 100000000000u /* a software device's rate is a fiction: allow for at least this much */
#define MTU_LEAST      256u

static uint32_t advance(uint32_t from, uint32_t to)
{
    return (to - from) & ((1u << PSN_BITS) - 1);
}

static bool is_forward(uint32_t distance)
{
    return distance < PSN_HALF;
}

/* In this time the port can send half the circle in packets of its smallest usual size. */
static bool may_have_wrapped(const struct psn_sample *sample, uint64_t interval_ns)
{
    uint64_t mtu = sample->path_mtu_bytes != 0 ? sample->path_mtu_bytes : sample->mtu_most_bytes;
    uint64_t rate = sample->bits_a_second > RATE_LEAST_BPS ? sample->bits_a_second : RATE_LEAST_BPS;
    double half_ns = (double)PSN_HALF * (double)(mtu == 0 ? MTU_LEAST : mtu) * 8e9 / (double)rate;

    return (double)interval_ns > half_ns;
}

static void bound_bytes(const struct psn_sample *sample, uint64_t packets, uint32_t messages, uint64_t *least,
                        uint64_t *most)
{
    uint64_t short_packets = (uint64_t)messages + 1;

    *most = packets * (sample->path_mtu_bytes != 0 ? sample->path_mtu_bytes : sample->mtu_most_bytes);
    *least = packets > short_packets ? (packets - short_packets) * sample->path_mtu_bytes : 0;
}

static void count_sent(struct psn_track *track, const struct psn_sample *sample, struct record_reading *reading)
{
    uint32_t step = advance(track->last.next_send, sample->next_send);
    uint32_t beyond = advance(track->highest_send, sample->next_send);

    if (!is_forward(step))
        reading->flags |= READING_REWOUND;
    if (!is_forward(beyond))
        return;
    reading->sent_packets = beyond;
    track->highest_send = sample->next_send;
}

static void count_received(const struct psn_track *track, const struct psn_sample *sample,
                           struct record_reading *reading)
{
    uint32_t step = advance(track->last.next_receive, sample->next_receive);

    if (sample->has_receive && track->last.has_receive && is_forward(step))
        reading->received_packets = step;
}

static void count_acknowledged(const struct psn_track *track, const struct psn_sample *sample,
                               struct record_reading *reading)
{
    uint32_t outstanding = advance(sample->last_acked, track->highest_send);
    uint32_t step = advance(track->last.last_acked, sample->last_acked);

    if (!sample->has_context || !track->last.has_context)
        return;
    reading->acknowledged_packets = is_forward(step) ? step : 0;
    /* the last one acknowledged is one before the first that is not */
    reading->unacknowledged_packets = is_forward(outstanding) && outstanding > 0 ? outstanding - 1 : 0;
}

static void count_bytes(const struct psn_track *track, const struct psn_sample *sample, struct record_reading *reading)
{
    const struct psn_sample *last = &track->last;
    bool has_messages = sample->has_context && last->has_context && sample->path_mtu_bytes != 0;
    uint32_t sent = has_messages ? advance(last->sent_messages, sample->sent_messages) : UINT32_MAX;
    uint32_t received = has_messages ? advance(last->received_messages, sample->received_messages) : UINT32_MAX;

    if (sample->path_mtu_bytes == 0 && sample->mtu_most_bytes == 0)
        return;
    bound_bytes(sample, reading->sent_packets, sent, &reading->sent_bytes_least, &reading->sent_bytes_most);
    bound_bytes(sample, reading->received_packets, received, &reading->received_bytes_least,
                &reading->received_bytes_most);
    reading->fields |= SOURCE_PAYLOAD_BOUNDS;
}

bool psn_advance(struct psn_track *track, const struct psn_sample *sample, struct record_reading *reading)
{
    const struct psn_sample last = track->last;

    if (!track->is_known) {
        *track = (struct psn_track){.is_known = true, .highest_send = sample->next_send, .last = *sample};
        return false;
    }
    *reading = (struct record_reading){
        .from_ns = last.from_ns,
        .to_ns = sample->to_ns,
        .from_bound_ns = (uint32_t)(last.to_ns - last.from_ns),
        .to_bound_ns = (uint32_t)(sample->to_ns - sample->from_ns),
        .fields = SOURCE_PROGRESS,
    };
    count_sent(track, sample, reading);
    count_received(track, sample, reading);
    count_acknowledged(track, sample, reading);
    count_bytes(track, sample, reading);
    if (may_have_wrapped(sample, sample->to_ns - last.from_ns))
        reading->flags |= READING_AMBIGUOUS;
    track->last = *sample;
    return sample->next_send != last.next_send || sample->next_receive != last.next_receive ||
           (sample->has_context && last.has_context && sample->last_acked != last.last_acked);
}
