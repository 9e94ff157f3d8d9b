/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way from a frame's first byte to the BTH, through every header that RoCE and InfiniBand travel in: Ethernet, VLAN
 * tags, MPLS, IPv4, IPv6, GRH, LRH, UDP, VXLAN, GRE, ERSPAN, ERF. On the way it notes whose flow the frame is, with the
 * ids of the tunnel and of the mirror around it. Nothing is kept between frames; no allocation; any thread.
 *
 * A frame may lie in one ERSPAN header and in one other tunnel (VXLAN, GRE, or an MPLS stack): both are part of its
 * flow's key. What lies deeper is counted as TALLY_FRAMES_TOO_DEEP, for its key would not tell all flows apart.
 */
#pragma once

#include "nic/frame/frame.h"
#include "nic/frame/ip_header.h"
#include "nic/tally.h"
#include "wire/record.h"

enum encapsulation_network {
    ENCAPSULATION_IP = 1,  /* IPv4 or IPv6, and UDP */
    ENCAPSULATION_GRH = 2, /* RoCE v1 */
    ENCAPSULATION_LRH = 4, /* InfiniBand */
};

struct encapsulation {
    struct frame *frame;
    const uint8_t *start;
    struct cursor in;      /* what has not been walked through; ends where the headers before it say, or the bytes do */
    size_t end_bytes;      /* from the start: where what is enclosed ends on the wire */
    size_t frame_begin;    /* from the start: 0, or where the mirrored frame begins */
    size_t frame_end;      /* from the start, on the wire; 0 = as far as its outermost IP header says */
    size_t outermost_end;  /* from the start: by that header; 0 = none was met */
    size_t fragment_bytes; /* the innermost IP header is a first fragment's, with this many bytes */
    size_t transport_bytes; /* from the BTH up to and with the ICRC */
    const uint8_t *network; /* the innermost IP header, GRH or LRH */
    enum encapsulation_network network_kind;
    uint8_t next;     /* which header comes: encapsulation.c's own */
    bool is_cut;      /* the bytes end before the frame did: by a snap length */
    bool is_fragment; /* the first of several: lengths reach beyond the frame */
    bool is_plain;    /* the innermost network header has no options or extension headers */
};

/*
 * TALLY_FRAMES_ROCE with `in` at the BTH, or why the frame is left out. Sets the frame's key (all but QPN and port),
 * DSCP, mark, UDP source port and wire bytes.
 */
enum tally encapsulation_walk(struct encapsulation *walk, struct frame *frame, enum frame_layer layer,
                              const void *bytes, size_t captured_bytes, size_t original_bytes);

/* What it means that the bytes ended: cut by a snap length, a fragment's end, or else `otherwise`. */
enum tally encapsulation_ended(const struct encapsulation *walk, enum tally otherwise);

/* Whether the two directions of one connection can be so encapsulated: alike, but for an MPLS label, which the
 * receiving side chooses. */
bool encapsulation_may_answer(const struct flow_key *flow, const struct flow_key *other);

/* A flow's VLANs, tunnel and mirror as the record of the flow has them. */
void encapsulation_describe(const struct flow_key *key, struct record_flow *record);
