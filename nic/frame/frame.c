/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTH and its extension headers, and a short way to them for the frames that nearly all are, by a glance;
 * encapsulation.c knows the long one. Sources: InfiniBand Architecture Specification volume 1 (chapter 9) and its
 * annexes A16 (RoCE) and A17 (RoCEv2). Invariant: every byte is read through the cursor; what lies beyond the captured
 * bytes is never needed to count; a frame that the short way takes gets from the long one the same answer.
 */
#include "nic/frame/frame.h"

#include <string.h>

#include "nic/frame/encapsulation.h"
#include "nic/frame/glance.h"
#include "nic/frame/icrc.h"
#include "wire/cursor.h"

#define BTH_BYTES          GLANCE_BTH_BYTES
#define ICRC_BYTES         GLANCE_ICRC_BYTES
#define ECN_CE             3
#define BTH_FECN           0x80
#define ATOMIC_WRITE_BYTES 8
#define ACKNOWLEDGED_KINDS ((1u << OPCODE_ACKNOWLEDGE) | (1u << OPCODE_READ_RESPONSE))
#define PAYLOAD_KINDS                                                                                                  \
    ((1u << OPCODE_SEND) | (1u << OPCODE_WRITE) | (1u << OPCODE_READ_RESPONSE) | (1u << OPCODE_ATOMIC_WRITE))

/* What the network layer leaves. */
struct transport {
    const uint8_t *bth;
    struct cursor in; /* behind the BTH */
    size_t bytes;     /* from the BTH up to and with the ICRC, by the headers before it */
    enum tally ended; /* the verdict when the bytes end too early */
};

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
    frame->key.destination_qpn = glance_be32(bth + 4) & FRAME_PSN_MASK;
    frame->psn = glance_be32(bth + 8) & FRAME_PSN_MASK;
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

/* ---- the short way: what a glance takes ---- */

/* ::ffff:a.b.c.d in registers: a load of bytes that were just stored in two pieces would have to wait for them. */
static inline void set_mapped(uint64_t address[2], uint32_t host)
{
    address[0] = 0;
    address[1] = (uint64_t)host << 32 | 0xffff0000u;
}

static enum tally read_plain(struct frame *frame, const struct glance *glance, struct transport *transport)
{
    const struct plain_name *name = &glance->name;

    if ((name->way & GLANCE_IPV6) != 0) {
        memcpy(frame->key.source, &name->addresses[0], sizeof frame->key.source);
        memcpy(frame->key.destination, &name->addresses[2], sizeof frame->key.destination);
    } else {
        set_mapped(frame->key.source, (uint32_t)name->addresses[0]);
        set_mapped(frame->key.destination, (uint32_t)(name->addresses[0] >> 32));
    }
    frame->key.tunnel = name->way >> GLANCE_VLAN_SHIFT & GLANCE_VLAN_MASK;
    frame->key.mirror = 0;
    frame->place = 0;
    frame->remote_key = 0;
    frame->dma_bytes = 0;
    frame->immediate = 0;
    frame->wire_bytes = glance->wire_bytes;
    frame->look = glance_look(glance->sign);
    frame->flags = frame->look.ecn == ECN_CE ? FRAME_MARKED : 0;
    frame->acknowledgement = 0;
    frame->syndrome = 0;
    transport->bth = transport->in.at - BTH_BYTES;
    transport->bytes = BTH_BYTES + (size_t)glance->behind_bytes + ICRC_BYTES;
    return read_transport(frame, transport);
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
    struct transport transport = {.ended =
                                      captured_bytes < original_bytes ? TALLY_FRAMES_CUT : TALLY_FRAMES_BAD_LENGTH};
    uint32_t plain_bytes = 0;
    struct glance glance;

    if (layer == FRAME_LAYER_ETHERNET && captured_bytes <= UINT32_MAX && original_bytes <= FRAME_BYTES_UNKNOWN)
        plain_bytes = glance_take(&glance, bytes, (uint32_t)captured_bytes, (uint32_t)original_bytes, 0);
    cursor_init(&transport.in, bytes, captured_bytes);
    if (plain_bytes != 0 && cursor_skip(&transport.in, plain_bytes))
        return read_plain(frame, &glance, &transport);
    return parse_any(frame, &walk, layer, bytes, captured_bytes, original_bytes);
}

enum tally frame_parse_verified(struct frame *frame, const struct icrc *icrc, enum frame_layer layer, const void *bytes,
                                size_t captured_bytes, size_t original_bytes)
{
    struct encapsulation walk;
    enum tally verdict = parse_any(frame, &walk, layer, bytes, captured_bytes, original_bytes);

    return verdict == TALLY_FRAMES_ROCE ? icrc_check(icrc, &walk) : verdict;
}
