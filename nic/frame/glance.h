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
#define GLANCE_ROCE_PORT      4791
#define GLANCE_PROTOCOL_UDP   17

/* A way: destination QPN, VLAN, family, port. */
#define GLANCE_VLAN_SHIFT 24
#define GLANCE_VLAN_MASK  0xfffu
#define GLANCE_IPV6       ((uint64_t)1 << 36)
#define GLANCE_PORT_SHIFT 37
#define GLANCE_PORT_MAX   ((1u << 27) - 2)
#define GLANCE_NO_WAY     ~GLANCE_IPV6 /* no frame of this shape has it */

/* A sign: PSN, opcode, pad and version, traffic class, UDP source port. */
#define GLANCE_OPCODE_SHIFT        24
#define GLANCE_PAD_SHIFT           32 /* BTH's second byte without its two uppermost bits */
#define GLANCE_TRAFFIC_CLASS_SHIFT 40
#define GLANCE_SOURCE_PORT_SHIFT   48
#define GLANCE_OPCODE_PAD_MASK     0x3fffu
#define GLANCE_NO_SIGN             UINT64_MAX /* bits are set that no frame's sign has */

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
    const uint8_t *bth;
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

static inline uint64_t glance_way(uint32_t qpn, uint64_t vlan, uint64_t family, uint32_t port)
{
    return qpn | vlan << GLANCE_VLAN_SHIFT | family | (uint64_t)port << GLANCE_PORT_SHIFT;
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

/* What lies behind the IP header, which says that there are `room_bytes`. */
static inline bool glance_take_udp(struct glance *glance, const uint8_t *udp, size_t room_bytes, uint64_t vlan,
                                   uint64_t family, unsigned traffic_class, uint32_t port)
{
    const uint8_t *bth = udp + GLANCE_UDP_BYTES;
    uint32_t udp_bytes = glance_be16(udp + 4);
    uint16_t opcode_pad;

    if (glance_be16(udp + 2) != GLANCE_ROCE_PORT || udp_bytes > room_bytes ||
        udp_bytes < GLANCE_UDP_BYTES + GLANCE_BTH_BYTES + GLANCE_ICRC_BYTES)
        return false;
    memcpy(&opcode_pad, bth, sizeof opcode_pad);
    glance->behind_bytes = udp_bytes - (GLANCE_UDP_BYTES + GLANCE_BTH_BYTES + GLANCE_ICRC_BYTES);
    glance->bth = bth;
    glance->name.way = glance_way(glance_be32(bth + 4) & FRAME_PSN_MASK, vlan, family, port);
    glance->sign = (glance_be32(bth + 8) & FRAME_PSN_MASK) |
                   (uint64_t)(opcode_pad & GLANCE_OPCODE_PAD_MASK) << GLANCE_OPCODE_SHIFT |
                   (uint64_t)traffic_class << GLANCE_TRAFFIC_CLASS_SHIFT |
                   (uint64_t)glance_be16(udp) << GLANCE_SOURCE_PORT_SHIFT;
    return true;
}

/* What the IP header says that there is from it on; 0: it is of another shape. */
static inline size_t glance_take_v4(struct glance *glance, const uint8_t *ip, uint64_t vlan, uint32_t port)
{
    size_t ip_bytes = glance_be16(ip + 2);
    uint32_t fragment_protocol;

    memcpy(&fragment_protocol, ip + 6, sizeof fragment_protocol);
    if (ip[0] != 0x45 || (fragment_protocol & 0xff00ff3f) != (uint32_t)GLANCE_PROTOCOL_UDP << 24 ||
        ip_bytes < GLANCE_V4_BYTES ||
        !glance_take_udp(glance, ip + GLANCE_V4_BYTES, ip_bytes - GLANCE_V4_BYTES, vlan, 0, ip[1], port))
        return 0;
    memcpy(glance->name.addresses, ip + 12, 8);
    return ip_bytes;
}

static inline size_t glance_take_v6(struct glance *glance, const uint8_t *ip, uint64_t vlan, uint32_t port)
{
    size_t room_bytes = glance_be16(ip + 4);
    unsigned traffic_class = (uint8_t)(ip[0] << 4 | ip[1] >> 4);

    if (ip[0] >> 4 != 6 || ip[6] != GLANCE_PROTOCOL_UDP ||
        !glance_take_udp(glance, ip + GLANCE_V6_BYTES, room_bytes, vlan, GLANCE_IPV6, traffic_class, port))
        return 0;
    memcpy(glance->name.addresses, ip + 8, 32);
    return GLANCE_V6_BYTES + room_bytes;
}

/*
 * Whether the frame is of this shape, with *glance set if so. Behind `in`, which is left behind the BTH. A cut frame
 * will do when its BTH is there; `port` is at most GLANCE_PORT_MAX.
 */
static inline bool glance_take(struct glance *glance, struct cursor *in, size_t original_bytes, uint32_t port)
{
    size_t captured_bytes = cursor_left(in), plain_bytes = GLANCE_ETHERNET_BYTES, network_bytes = 0;
    const uint8_t *ethernet = cursor_take(in, GLANCE_MINIMUM_BYTES);
    uint64_t vlan = 0;

    if (ethernet == NULL || captured_bytes > original_bytes)
        return false;
    unsigned ethertype = glance_be16(ethernet + 12);
    if (ethertype == 0x8100) {
        if (!cursor_skip(in, GLANCE_VLAN_BYTES))
            return false;
        vlan = glance_be16(ethernet + 14) & GLANCE_VLAN_MASK;
        ethertype = glance_be16(ethernet + 16);
        plain_bytes += GLANCE_VLAN_BYTES;
    }
    if (ethertype == 0x0800)
        network_bytes = glance_take_v4(glance, ethernet + plain_bytes, vlan, port);
    else if (ethertype == 0x86dd && cursor_skip(in, GLANCE_V6_BYTES - GLANCE_V4_BYTES))
        network_bytes = glance_take_v6(glance, ethernet + plain_bytes, vlan, port);
    plain_bytes += network_bytes;
    if (network_bytes == 0 || plain_bytes > original_bytes)
        return false;
    glance->wire_bytes = (uint32_t)(original_bytes == FRAME_BYTES_UNKNOWN ? plain_bytes : original_bytes);
    return true;
}

/* The name that frames of this shape have when they belong to the key's flow; its way is GLANCE_NO_WAY if none does. */
static inline struct plain_name glance_name(const struct flow_key *key)
{
    bool is_v4 = (key->source[0] | key->destination[0]) == 0 && (uint32_t)key->source[1] == 0xffff0000u &&
                 (uint32_t)key->destination[1] == 0xffff0000u;
    struct plain_name name = {.way = GLANCE_NO_WAY};

    if (key->tunnel > GLANCE_VLAN_MASK || key->mirror != 0 || key->port > GLANCE_PORT_MAX)
        return name;
    name.way = glance_way(key->destination_qpn, key->tunnel, is_v4 ? 0 : GLANCE_IPV6, key->port);
    if (is_v4) {
        name.addresses[0] = key->source[1] >> 32 | (key->destination[1] >> 32) << 32;
        return name;
    }
    memcpy(&name.addresses[0], key->source, sizeof key->source);
    memcpy(&name.addresses[2], key->destination, sizeof key->destination);
    return name;
}
