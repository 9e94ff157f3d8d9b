/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction between two ranks on one channel: eight slots at the receiver. The receiving proxy gives credit for a
 * slice once its rank has the operation and the slot is free; the GPU fills the sender's slot; the sending proxy posts
 * the slice when both are there. Over a NIC, or over NVLink, which no NIC sees. One thread. Slices are counted from
 * the connection's beginning.
 */
#pragma once

#include "tests/simulation/agenda.h"
#include "tests/simulation/fabric.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/view.h"

struct connection;

struct connection_end {
    uint32_t nic;
    uint32_t qpn;
    struct view *view; /* NULL: not looked at */
};

struct connection_options {
    const struct setting *setting;
    struct agenda *agenda;
    struct fabric *fabric;
    struct connection_end sender, receiver;
    bool is_local; /* NVLink */
    uint32_t name;
    agenda_act *sender_woken, *receiver_woken; /* something came that they may wait for */
};

struct connection *connection_create(const struct connection_options *options);
void connection_destroy(struct connection *connection);
bool connection_is_local(const struct connection *connection);

/* Who is to be woken; NULL while nobody waits. */
void connection_set_sender(struct connection *connection, void *lane);
void connection_set_receiver(struct connection *connection, void *lane);

struct connection_share { /* of one operation */
    uint32_t slices;
    uint32_t depth;         /* slices for which there are slots */
    uint32_t slots_a_slice; /* and a multiple of it, slots_a_chunk, is where an operation begins */
    uint32_t slots_a_chunk;
    uint64_t step;
    uint64_t proxy_late_ns;
    struct ledger_row *row; /* of the rank at this end; or NULL */
};

/* The receiving proxy has the operation: it gives credit when those before are done. */
void connection_expect(struct connection *connection, const struct connection_share *share);

/* The sending proxy has it. */
void connection_offer(struct connection *connection, const struct connection_share *share);

/* Whether the sender's GPU may fill a slot; the receiver's may take one. */
bool connection_has_room(const struct connection *connection);
bool connection_has_data(const struct connection *connection);

/* The sender's GPU has filled a slot; the receiver's has emptied one. */
void connection_fill(struct connection *connection, uint32_t bytes);
uint32_t connection_take(struct connection *connection);

/* Bytes of the slice that would be taken. */
uint32_t connection_next_bytes(const struct connection *connection);

struct connection_sum {
    uint64_t bytes, messages, credits, deepest; /* deepest: credits given and not yet used, at most */
};
const struct connection_sum *connection_sum(const struct connection *connection);
