/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The glance at what is not IPv4 right behind Ethernet. Sources: IEEE 802.1Q, RFC 8200, annex A17 (RoCEv2) of the
 * InfiniBand Architecture Specification. Invariant: every byte lies in what a cursor passed over; frames of one name
 * are of one flow.
 */
#include "nic/frame/glance.h"

#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_V6   0x86dd

static bool take_v6(struct glance *glance, const uint8_t *ip, uint32_t ip_at, uint32_t original_bytes, uint64_t way)
{
    uint32_t payload_bytes = glance_be16(ip + 4), end_bytes = ip_at + GLANCE_V6_BYTES + payload_bytes;
    uint8_t traffic_class = (uint8_t)(ip[0] << 4 | ip[1] >> 4);

    if (ip[0] >> 4 != 6 || ip[6] != GLANCE_PROTOCOL_UDP || end_bytes > original_bytes)
        return false;
    memcpy(glance->name.addresses, ip + 8, 32);
    glance->wire_bytes = original_bytes == FRAME_BYTES_UNKNOWN ? end_bytes : original_bytes;
    return glance_take_udp(glance, ip + GLANCE_V6_BYTES, payload_bytes, 0, way | GLANCE_IPV6, traffic_class);
}

uint32_t glance_take_other(struct glance *glance, const uint8_t *bytes, uint32_t captured_bytes,
                           uint32_t original_bytes, uint64_t way)
{
    uint32_t ip_at = GLANCE_ETHERNET_BYTES, least_bytes = GLANCE_MINIMUM_BYTES;
    unsigned ethertype = glance_be16(bytes + 12);
    struct cursor in;

    cursor_init(&in, bytes, captured_bytes);
    if (ethertype == ETHERTYPE_VLAN) {
        way |= (uint64_t)(glance_be16(bytes + 14) & GLANCE_VLAN_MASK) << GLANCE_VLAN_SHIFT;
        ethertype = glance_be16(bytes + 16);
        ip_at += GLANCE_VLAN_BYTES;
        least_bytes += GLANCE_VLAN_BYTES;
    }
    if (ethertype == ETHERTYPE_V6)
        least_bytes += GLANCE_V6_BYTES - GLANCE_V4_BYTES;
    if (!cursor_skip(&in, least_bytes))
        return 0;
    bool is_plain = ethertype == GLANCE_ETHERTYPE_V4
                        ? glance_take_v4(glance, bytes + ip_at, ip_at, original_bytes, way)
                        : ethertype == ETHERTYPE_V6 && take_v6(glance, bytes + ip_at, ip_at, original_bytes, way);
    return is_plain ? least_bytes : 0;
}

struct plain_name glance_name(const struct flow_key *key)
{
    bool is_v4 = (key->source[0] | key->destination[0]) == 0 && (uint32_t)key->source[1] == 0xffff0000u &&
                 (uint32_t)key->destination[1] == 0xffff0000u;
    struct plain_name name = {.way = GLANCE_NO_WAY};

    if (key->tunnel > GLANCE_VLAN_MASK || key->mirror != 0 || key->port > GLANCE_PORT_MAX)
        return name;
    name.way = key->destination_qpn | key->tunnel << GLANCE_VLAN_SHIFT | (is_v4 ? 0 : GLANCE_IPV6) |
               (uint64_t)key->port << GLANCE_PORT_SHIFT;
    if (is_v4) {
        name.addresses[0] = key->source[1] >> 32 | (key->destination[1] >> 32) << 32;
        return name;
    }
    memcpy(&name.addresses[0], key->source, sizeof key->source);
    memcpy(&name.addresses[2], key->destination, sizeof key->destination);
    return name;
}
