/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of flows: fixed size, looked up by key; what is new is refused when it is full. A flow stays where it is
 * until the table is destroyed. A new connection under an old key gets a flow of its own, of the next generation. All
 * on the measuring thread; nothing allocates after create.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nic/flow/answer.h"
#include "nic/flow/message.h"
#include "nic/flow/pairing.h"
#include "nic/flow/recovery.h"
#include "nic/flow/reuse.h"
#include "nic/flow/sequence.h"
#include "nic/frame/frame.h"
#include "nic/frame/glance.h"
#include "nic/window/window.h"
#include "wire/record.h"

#define FLOW_BURST_MAX 32

enum flow_stream_kind {
    FLOW_REQUESTS = 0,
    FLOW_RESPONSES = 1, /* READ responses: numbered by the other direction's requests */
    FLOW_STREAMS_COUNT,
};

/* What is rare, but about data. */
struct flow_oddity {
    uint32_t marked_frames;
    uint32_t repeated_frames; /* which no window counts */
    uint64_t repeated_wire_bytes;
    uint64_t repeated_payload_bytes;
    uint32_t late_frames;
    uint32_t retransmitted_frames;
    uint64_t retransmitted_bytes;
};

/* The last READ that was asked for: one for a part of it asks again. */
struct flow_read {
    uint64_t place;
    uint32_t bytes;
    uint32_t psn;
};

struct flow_stream {
    struct message_track messages;
    struct sequence sequence;
};

/* Frames that follow each other within a message, with nothing special about them: train.h. */
struct flow_train {
    uint64_t frames_before; /* the windows' sums up to which the message is told; 0 = there is no train */
    uint64_t payload_before;
    uint8_t opcode_number;
};

/* What a frame of a train touches comes first, in the fewest lines of 64 bytes, and the head of its sequence. */
struct flow {
    struct plain_name name; /* what a glance finds it by */
    uint64_t next_sign;     /* of the frame that the train goes on with, or GLANCE_NO_SIGN */
    uint64_t data_ns;       /* time of the last data frame */
    uint32_t number;        /* counts from 1 */
    struct frame_look look; /* of the last data frame */
    uint64_t messages;
    struct window_track windows; /* those of the coarser rings in a line of their own */
    struct flow_train train;
    struct flow_oddity odd;
    uint64_t last_ns; /* when its last frame came that was in no train: see flow_last_ns */
    struct flow_stream streams[FLOW_STREAMS_COUNT];
    struct flow_key key;
    uint64_t first_ns;
    uint32_t generation;
    uint32_t next_of_pair; /* for the table */
    uint32_t source_port_changes;
    uint8_t vantage;
    uint8_t codepoints; /* bit n = ECN code point n was seen on data, before `look` */
    struct recovery recovery[FLOW_STREAMS_COUNT];
    struct answers answers; /* that travel in this flow */
    struct pairing pairing;
    struct flow_read read;
    struct reuse reuse; /* of the requests */
    uint8_t spare[8];   /* flows of an odd number of lines lie in all sets of a cache, those of an even one in half */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct flow) / 64 % 2 == 1, "an odd number of lines");

struct flow_table;

int flow_table_create(struct flow_table **table, uint32_t flows_max);
void flow_table_destroy(struct flow_table **table);

/* Has all its memory taken now. */
void flow_table_prepare(struct flow_table *table);

/* Bytes that a table of that size takes. */
size_t flow_table_bytes(uint32_t flows_max);

/* The newest flow of a key, or NULL. */
struct flow *flow_find(struct flow_table *table, const struct flow_key *key);

/*
 * The same by the names of a burst of at most FLOW_BURST_MAX frames; the memory of one is on its way while others are
 * looked for, and what a frame of a train will change of it is asked for too. NULL where the way is lost.
 */
void flow_find_burst(struct flow_table *table, const struct glance *glances, size_t count, struct flow **flows);

/* A new flow; one of the same key is succeeded. NULL when the table is full. */
struct flow *flow_add(struct flow_table *table, const struct flow_key *key);

uint32_t flow_capacity(const struct flow_table *table);

/* Flow numbers 1 .. flow_count. */
uint32_t flow_count(const struct flow_table *table);
struct flow *flow_at(const struct flow_table *table, uint32_t number);

/* The flows from the key's destination to its source, one after the other; NULL begins, NULL ends. */
struct flow *flow_next_reverse(struct flow_table *table, const struct flow_key *key, struct flow *flow);

/* The PSNs of its requests: to be read in this way while it may be that a train goes on, which keeps the highest. */
const struct sequence *flow_sequence(struct flow *flow);

/* All its data frames, those that came again too. */
struct window_sums flow_data(const struct flow *flow);

/* When its last frame came. */
uint64_t flow_last_ns(const struct flow *flow);

/* Fills the record that introduces the flow. */
void flow_record(const struct flow *flow, struct record_flow *record);

/* Fills the record of its counts, with those of its pair that concern it; at_ns is left to the caller. */
void flow_total_record(struct flow_table *table, const struct flow *flow, struct record_flow_total *record);
