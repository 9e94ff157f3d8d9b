/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTH and its extension headers, and a short way to them for the frames that nearly all are; encapsulation.c knows the
 * long one. Sources: InfiniBand Architecture Specification volume 1 (chapter 9) and its annexes A16 (RoCE) and A17
 * (RoCEv2). Invariant: every byte is read through the cursor; what lies beyond the captured bytes is never needed to
 * count; a frame that the short way takes gets from the long one the same answer.
 */
#include "nic/frame/frame.h"

#include <assert.h>
#include <string.h>

#include "nic/frame/encapsulation.h"
#include "nic/frame/icrc.h"
#include "wire/cursor.h"

#define ETHERNET_BYTES     14
#define VLAN_BYTES         4
#define IPV4_BYTES         20
#define IPV6_BYTES         40
#define UDP_BYTES          8
#define BTH_BYTES          12
#define ICRC_BYTES         4
#define ROCE_UDP_PORT      4791
#define PROTOCOL_UDP       17
#define ECN_CE             3
#define BTH_NUMBER_MASK    0xffffffu /* QPN and PSN are the low 24 bits of a word */
#define BTH_FECN           0x80
#define ATOMIC_WRITE_BYTES 8
#define ACKNOWLEDGED_KINDS ((1u << OPCODE_ACKNOWLEDGE) | (1u << OPCODE_READ_RESPONSE))
#define PAYLOAD_KINDS                                                                                                  \
    ((1u << OPCODE_SEND) | (1u << OPCODE_WRITE) | (1u << OPCODE_READ_RESPONSE) | (1u << OPCODE_ATOMIC_WRITE))

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "set_mapped puts bytes together");

/* What the network layer leaves. */
struct transport {
    const uint8_t *bth;
    struct cursor in; /* behind the BTH */
    size_t bytes;     /* from the BTH up to and with the ICRC, by the headers before it */
    enum tally ended; /* the verdict when the bytes end too early */
};

static inline unsigned be16(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

static inline uint32_t be32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void read_extension(struct frame *frame, enum opcode_extension extension, struct cursor *in)
{
    switch (extension) {
    case OPCODE_RETH:
        frame->place = cursor_be64(in);
        frame->remote_key = cursor_be32(in);
        frame->dma_bytes = cursor_be32(in);
        frame->flags |= in->failed ? 0 : FRAME_PLACED;
        break;
    case OPCODE_AETH:
        frame->syndrome = cursor_u8(in);
        cursor_skip(in, 3);
        break;
    case OPCODE_IMMDT:
        frame->immediate = cursor_be32(in);
        frame->flags |= in->failed ? 0 : FRAME_IMMEDIATE;
        break;
    default:
        cursor_skip(in, opcode_extension_bytes(extension));
    }
}

static enum tally read_acknowledgement(struct frame *frame, const struct transport *transport)
{
    static const uint8_t kinds[4] = {FRAME_ACK, FRAME_RNR_NAK, 0, FRAME_NAK};

    frame->flags |= FRAME_RESPONDER;
    if (frame->opcode->kind == OPCODE_READ_RESPONSE)
        return TALLY_FRAMES_ROCE;
    if (transport->in.failed)
        return transport->ended;
    frame->acknowledgement = kinds[frame->syndrome >> 5 & 3];
    return frame->acknowledgement == 0 || frame->syndrome >> 7 != 0 ? TALLY_FRAMES_UNKNOWN_SYNDROME : TALLY_FRAMES_ROCE;
}

/* Pad makes the payload whole 4-byte words; the frames of a message but its last are full, hence without pad. */
static enum tally read_payload(struct frame *frame, size_t transport_bytes, unsigned pad_bytes)
{
    const struct opcode *opcode = frame->opcode;
    size_t headers_bytes = BTH_BYTES + opcode->extension_bytes + ICRC_BYTES;
    bool goes_on = opcode->position == OPCODE_FIRST || opcode->position == OPCODE_MIDDLE;

    if (transport_bytes < headers_bytes + pad_bytes || transport_bytes % 4 != 0)
        return TALLY_FRAMES_BAD_LENGTH;
    size_t payload_bytes = transport_bytes - headers_bytes - pad_bytes;
    frame->payload_bytes = (uint32_t)payload_bytes;
    if (goes_on)
        return payload_bytes == 0 || pad_bytes != 0 ? TALLY_FRAMES_BAD_LENGTH : TALLY_FRAMES_ROCE;
    if (opcode->kind == OPCODE_CONGESTION)
        frame->payload_bytes = 0; /* its 16 bytes are reserved, not user data */
    else if ((1u << opcode->kind & PAYLOAD_KINDS) == 0 && payload_bytes + pad_bytes != 0)
        return TALLY_FRAMES_BAD_LENGTH;
    else if (opcode->kind == OPCODE_ATOMIC_WRITE && payload_bytes != ATOMIC_WRITE_BYTES)
        return TALLY_FRAMES_BAD_LENGTH;
    return TALLY_FRAMES_ROCE;
}

static inline enum tally read_transport(struct frame *frame, struct transport *transport)
{
    const uint8_t *bth = transport->bth;

    frame->opcode_number = bth[0];
    frame->opcode = opcode_find(bth[0]);
    frame->key.destination_qpn = be32(bth + 4) & BTH_NUMBER_MASK;
    frame->psn = be32(bth + 8) & BTH_NUMBER_MASK;
    if (frame->opcode == NULL)
        return TALLY_FRAMES_UNKNOWN_OPCODE;
    if ((bth[1] & 0x0f) != 0)
        return TALLY_FRAMES_BAD_VERSION;
    enum tally verdict = read_payload(frame, transport->bytes, bth[1] >> 4 & 3);
    if (verdict != TALLY_FRAMES_ROCE)
        return verdict;
    for (unsigned i = 0, left = frame->opcode->extensions; left != 0; i++, left >>= 1) {
        if ((left & 1) != 0)
            read_extension(frame, (enum opcode_extension)(1u << i), &transport->in);
    }
    return (1u << frame->opcode->kind & ACKNOWLEDGED_KINDS) == 0 ? TALLY_FRAMES_ROCE
                                                                 : read_acknowledgement(frame, transport);
}

/* ---- the short way: Ethernet, at most one VLAN tag, IPv4 or IPv6 with nothing special, UDP ---- */

static inline void set_plain(struct frame *frame, unsigned traffic_class, const uint8_t *udp)
{
    frame->key.mirror = 0;
    frame->place = 0;
    frame->remote_key = 0;
    frame->dma_bytes = 0;
    frame->immediate = 0;
    frame->look.udp_source_port = (uint16_t)be16(udp);
    frame->look.dscp = (uint8_t)(traffic_class >> 2);
    frame->look.ecn = (uint8_t)(traffic_class & 3);
    frame->flags = (traffic_class & 3) == ECN_CE ? FRAME_MARKED : 0;
    frame->acknowledgement = 0;
    frame->syndrome = 0;
}

/* ::ffff:a.b.c.d in registers: a load of bytes that were just stored in two pieces would have to wait for them. */
static inline void set_mapped(uint64_t address[2], const uint8_t *bytes)
{
    uint32_t host;

    memcpy(&host, bytes, sizeof host);
    address[0] = 0;
    address[1] = (uint64_t)host << 32 | 0xffff0000u;
}

/* What the IP header says that there is from it on, with *transport filled; 0 when the frame is none of these or its
 * lengths do not agree: the long way says what it is. */
static inline size_t take_plain_v4(struct frame *frame, struct transport *transport, const uint8_t *ip)
{
    const uint8_t *udp = ip + IPV4_BYTES;
    size_t ip_bytes = be16(ip + 2), udp_bytes = be16(udp + 4);

    if (ip[0] != 0x45 || ip[9] != PROTOCOL_UDP || (be16(ip + 6) & 0x3fff) != 0 || be16(udp + 2) != ROCE_UDP_PORT ||
        udp_bytes < UDP_BYTES + BTH_BYTES + ICRC_BYTES || udp_bytes + IPV4_BYTES > ip_bytes)
        return 0;
    set_mapped(frame->key.source, ip + 12);
    set_mapped(frame->key.destination, ip + 16);
    set_plain(frame, ip[1], udp);
    transport->bth = udp + UDP_BYTES;
    transport->bytes = udp_bytes - UDP_BYTES;
    return ip_bytes;
}

static inline size_t take_plain_v6(struct frame *frame, struct transport *transport, const uint8_t *ip)
{
    const uint8_t *udp = ip + IPV6_BYTES;

    if (!cursor_skip(&transport->in, IPV6_BYTES - IPV4_BYTES))
        return 0;
    size_t ip_bytes = be16(ip + 4), udp_bytes = be16(udp + 4);
    if (ip[0] >> 4 != 6 || ip[6] != PROTOCOL_UDP || be16(udp + 2) != ROCE_UDP_PORT ||
        udp_bytes < UDP_BYTES + BTH_BYTES + ICRC_BYTES || udp_bytes > ip_bytes)
        return 0;
    memcpy(frame->key.source, ip + 8, 16);
    memcpy(frame->key.destination, ip + 24, 16);
    set_plain(frame, (ip[0] << 4 | ip[1] >> 4) & 0xffu, udp);
    transport->bth = udp + UDP_BYTES;
    transport->bytes = udp_bytes - UDP_BYTES;
    return IPV6_BYTES + ip_bytes;
}

static inline bool take_plain(struct frame *frame, struct transport *transport, const void *bytes,
                              size_t captured_bytes, size_t original_bytes)
{
    size_t plain_bytes = ETHERNET_BYTES, network_bytes = 0;

    cursor_init(&transport->in, bytes, captured_bytes);
    const uint8_t *ethernet = cursor_take(&transport->in, ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + BTH_BYTES);
    if (ethernet == NULL || captured_bytes > original_bytes)
        return false;
    unsigned ethertype = be16(ethernet + 12);
    frame->key.tunnel = 0;
    if (ethertype == 0x8100) {
        if (!cursor_skip(&transport->in, VLAN_BYTES))
            return false;
        frame->key.tunnel = be16(ethernet + 14) & 0xfff;
        ethertype = be16(ethernet + 16);
        plain_bytes += VLAN_BYTES;
    }
    if (ethertype == 0x0800)
        network_bytes = take_plain_v4(frame, transport, ethernet + plain_bytes);
    else if (ethertype == 0x86dd)
        network_bytes = take_plain_v6(frame, transport, ethernet + plain_bytes);
    plain_bytes += network_bytes;
    if (network_bytes == 0 || plain_bytes > original_bytes)
        return false;
    frame->wire_bytes = (uint32_t)(original_bytes == FRAME_BYTES_UNKNOWN ? plain_bytes : original_bytes);
    transport->ended = captured_bytes < original_bytes ? TALLY_FRAMES_CUT : TALLY_FRAMES_BAD_LENGTH;
    return true;
}

/* ---- the long way ---- */

static enum tally parse_any(struct frame *frame, struct encapsulation *walk, enum frame_layer layer, const void *bytes,
                            size_t captured_bytes, size_t original_bytes)
{
    enum tally verdict = encapsulation_walk(walk, frame, layer, bytes, captured_bytes, original_bytes);

    if (verdict != TALLY_FRAMES_ROCE)
        return verdict;
    struct transport transport = {.in = walk->in, .bytes = walk->transport_bytes};
    if (transport.bytes < BTH_BYTES + ICRC_BYTES)
        return TALLY_FRAMES_BAD_LENGTH;
    transport.ended = encapsulation_ended(walk, TALLY_FRAMES_BAD_LENGTH);
    transport.bth = cursor_take(&transport.in, BTH_BYTES);
    if (transport.bth == NULL)
        return transport.ended;
    if (walk->network_kind == ENCAPSULATION_LRH && (transport.bth[4] & BTH_FECN) != 0) {
        frame->flags |= FRAME_MARKED;
        frame->look.ecn = ECN_CE;
    }
    verdict = read_transport(frame, &transport);
    return verdict == TALLY_FRAMES_ROCE && walk->is_fragment ? TALLY_FRAMES_FIRST_FRAGMENT : verdict;
}

enum tally frame_parse(struct frame *frame, enum frame_layer layer, const void *bytes, size_t captured_bytes,
                       size_t original_bytes)
{
    struct encapsulation walk;
    struct transport transport;

    if (layer == FRAME_LAYER_ETHERNET && take_plain(frame, &transport, bytes, captured_bytes, original_bytes))
        return read_transport(frame, &transport);
    return parse_any(frame, &walk, layer, bytes, captured_bytes, original_bytes);
}

enum tally frame_parse_verified(struct frame *frame, const struct icrc *icrc, enum frame_layer layer, const void *bytes,
                                size_t captured_bytes, size_t original_bytes)
{
    struct encapsulation walk;
    enum tally verdict = parse_any(frame, &walk, layer, bytes, captured_bytes, original_bytes);

    return verdict == TALLY_FRAMES_ROCE ? icrc_check(icrc, &walk) : verdict;
}
