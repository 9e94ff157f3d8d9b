/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet, VLAN, IPv4, IPv6 or GRH, UDP, BTH and its extension headers. Sources: IEEE 802.1Q, RFC 791, RFC 8200,
 * InfiniBand Architecture Specification volume 1 (chapter 9) and its annexes A16 (RoCE) and A17 (RoCEv2).
 * Invariant: every byte is read through the cursor; what lies beyond the captured bytes is never needed to count.
 */
#include "nic/frame.h"

#include <string.h>

#include "wire/cursor.h"

#define ETHERTYPE_IPV4     0x0800
#define ETHERTYPE_IPV6     0x86dd
#define ETHERTYPE_ROCE_V1  0x8915
#define PROTOCOL_UDP       17
#define GRH_NEXT_BTH       0x1b
#define ROCE_UDP_PORT      4791
#define UDP_HEADER_BYTES   8
#define BTH_BYTES          12
#define ICRC_BYTES         4
#define VLAN_TAGS_MAX      4
#define IPV6_HEADERS_MAX   8
#define ECN_CE             3
#define ACKNOWLEDGED_KINDS ((1u << OPCODE_ACKNOWLEDGE) | (1u << OPCODE_READ_RESPONSE))
#define PAYLOAD_KINDS                                                                                                  \
    ((1u << OPCODE_SEND) | (1u << OPCODE_WRITE) | (1u << OPCODE_READ_RESPONSE) | (1u << OPCODE_ATOMIC_WRITE))

struct parse {
    struct cursor in;
    struct frame *frame;
    const uint8_t *start;
    size_t captured_bytes;
    size_t original_bytes;
    size_t network_bytes;   /* up to the end of what the outermost IP header counts */
    size_t transport_bytes; /* UDP's or BTH's, up to and with the ICRC, by the header before it */
};

/* The bytes ended too early: by the snap length, or the frame itself is too short for what it claims to be. */
static enum tally ended(const struct parse *parse, enum tally otherwise)
{
    return parse->captured_bytes < parse->original_bytes ? TALLY_FRAMES_CUT : otherwise;
}

static bool fits(const struct parse *parse, size_t length_bytes)
{
    return (size_t)(parse->in.at - parse->start) + length_bytes <= parse->original_bytes;
}

static void set_ipv4_address(uint64_t address[2], const uint8_t *bytes)
{
    uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};

    memcpy(mapped + 12, bytes, 4);
    memcpy(address, mapped, sizeof mapped);
}

static void set_traffic_class(struct frame *frame, uint8_t traffic_class)
{
    frame->look.dscp = traffic_class >> 2;
    frame->look.ecn = traffic_class & 3;
    if ((traffic_class & 3) == ECN_CE)
        frame->flags |= FRAME_MARKED;
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

static enum tally read_acknowledgement(struct parse *parse)
{
    static const uint8_t kinds[4] = {FRAME_ACK, FRAME_RNR_NAK, 0, FRAME_NAK};
    struct frame *frame = parse->frame;

    if ((1u << frame->opcode->kind & ACKNOWLEDGED_KINDS) == 0)
        return TALLY_FRAMES_ROCE;
    frame->flags |= FRAME_RESPONDER;
    if (frame->opcode->kind == OPCODE_READ_RESPONSE)
        return TALLY_FRAMES_ROCE;
    if (parse->in.failed)
        return ended(parse, TALLY_FRAMES_BAD_LENGTH);
    frame->acknowledgement = kinds[frame->syndrome >> 5 & 3];
    return frame->acknowledgement == 0 || frame->syndrome >> 7 != 0 ? TALLY_FRAMES_UNKNOWN_SYNDROME : TALLY_FRAMES_ROCE;
}

static enum tally read_payload(struct parse *parse, unsigned pad_bytes)
{
    struct frame *frame = parse->frame;
    const struct opcode *opcode = frame->opcode;
    size_t around = BTH_BYTES + opcode->extension_bytes + pad_bytes + ICRC_BYTES;
    bool goes_on = opcode->position == OPCODE_FIRST || opcode->position == OPCODE_MIDDLE;

    if (parse->transport_bytes < around)
        return TALLY_FRAMES_BAD_LENGTH;
    frame->payload_bytes = (uint32_t)(parse->transport_bytes - around);
    if (opcode->kind == OPCODE_CONGESTION)
        frame->payload_bytes = 0; /* its 16 bytes are reserved, not user data */
    if ((1u << opcode->kind & PAYLOAD_KINDS) == 0 && frame->payload_bytes != 0)
        return TALLY_FRAMES_BAD_LENGTH;
    return goes_on && frame->payload_bytes == 0 ? TALLY_FRAMES_BAD_LENGTH : TALLY_FRAMES_ROCE;
}

/* From the BTH on; transport_bytes counts from here. */
static enum tally parse_bth(struct parse *parse)
{
    struct frame *frame = parse->frame;

    if (parse->transport_bytes < BTH_BYTES + ICRC_BYTES)
        return TALLY_FRAMES_BAD_LENGTH;
    const uint8_t *bth = cursor_take(&parse->in, BTH_BYTES);
    if (bth == NULL)
        return ended(parse, TALLY_FRAMES_BAD_LENGTH);
    frame->opcode_number = bth[0];
    frame->opcode = opcode_find(bth[0]);
    frame->key.destination_qpn = (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
    frame->psn = (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11];
    if (frame->opcode == NULL)
        return TALLY_FRAMES_UNKNOWN_OPCODE;
    if ((bth[1] & 0x0f) != 0)
        return TALLY_FRAMES_BAD_VERSION;
    enum tally verdict = read_payload(parse, bth[1] >> 4 & 3);
    if (verdict != TALLY_FRAMES_ROCE)
        return verdict;
    for (unsigned i = 0, left = frame->opcode->extensions; left != 0; i++, left >>= 1) {
        if ((left & 1) != 0)
            read_extension(frame, (enum opcode_extension)(1u << i), &parse->in);
    }
    return read_acknowledgement(parse);
}

static enum tally parse_udp(struct parse *parse, size_t ip_payload_bytes)
{
    uint16_t source_port = cursor_be16(&parse->in);
    uint16_t destination_port = cursor_be16(&parse->in);
    uint16_t udp_bytes = cursor_be16(&parse->in);

    cursor_skip(&parse->in, 2);
    if (parse->in.failed)
        return ended(parse, TALLY_FRAMES_NOT_ROCE);
    if (destination_port != ROCE_UDP_PORT)
        return TALLY_FRAMES_NOT_ROCE;
    if (udp_bytes < UDP_HEADER_BYTES || udp_bytes > ip_payload_bytes ||
        !fits(parse, (size_t)udp_bytes - UDP_HEADER_BYTES))
        return TALLY_FRAMES_BAD_LENGTH;
    parse->frame->look.udp_source_port = source_port;
    parse->transport_bytes = (size_t)udp_bytes - UDP_HEADER_BYTES;
    return parse_bth(parse);
}

static enum tally parse_ipv4(struct parse *parse)
{
    const uint8_t *ip = cursor_take(&parse->in, 20);

    if (ip == NULL)
        return ended(parse, TALLY_FRAMES_NOT_ROCE);
    size_t header_bytes = (size_t)(ip[0] & 0x0f) * 4;
    size_t total_bytes = (size_t)ip[2] << 8 | ip[3];
    parse->network_bytes = (size_t)(ip - parse->start) + total_bytes;
    if (ip[0] >> 4 != 4 || header_bytes < 20 || total_bytes < header_bytes || ip[9] != PROTOCOL_UDP)
        return TALLY_FRAMES_NOT_ROCE;
    if ((ip[6] & 0x3f) != 0 || ip[7] != 0)
        return TALLY_FRAMES_FRAGMENT;
    if (!cursor_skip(&parse->in, header_bytes - 20))
        return ended(parse, TALLY_FRAMES_NOT_ROCE);
    set_traffic_class(parse->frame, ip[1]);
    set_ipv4_address(parse->frame->key.source, ip + 12);
    set_ipv4_address(parse->frame->key.destination, ip + 16);
    return parse_udp(parse, total_bytes - header_bytes);
}

/* Walks the extension headers up to UDP; *left_bytes is what the IP header says is left behind them. */
static enum tally skip_ipv6_headers(struct parse *parse, uint8_t next, size_t *left_bytes)
{
    for (unsigned i = 0; next != PROTOCOL_UDP; i++) {
        bool is_fragment = next == 44;
        if (i == IPV6_HEADERS_MAX || (next != 0 && next != 43 && next != 60 && !is_fragment))
            return TALLY_FRAMES_NOT_ROCE;
        const uint8_t *header = cursor_take(&parse->in, 8);
        if (header == NULL)
            return ended(parse, TALLY_FRAMES_NOT_ROCE);
        if (is_fragment && ((header[2] << 8 | header[3]) & 0xfff9) != 0)
            return TALLY_FRAMES_FRAGMENT;
        size_t more_bytes = is_fragment ? 0 : (size_t)header[1] * 8;
        if (!cursor_skip(&parse->in, more_bytes))
            return ended(parse, TALLY_FRAMES_NOT_ROCE);
        if (*left_bytes < 8 + more_bytes)
            return TALLY_FRAMES_NOT_ROCE;
        *left_bytes -= 8 + more_bytes;
        next = header[0];
    }
    return TALLY_FRAMES_ROCE;
}

/* IPv6's header, which is also the GRH of RoCE v1. */
static enum tally parse_ipv6(struct parse *parse, bool is_grh)
{
    const uint8_t *ip = cursor_take(&parse->in, 40);

    if (ip == NULL)
        return ended(parse, TALLY_FRAMES_NOT_ROCE);
    size_t payload_bytes = (size_t)ip[4] << 8 | ip[5];
    parse->network_bytes = (size_t)(ip + 40 - parse->start) + payload_bytes;
    if (ip[0] >> 4 != 6)
        return TALLY_FRAMES_NOT_ROCE;
    set_traffic_class(parse->frame, (uint8_t)(ip[0] << 4 | ip[1] >> 4));
    memcpy(parse->frame->key.source, ip + 8, 16);
    memcpy(parse->frame->key.destination, ip + 24, 16);
    if (!is_grh) {
        enum tally verdict = skip_ipv6_headers(parse, ip[6], &payload_bytes);
        return verdict == TALLY_FRAMES_ROCE ? parse_udp(parse, payload_bytes) : verdict;
    }
    if (ip[6] != GRH_NEXT_BTH)
        return TALLY_FRAMES_NOT_ROCE;
    if (!fits(parse, payload_bytes))
        return TALLY_FRAMES_BAD_LENGTH;
    parse->transport_bytes = payload_bytes;
    return parse_bth(parse);
}

static bool is_vlan(uint16_t ethertype)
{
    return ethertype == 0x8100 || ethertype == 0x88a8 || ethertype == 0x9100;
}

static enum tally parse_network(struct parse *parse, uint16_t ethertype)
{
    for (unsigned i = 0; i < VLAN_TAGS_MAX && is_vlan(ethertype); i++) {
        uint32_t vlan = cursor_be16(&parse->in) & 0xfff;
        if (i < 2)
            parse->frame->key.tunnel |= vlan << (12 * i);
        ethertype = cursor_be16(&parse->in);
    }
    if (parse->in.failed)
        return ended(parse, TALLY_FRAMES_NOT_ROCE);
    switch (ethertype) {
    case ETHERTYPE_IPV4:
        return parse_ipv4(parse);
    case ETHERTYPE_IPV6:
        return parse_ipv6(parse, false);
    case ETHERTYPE_ROCE_V1:
        return parse_ipv6(parse, true);
    default:
        return TALLY_FRAMES_NOT_ROCE;
    }
}

static uint16_t read_ethertype(struct cursor *in, enum frame_layer layer)
{
    uint16_t ethertype = 0;

    switch (layer) {
    case FRAME_LAYER_ETHERNET:
        cursor_skip(in, 12);
        return cursor_be16(in);
    case FRAME_LAYER_SLL:
        cursor_skip(in, 14);
        return cursor_be16(in);
    case FRAME_LAYER_SLL2:
        ethertype = cursor_be16(in);
        cursor_skip(in, 18);
        return ethertype;
    case FRAME_LAYER_RAW_IP:
        if (cursor_left(in) == 0)
            in->failed = true;
        else
            ethertype = in->at[0] >> 4 == 6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
    }
    return ethertype;
}

enum tally frame_parse(struct frame *frame, enum frame_layer layer, const void *bytes, size_t captured_bytes,
                       size_t original_bytes)
{
    struct parse parse = {.frame = frame,
                          .start = bytes,
                          .captured_bytes = captured_bytes,
                          .original_bytes = original_bytes < captured_bytes ? captured_bytes : original_bytes};

    memset(frame, 0, sizeof *frame);
    frame->wire_bytes = (uint32_t)parse.original_bytes;
    cursor_init(&parse.in, bytes, captured_bytes);
    uint16_t ethertype = read_ethertype(&parse.in, layer);
    if (parse.in.failed)
        return ended(&parse, TALLY_FRAMES_NOT_ROCE);
    enum tally verdict = parse_network(&parse, ethertype);
    if (original_bytes == FRAME_BYTES_UNKNOWN)
        frame->wire_bytes = (uint32_t)parse.network_bytes;
    return verdict;
}
