/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the sequence numbers in a queue pair's context to readings: how far it went between two looks. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "wire/record.h"

struct psn_sample {
    uint64_t from_ns; /* the context was read at some time within these */
    uint64_t to_ns;
    uint32_t next_send; /* 24 bits each */
    uint32_t next_receive;
    bool has_receive;
    bool has_context; /* the four below are known */
    uint32_t last_acked;
    uint32_t sent_messages;
    uint32_t received_messages;
    uint32_t path_mtu_bytes; /* exact, from the context */
    uint32_t mtu_most_bytes; /* what the port allows; 0 = not known */
    uint64_t bits_a_second;  /* of the port; 0 = not known */
};

struct psn_track {
    bool is_known;
    uint32_t highest_send; /* the furthest that next_send has been */
    struct psn_sample last;
};

/*
 * Takes a look into account. True when something moved since the one before, with what it was in *reading
 * (header.source is the caller's). The first look only begins the track.
 */
bool psn_advance(struct psn_track *track, const struct psn_sample *sample, struct record_reading *reading);
