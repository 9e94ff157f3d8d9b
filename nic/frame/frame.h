/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One frame as a port or a capture file gives it -> what it says as RoCE: whose flow it belongs to, what it is, and how
 * many bytes of user data it carries. Lengths come from the IP header, so a frame that a snap length cut behind its BTH
 * still counts right. Nothing is kept between frames; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/frame/opcode.h"
#include "nic/tally.h"

#define FRAME_PSN_MASK      0xffffffu
#define FRAME_BYTES_UNKNOWN UINT32_MAX /* an original length: as long as the IP header says */

/* What a capture file's frames begin with. */
enum frame_layer {
    FRAME_LAYER_ETHERNET = 0,
    FRAME_LAYER_RAW_IP,
    FRAME_LAYER_SLL,
    FRAME_LAYER_SLL2,
    FRAME_LAYER_ERF,        /* of its records those of InfiniBand */
    FRAME_LAYER_INFINIBAND, /* begins with the LRH */
    FRAME_LAYER_OTHER,      /* not read: TALLY_FRAMES_LINK_TYPE */
};

/*
 * Which flow a frame belongs to. Addresses are 16 bytes in wire order: a GID, an IPv4 address mapped into IPv6, or, on
 * InfiniBand without a GRH, a LID in the last two bytes. No padding, compared as bytes.
 */
struct flow_key {
    uint64_t source[2];
    uint64_t destination[2];
    uint64_t tunnel; /* the VLANs and the tunnel, as encapsulation.c packs them; 0 = none */
    uint64_t mirror; /* the ERSPAN header around it, likewise; 0 = none */
    uint32_t destination_qpn;
    uint32_t port; /* set by the caller */
};

enum frame_flag {
    FRAME_MARKED = 1,    /* ECN-CE */
    FRAME_IMMEDIATE = 2, /* `immediate` is valid */
    FRAME_PLACED = 4,    /* `place`, `remote_key` and `dma_bytes` are valid */
    FRAME_RESPONDER = 8, /* travels with the PSNs of the other direction's requests */
};

enum frame_acknowledgement {
    FRAME_ACK = 1,
    FRAME_RNR_NAK,
    FRAME_NAK,
};

/* What a flow's frames usually have in common. No padding, compared as bytes. */
struct frame_look {
    uint16_t udp_source_port;
    uint8_t dscp;
    uint8_t ecn; /* the two bits: 0 not capable, 1 and 2 capable, 3 congestion experienced */
};

struct frame {
    struct flow_key key;
    const struct opcode *opcode;
    uint64_t place; /* RETH virtual address */
    uint32_t remote_key;
    uint32_t dma_bytes;
    uint32_t immediate;
    uint32_t psn;
    uint32_t wire_bytes;    /* the frame as it was on the wire, without FCS */
    uint32_t payload_bytes; /* user data only */
    struct frame_look look;
    uint8_t opcode_number;
    uint8_t flags;
    uint8_t acknowledgement; /* enum frame_acknowledgement; 0 = the opcode has none */
    uint8_t syndrome;        /* AETH's first byte */
};

/*
 * TALLY_FRAMES_ROCE, or TALLY_FRAMES_FIRST_FRAGMENT, with *frame set (all but key.port); else the counter that says why
 * the frame is left out, and *frame is undefined: frame_is_kept tells. `captured_bytes` are there, `original_bytes`
 * were on the wire or are FRAME_BYTES_UNKNOWN.
 *
 * A first fragment's payload is that of its whole datagram, whose length UDP's header says; its wire bytes are its own.
 * A mirrored frame's wire bytes are those of the frame inside.
 */
enum tally frame_parse(struct frame *frame, enum frame_layer layer, const void *bytes, size_t captured_bytes,
                       size_t original_bytes);

/* The same, and with the ICRC verified: TALLY_FRAMES_BAD_ICRC is left out, TALLY_FRAMES_ICRC_UNVERIFIED is kept. */
struct icrc;
enum tally frame_parse_verified(struct frame *frame, const struct icrc *icrc, enum frame_layer layer, const void *bytes,
                                size_t captured_bytes, size_t original_bytes);

static inline bool frame_is_kept(enum tally verdict)
{
    return verdict <= TALLY_FRAMES_ICRC_UNVERIFIED;
}
