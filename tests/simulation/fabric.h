/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network: each NIC has one port to a leaf switch, leaves are joined by spines without oversubscription. A port
 * gives a message all its rate, one after the other in the order in which they were posted; small messages do not wait.
 * A message passes from port to port without being stored. Faults of links act here. One thread.
 */
#pragma once

#include <stdint.h>

#include "tests/simulation/setting.h"

#define FRAME_BYTES        4096u /* path MTU */
#define FRAME_HEADER_BYTES 58u   /* Ethernet, IPv4, UDP, BTH, ICRC; without RETH's 16 */

struct fabric;

struct passage {                                /* of one message; true time */
    uint64_t first_ns, last_ns;                 /* first and last frame at the sender's port */
    uint64_t arrives_first_ns, arrives_last_ns; /* at the receiver's */
    uint64_t rnr_wait_ns, paused_ns;
    uint32_t resent_frames, naks;
    uint32_t marked_frames, cnps;
    uint32_t rnr_naks;
};

struct fabric *fabric_create(const struct setting *setting);
void fabric_destroy(struct fabric *fabric);

struct fabric_message {
    uint32_t from, to; /* NICs */
    uint32_t bytes;
    uint64_t posted_ns; /* now, or when the message before it on its queue pair has left */
    uint64_t step;      /* the sender's */
    uint64_t name;      /* its own, for chance */
};

/* Sends a message: its NIC is busy with it from first_ns to last_ns. */
void fabric_pass(struct fabric *fabric, const struct fabric_message *message, struct passage *passage);

/* Nanoseconds that a port takes for so many bytes of payload. */
uint64_t fabric_bytes_ns(const struct fabric *fabric, uint64_t bytes);

/* From one port to the other, an empty network. */
uint64_t fabric_latency_ns(const struct fabric *fabric, uint32_t from, uint32_t to);

struct fabric_count { /* of one NIC, since the beginning */
    uint64_t sent_bytes, received_bytes, paused_ns, pauses, marked, cnps_sent, cnps_handled, resent, naks, rnr_sent,
        rnr_received;
};
const struct fabric_count *fabric_counts(const struct fabric *fabric, uint32_t nic);
