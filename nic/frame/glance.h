/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A first look at a frame of the shape that nearly all have: Ethernet, at most one VLAN tag, IPv4 without options or
 * IPv6 without extension headers, no fragment, UDP, BTH. It takes few words from it: what tells its flow (a plain name)
 * and what tells whether it is just the next one of its message (its sign). Each may be compared at once. All that is
 * rarer is left to frame.h. Inline, since every frame goes through it. No allocation; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "nic/frame/frame.h"
#include "wire/cursor.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words of a frame are compared as they lie in memory"
#endif

#define GLANCE_ETHERNET_BYTES 14
#define GLANCE_VLAN_BYTES     4
#define GLANCE_V4_BYTES       20
#define GLANCE_V6_BYTES       40
#define GLANCE_UDP_BYTES      8
#define GLANCE_BTH_BYTES      12
#define GLANCE_ICRC_BYTES     4
#define GLANCE_MINIMUM_BYTES  (GLANCE_ETHERNET_BYTES + GLANCE_V4_BYTES + GLANCE_UDP_BYTES + GLANCE_BTH_BYTES)
#define GLANCE_ROCE_BYTES     (GLANCE_UDP_BYTES + GLANCE_BTH_BYTES + GLANCE_ICRC_BYTES)
#define GLANCE_ETHERTYPE_V4   0x0800
#define GLANCE_ROCE_PORT      4791
#define GLANCE_PROTOCOL_UDP   17

/* A way: destination QPN, VLAN, port, family. */
#define GLANCE_VLAN_SHIFT 24
#define GLANCE_VLAN_MASK  0xfffu
#define GLANCE_PORT_SHIFT 36
#define GLANCE_IPV6       ((uint64_t)1 << 63)
#define GLANCE_PORT_MAX   ((1u << 27) - 2)
#define GLANCE_NO_WAY     ~GLANCE_IPV6        /* of a flow that no glance finds; no frame has it */
#define GLANCE_LOST_WAY   (GLANCE_NO_WAY - 1) /* of a frame that a glance does not suffice for; no flow has it */

/* A sign: PSN, opcode, pad and version, traffic class, UDP source port. */
#define GLANCE_OPCODE_SHIFT        24
#define GLANCE_PAD_SHIFT           32 /* BTH's second byte without its two uppermost bits */
#define GLANCE_TRAFFIC_CLASS_SHIFT 40
#define GLANCE_SOURCE_PORT_SHIFT   48
#define GLANCE_OPCODE_PAD_MASK     0x3fffu
#define GLANCE_NO_SIGN             ((uint64_t)1 << 38) /* a bit that no frame's sign has */

/* IPv4: the first word is source and destination as they lie in the frame, and the others are not set. */
struct plain_name {
    uint64_t addresses[4];
    uint64_t way;
};

struct glance {
    struct plain_name name;
    uint64_t sign;
    uint32_t wire_bytes;
    uint32_t behind_bytes; /* between BTH and ICRC: extension headers, payload, pad */
};

static inline uint32_t glance_psn(uint64_t sign)
{
    return (uint32_t)sign & FRAME_PSN_MASK;
}

static inline struct frame_look glance_look(uint64_t sign)
{
    unsigned traffic_class = (uint8_t)(sign >> GLANCE_TRAFFIC_CLASS_SHIFT);

    return (struct frame_look){.udp_source_port = (uint16_t)(sign >> GLANCE_SOURCE_PORT_SHIFT),
                               .dscp = (uint8_t)(traffic_class >> 2),
                               .ecn = traffic_class & 3};
}

/* The sign of a frame without pad. */
static inline uint64_t glance_sign(uint32_t psn, uint8_t opcode, struct frame_look look)
{
    return psn | (uint64_t)opcode << GLANCE_OPCODE_SHIFT |
           (uint64_t)(look.dscp << 2 | look.ecn) << GLANCE_TRAFFIC_CLASS_SHIFT |
           (uint64_t)look.udp_source_port << GLANCE_SOURCE_PORT_SHIFT;
}

static inline uint16_t glance_be16(const uint8_t *bytes)
{
    uint16_t word;

    memcpy(&word, bytes, sizeof word);
    return __builtin_bswap16(word);
}

static inline uint32_t glance_be32(const uint8_t *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof word);
    return __builtin_bswap32(word);
}

/* What lies behind the IP header; `ip_bytes` is what that says, with `header_bytes` of its own. */
static inline bool glance_take_udp(struct glance *glance, const uint8_t *udp, uint32_t ip_bytes, uint32_t header_bytes,
                                   uint64_t way, uint64_t traffic_class)
{
    const uint8_t *bth = udp + GLANCE_UDP_BYTES;
    uint32_t udp_bytes = glance_be16(udp + 4);
    uint16_t opcode_pad;

    if (glance_be16(udp + 2) != GLANCE_ROCE_PORT || udp_bytes < GLANCE_ROCE_BYTES ||
        udp_bytes + header_bytes > ip_bytes)
        return false;
    memcpy(&opcode_pad, bth, sizeof opcode_pad);
    glance->behind_bytes = udp_bytes - GLANCE_ROCE_BYTES;
    glance->name.way = way | (glance_be32(bth + 4) & FRAME_PSN_MASK);
    glance->sign = (glance_be32(bth + 8) & FRAME_PSN_MASK) | traffic_class << GLANCE_TRAFFIC_CLASS_SHIFT |
                   (uint64_t)(opcode_pad & GLANCE_OPCODE_PAD_MASK) << GLANCE_OPCODE_SHIFT |
                   (uint64_t)glance_be16(udp) << GLANCE_SOURCE_PORT_SHIFT;
    return true;
}

/* From the IP header on, which lies `ip_at` bytes behind the frame's begin. */
static inline bool glance_take_v4(struct glance *glance, const uint8_t *ip, uint32_t ip_at, uint32_t original_bytes,
                                  uint64_t way)
{
    uint32_t ip_bytes = glance_be16(ip + 2), fragment_protocol;

    memcpy(&fragment_protocol, ip + 6, sizeof fragment_protocol);
    if (ip[0] != 0x45 || (fragment_protocol & 0xff00ff3f) != (uint32_t)GLANCE_PROTOCOL_UDP << 24 ||
        ip_at + ip_bytes > original_bytes)
        return false;
    memcpy(glance->name.addresses, ip + 12, 8);
    glance->wire_bytes = original_bytes == FRAME_BYTES_UNKNOWN ? ip_at + ip_bytes : original_bytes;
    return glance_take_udp(glance, ip + GLANCE_V4_BYTES, ip_bytes, GLANCE_V4_BYTES, way, ip[1]);
}

/* The same for all but IPv4 without a VLAN tag. */
uint32_t glance_take_other(struct glance *glance, const uint8_t *bytes, uint32_t captured_bytes,
                           uint32_t original_bytes, uint64_t way);

/*
 * If the frame is of this shape, sets *glance and returns how many bytes there are up to and with the BTH; else 0. A
 * cut frame will do when those are there; `port` is at most GLANCE_PORT_MAX.
 */
static inline uint32_t glance_take(struct glance *glance, const uint8_t *bytes, uint32_t captured_bytes,
                                   uint32_t original_bytes, uint32_t port)
{
    uint64_t way = (uint64_t)port << GLANCE_PORT_SHIFT;
    struct cursor in;

    cursor_init(&in, bytes, captured_bytes);
    if (!cursor_skip(&in, GLANCE_MINIMUM_BYTES) || captured_bytes > original_bytes)
        return 0;
    if (glance_be16(bytes + 12) != GLANCE_ETHERTYPE_V4)
        return glance_take_other(glance, bytes, captured_bytes, original_bytes, way);
    return glance_take_v4(glance, bytes + GLANCE_ETHERNET_BYTES, GLANCE_ETHERNET_BYTES, original_bytes, way)
               ? GLANCE_MINIMUM_BYTES
               : 0;
}

/* The name that frames of this shape have when they belong to the key's flow; its way is GLANCE_NO_WAY if none does. */
struct plain_name glance_name(const struct flow_key *key);
