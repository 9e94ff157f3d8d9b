/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One step a header, in a loop: each step takes its header and says which comes next. Sources: IEEE 802.1Q, RFC 3032
 * (MPLS), RFC 4385 (its control word), RFC 2784 and 2890 (GRE), RFC 7348 (VXLAN), draft-foschiano-erspan, InfiniBand
 * Architecture Specification volume 1 (LRH, GRH) and its annexes A16 and A17, Endace's ERF (type 21).
 * Invariant: the loop ends, for every step but one takes bytes, and IP is met once more only behind a tunnel, of which
 * there is at most one of a kind.
 */
#include "nic/frame/encapsulation.h"

#include <string.h>

#define ETHERTYPE_IPV4    0x0800
#define ETHERTYPE_IPV6    0x86dd
#define ETHERTYPE_ROCE_V1 0x8915
#define ETHERTYPE_MPLS    0x8847
#define ETHERTYPE_MPLS_UP 0x8848
#define ETHERTYPE_BRIDGED 0x6558 /* in GRE: an Ethernet frame */
#define ETHERTYPE_ERSPAN  0x88be /* in GRE: type I or II */
#define ETHERTYPE_ERSPAN3 0x22eb
#define PROTOCOL_UDP      17
#define PROTOCOL_GRE      47
#define GRH_NEXT_BTH      0x1b
#define PORT_ROCE         4791
#define PORT_VXLAN        4789
#define PORT_VXLAN_LINUX  8472 /* what Linux took before 4789 was assigned, and still takes where it is told no port */
#define UDP_HEADER_BYTES  8
#define VXLAN_HAS_VNI     0x08
#define GRE_CHECKSUM      0x8000
#define GRE_ROUTING       0x4000
#define GRE_KEY           0x2000
#define GRE_SEQUENCE      0x1000
#define GRE_VERSION       0x0007
#define MPLS_LABELS_MAX   16
#define VLAN_TAGS_MAX     4
#define VLAN_TAGS_IN_KEY  2
#define LRH_NEXT_BTH      2
#define LRH_NEXT_GRH      3
#define ERF_TYPE_IB       21
#define ERF_MORE          0x80
#define ECN_CE            3
#define UNBOUNDED         SIZE_MAX /* where something ends: the bytes here do not say */

/* flow_key.tunnel, from the lowest bit: two VLAN ids of 12 bits, the tunnel's id of 32, its kind (enum tunnel_kind). */
#define KEY_VLANS_MASK 0xffffffu
#define KEY_ID_SHIFT   24
#define KEY_KIND_SHIFT 56
/* flow_key.mirror: the address of 32 bits, the session of 10, its kind (enum mirror_kind). */
#define KEY_SESSION_SHIFT 32
#define KEY_SESSION_MASK  0x3ffu
#define KEY_MIRROR_SHIFT  42

enum step {
    STEP_ETHERNET = 0,
    STEP_RAW_IP,
    STEP_SLL,
    STEP_SLL2,
    STEP_ERF,
    STEP_LRH,
    STEP_IPV4,
    STEP_IPV6,
    STEP_GRH,
    STEP_MPLS,
    STEP_UDP,
    STEP_VXLAN,
    STEP_GRE,
    STEP_BTH,
};

enum tally encapsulation_ended(const struct encapsulation *walk, enum tally otherwise)
{
    if (walk->is_cut)
        return TALLY_FRAMES_CUT;
    return walk->is_fragment ? TALLY_FRAMES_FRAGMENT : otherwise;
}

static enum tally stop(const struct encapsulation *walk)
{
    return walk->in.failed ? encapsulation_ended(walk, TALLY_FRAMES_NOT_ROCE) : TALLY_FRAMES_NOT_ROCE;
}

static enum tally go_on(struct encapsulation *walk, enum step next)
{
    walk->next = (uint8_t)next;
    return walk->in.failed ? stop(walk) : TALLY_FRAMES_ROCE;
}

static size_t position(const struct encapsulation *walk)
{
    return (size_t)(walk->in.at - walk->start);
}

/* A header says that what it encloses has `length_bytes`: what lies behind them (padding, a trailer) is not looked at.
 */
static void enclose(struct encapsulation *walk, size_t length_bytes)
{
    size_t end_bytes = position(walk) + length_bytes;

    if (end_bytes < walk->end_bytes)
        walk->end_bytes = end_bytes;
    if (cursor_left(&walk->in) < length_bytes)
        return;
    walk->in.end = walk->in.at + length_bytes;
    walk->is_cut = false;
}

static bool reaches_beyond(const struct encapsulation *walk, size_t length_bytes)
{
    return position(walk) + length_bytes > walk->end_bytes;
}

/* ---- link layers ---- */

static enum tally step_typed(struct encapsulation *walk, uint16_t ethertype)
{
    walk->frame->key.tunnel &= ~(uint64_t)KEY_VLANS_MASK;
    for (unsigned i = 0; i < VLAN_TAGS_MAX && (ethertype == 0x8100 || ethertype == 0x88a8 || ethertype == 0x9100);
         i++) {
        uint64_t vlan = cursor_be16(&walk->in) & 0xfff;
        if (i < VLAN_TAGS_IN_KEY)
            walk->frame->key.tunnel |= vlan << (12 * i);
        ethertype = cursor_be16(&walk->in);
    }
    switch (ethertype) {
    case ETHERTYPE_IPV4:
        return go_on(walk, STEP_IPV4);
    case ETHERTYPE_IPV6:
        return go_on(walk, STEP_IPV6);
    case ETHERTYPE_ROCE_V1:
        return go_on(walk, STEP_GRH);
    case ETHERTYPE_MPLS:
    case ETHERTYPE_MPLS_UP:
        return go_on(walk, STEP_MPLS);
    default:
        return stop(walk);
    }
}

static enum tally step_ethernet(struct encapsulation *walk)
{
    cursor_skip(&walk->in, 12);
    return step_typed(walk, cursor_be16(&walk->in));
}

static enum tally step_sll(struct encapsulation *walk)
{
    cursor_skip(&walk->in, 14);
    return step_typed(walk, cursor_be16(&walk->in));
}

static enum tally step_sll2(struct encapsulation *walk)
{
    uint16_t ethertype = cursor_be16(&walk->in);

    cursor_skip(&walk->in, 18);
    return step_typed(walk, ethertype);
}

static enum tally step_raw_ip(struct encapsulation *walk)
{
    if (cursor_left(&walk->in) == 0)
        return encapsulation_ended(walk, TALLY_FRAMES_NOT_ROCE);
    return go_on(walk, walk->in.at[0] >> 4 == 6 ? STEP_IPV6 : STEP_IPV4);
}

/* An ERF record: 16 bytes, the wire length in the last two; each further header of 8 bytes says whether one follows. */
static enum tally step_erf(struct encapsulation *walk)
{
    const uint8_t *erf = cursor_take(&walk->in, 16);

    if (erf == NULL)
        return stop(walk);
    if ((erf[8] & ~ERF_MORE) != ERF_TYPE_IB)
        return TALLY_FRAMES_LINK_TYPE;
    for (const uint8_t *header = erf + 8; header != NULL && (header[0] & ERF_MORE) != 0;)
        header = cursor_take(&walk->in, 8);
    size_t wire_bytes = (size_t)erf[14] << 8 | erf[15];
    walk->is_cut = cursor_left(&walk->in) < wire_bytes;
    walk->end_bytes = position(walk) + wire_bytes;
    return go_on(walk, STEP_LRH);
}

/* Its packet length counts 4-byte words from the LRH to the ICRC; the VCRC behind them is the link's. */
static enum tally step_lrh(struct encapsulation *walk)
{
    const uint8_t *lrh = cursor_take(&walk->in, 8);

    if (lrh == NULL)
        return stop(walk);
    size_t packet_bytes = ((size_t)(lrh[4] & 7) << 8 | lrh[5]) * 4;
    uint8_t next = lrh[1] & 3;
    if (next != LRH_NEXT_BTH && next != LRH_NEXT_GRH)
        return TALLY_FRAMES_NOT_ROCE;
    if (packet_bytes < 8 || reaches_beyond(walk, packet_bytes - 8))
        return TALLY_FRAMES_BAD_LENGTH;
    walk->frame_begin = position(walk) - 8;
    walk->frame_end = walk->frame_begin + packet_bytes;
    memcpy((uint8_t *)walk->frame->key.source + 14, lrh + 6, 2);
    memcpy((uint8_t *)walk->frame->key.destination + 14, lrh + 2, 2);
    enclose(walk, packet_bytes - 8);
    walk->network = lrh;
    walk->network_kind = ENCAPSULATION_LRH;
    walk->is_plain = true;
    walk->transport_bytes = packet_bytes - 8;
    return go_on(walk, next == LRH_NEXT_GRH ? STEP_GRH : STEP_BTH);
}

/* ---- tunnels ---- */

static enum tally enter_tunnel(struct encapsulation *walk, enum tunnel_kind kind, uint32_t id, enum step next)
{
    struct flow_key *key = &walk->frame->key;

    if (key->tunnel >> KEY_KIND_SHIFT != 0)
        return TALLY_FRAMES_TOO_DEEP;
    key->tunnel |= (uint64_t)kind << KEY_KIND_SHIFT | (uint64_t)id << KEY_ID_SHIFT;
    return go_on(walk, next);
}

static enum tally step_vxlan(struct encapsulation *walk)
{
    const uint8_t *vxlan = cursor_take(&walk->in, 8);

    if (vxlan == NULL || (vxlan[0] & VXLAN_HAS_VNI) == 0)
        return stop(walk);
    uint32_t vni = (uint32_t)vxlan[4] << 16 | (uint32_t)vxlan[5] << 8 | vxlan[6];
    return enter_tunnel(walk, TUNNEL_VXLAN, vni, STEP_ETHERNET);
}

/* A stack does not say what it carries: IP by its version, else an Ethernet frame, which may have a control word before
 * it, whose first 16 bits are zeros. */
static enum tally enter_mpls(struct encapsulation *walk, uint32_t label)
{
    if (cursor_left(&walk->in) < 2)
        return encapsulation_ended(walk, TALLY_FRAMES_NOT_ROCE);
    const uint8_t *inside = walk->in.at;
    enum step next = inside[0] >> 4 == 4 ? STEP_IPV4 : inside[0] >> 4 == 6 ? STEP_IPV6 : STEP_ETHERNET;
    if (inside[0] == 0 && inside[1] == 0)
        cursor_skip(&walk->in, 4);
    return enter_tunnel(walk, TUNNEL_MPLS, label, next);
}

/* The stack's id is its bottom label: the others are about the way. */
static enum tally step_mpls(struct encapsulation *walk)
{
    for (unsigned i = 0; i < MPLS_LABELS_MAX; i++) {
        uint32_t entry = cursor_be32(&walk->in);
        if (walk->in.failed)
            return stop(walk);
        if ((entry & 0x100) != 0)
            return enter_mpls(walk, entry >> 12);
    }
    return TALLY_FRAMES_TOO_DEEP;
}

/* An IPv6 address as 32 bits: mirrors are few, and the session tells them apart besides. */
static uint32_t fold_address(const uint64_t address[2])
{
    uint64_t mixed = (address[0] ^ address[1] * 0x9e3779b97f4a7c15u) * 0xd1b54a32d192ed03u;

    return (uint32_t)(mixed >> 32);
}

/* The mirrored frame begins here: what the mirror's own headers said of marks, lengths and VLANs is not the frame's. */
static enum tally enter_mirror(struct encapsulation *walk, enum mirror_kind kind, uint32_t session, bool is_truncated)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct flow_key *key = &walk->frame->key;
    const uint8_t *address = (const uint8_t *)key->source;
    uint64_t whose = 0;

    if (key->mirror != 0)
        return TALLY_FRAMES_TOO_DEEP;
    if (memcmp(address, mapped, sizeof mapped) == 0) {
        whose = (uint64_t)address[12] << 24 | (uint64_t)address[13] << 16 | (uint64_t)address[14] << 8 | address[15];
    } else {
        whose = fold_address(key->source);
        kind |= MIRROR_V6;
    }
    key->mirror = (uint64_t)kind << KEY_MIRROR_SHIFT | (uint64_t)session << KEY_SESSION_SHIFT | whose;
    walk->frame->flags &= (uint8_t)~FRAME_MARKED;
    walk->frame_begin = position(walk);
    walk->frame_end = is_truncated || walk->end_bytes == UNBOUNDED ? 0 : walk->end_bytes;
    walk->outermost_end = 0;
    walk->is_cut = walk->is_cut || is_truncated;
    walk->end_bytes = is_truncated ? UNBOUNDED : walk->end_bytes;
    return go_on(walk, STEP_ETHERNET);
}

static enum tally enter_erspan2(struct encapsulation *walk)
{
    const uint8_t *erspan = cursor_take(&walk->in, 8);

    if (erspan == NULL || erspan[0] >> 4 != 1)
        return stop(walk);
    return enter_mirror(walk, MIRROR_ERSPAN2, ((uint32_t)erspan[2] << 8 | erspan[3]) & KEY_SESSION_MASK,
                        (erspan[2] & 4) != 0);
}

/* 12 bytes, and 8 more of the platform where the lowest bit says so. Frame type 0: it carries an Ethernet frame. */
static enum tally enter_erspan3(struct encapsulation *walk)
{
    const uint8_t *erspan = cursor_take(&walk->in, 12);

    if (erspan == NULL || erspan[0] >> 4 != 2 || (erspan[10] >> 2 & 0x1f) != 0)
        return stop(walk);
    if ((erspan[11] & 1) != 0)
        cursor_skip(&walk->in, 8);
    return enter_mirror(walk, MIRROR_ERSPAN3, ((uint32_t)erspan[2] << 8 | erspan[3]) & KEY_SESSION_MASK,
                        (erspan[2] & 4) != 0);
}

static enum tally step_gre(struct encapsulation *walk)
{
    unsigned flags = cursor_be16(&walk->in);
    uint16_t type = cursor_be16(&walk->in);

    if ((flags & (GRE_ROUTING | GRE_VERSION)) != 0)
        return stop(walk);
    if ((flags & GRE_CHECKSUM) != 0)
        cursor_skip(&walk->in, 4);
    uint32_t id = (flags & GRE_KEY) != 0 ? cursor_be32(&walk->in) : 0;
    if ((flags & GRE_SEQUENCE) != 0)
        cursor_skip(&walk->in, 4);
    enum tunnel_kind kind = (flags & GRE_KEY) != 0 ? TUNNEL_GRE_KEY : TUNNEL_GRE;
    switch (type) {
    case ETHERTYPE_IPV4:
        return enter_tunnel(walk, kind, id, STEP_IPV4);
    case ETHERTYPE_IPV6:
        return enter_tunnel(walk, kind, id, STEP_IPV6);
    case ETHERTYPE_MPLS:
    case ETHERTYPE_MPLS_UP:
        return enter_tunnel(walk, kind, id, STEP_MPLS);
    case ETHERTYPE_BRIDGED:
        return enter_tunnel(walk, kind, id, STEP_ETHERNET);
    case ETHERTYPE_ERSPAN:
        return (flags & GRE_SEQUENCE) != 0 ? enter_erspan2(walk) : enter_mirror(walk, MIRROR_ERSPAN1, 0, false);
    case ETHERTYPE_ERSPAN3:
        return enter_erspan3(walk);
    default:
        return stop(walk);
    }
}

/* ---- the network layer ---- */

static void set_address(uint64_t address[2], const uint8_t *bytes, uint8_t version)
{
    uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};

    if (version == 4)
        memcpy(mapped + 12, bytes, 4);
    memcpy(address, version == 4 ? mapped : bytes, 16);
}

static void note_network(struct encapsulation *walk, const struct ip_header *ip)
{
    struct frame *frame = walk->frame;

    set_address(frame->key.source, ip->source, ip->version);
    set_address(frame->key.destination, ip->destination, ip->version);
    frame->look.dscp = ip->traffic_class >> 2;
    walk->is_plain = ip->is_plain;
    if (walk->outermost_end == 0)
        walk->outermost_end = position(walk) + ip->payload_bytes;
    enclose(walk, ip->payload_bytes);
}

/* A tunnel's end copies the outer header's mark into the inner one (RFC 6040), so either counts. */
static void note_ecn(struct frame *frame, unsigned ecn)
{
    if (ecn == ECN_CE)
        frame->flags |= FRAME_MARKED;
    frame->look.ecn = (frame->flags & FRAME_MARKED) != 0 ? ECN_CE : (uint8_t)ecn;
}

static enum tally step_ip(struct encapsulation *walk, const uint8_t *at, const struct ip_header *ip)
{
    if (ip->protocol != PROTOCOL_UDP && ip->protocol != PROTOCOL_GRE)
        return TALLY_FRAMES_NOT_ROCE;
    if (ip->fragment == IP_HEADER_LATER)
        return TALLY_FRAMES_FRAGMENT;
    note_network(walk, ip);
    walk->network = at;
    walk->network_kind = ENCAPSULATION_IP;
    walk->fragment_bytes = 0;
    note_ecn(walk->frame, ip->traffic_class & 3);
    if (ip->fragment == IP_HEADER_FIRST) {
        walk->is_fragment = true;
        walk->fragment_bytes = ip->payload_bytes;
        walk->end_bytes = UNBOUNDED;
    }
    return go_on(walk, ip->protocol == PROTOCOL_UDP ? STEP_UDP : STEP_GRE);
}

static enum tally step_ipv4(struct encapsulation *walk)
{
    const uint8_t *at = walk->in.at;
    struct ip_header ip;

    return ip_header_read_v4(&ip, &walk->in) ? step_ip(walk, at, &ip) : stop(walk);
}

static enum tally step_ipv6(struct encapsulation *walk)
{
    const uint8_t *at = walk->in.at;
    struct ip_header ip;

    return ip_header_read_v6(&ip, &walk->in) ? step_ip(walk, at, &ip) : stop(walk);
}

/* Behind an LRH its length is the LRH's; else this is RoCE v1. */
static enum tally step_grh(struct encapsulation *walk)
{
    const uint8_t *at = walk->in.at;
    struct ip_header grh;

    if (!ip_header_read_grh(&grh, &walk->in) || grh.protocol != GRH_NEXT_BTH)
        return stop(walk);
    if (reaches_beyond(walk, grh.payload_bytes))
        return TALLY_FRAMES_BAD_LENGTH;
    note_network(walk, &grh);
    note_ecn(walk->frame, 0); /* its traffic class has no such bits */
    if (walk->network_kind != ENCAPSULATION_LRH) {
        walk->network = at;
        walk->network_kind = ENCAPSULATION_GRH;
    }
    walk->transport_bytes = grh.payload_bytes;
    return go_on(walk, STEP_BTH);
}

/* The length in UDP's header is the whole datagram's, also in its first fragment. */
static enum tally step_udp(struct encapsulation *walk)
{
    uint16_t source_port = cursor_be16(&walk->in);
    uint16_t destination_port = cursor_be16(&walk->in);
    size_t udp_bytes = cursor_be16(&walk->in);

    cursor_skip(&walk->in, 2);
    if (walk->in.failed)
        return stop(walk);
    if (destination_port == PORT_VXLAN || destination_port == PORT_VXLAN_LINUX)
        return go_on(walk, STEP_VXLAN);
    if (destination_port != PORT_ROCE)
        return TALLY_FRAMES_NOT_ROCE;
    if (udp_bytes < UDP_HEADER_BYTES || udp_bytes <= walk->fragment_bytes ||
        reaches_beyond(walk, udp_bytes - UDP_HEADER_BYTES))
        return TALLY_FRAMES_BAD_LENGTH;
    walk->frame->look.udp_source_port = source_port;
    walk->transport_bytes = udp_bytes - UDP_HEADER_BYTES;
    return go_on(walk, STEP_BTH);
}

/* ---- all of it ---- */

static const enum step first_step[] = {
    [FRAME_LAYER_ETHERNET] = STEP_ETHERNET, [FRAME_LAYER_RAW_IP] = STEP_RAW_IP, [FRAME_LAYER_SLL] = STEP_SLL,
    [FRAME_LAYER_SLL2] = STEP_SLL2,         [FRAME_LAYER_ERF] = STEP_ERF,       [FRAME_LAYER_INFINIBAND] = STEP_LRH,
};

static enum tally (*const take_step[])(struct encapsulation *) = {
    [STEP_ETHERNET] = step_ethernet, [STEP_RAW_IP] = step_raw_ip, [STEP_SLL] = step_sll,   [STEP_SLL2] = step_sll2,
    [STEP_ERF] = step_erf,           [STEP_LRH] = step_lrh,       [STEP_IPV4] = step_ipv4, [STEP_IPV6] = step_ipv6,
    [STEP_GRH] = step_grh,           [STEP_MPLS] = step_mpls,     [STEP_UDP] = step_udp,   [STEP_VXLAN] = step_vxlan,
    [STEP_GRE] = step_gre,
};

enum tally encapsulation_walk(struct encapsulation *walk, struct frame *frame, enum frame_layer layer,
                              const void *bytes, size_t captured_bytes, size_t original_bytes)
{
    enum tally verdict = TALLY_FRAMES_ROCE;

    if (layer == FRAME_LAYER_OTHER)
        return TALLY_FRAMES_LINK_TYPE;
    memset(frame, 0, sizeof *frame);
    *walk = (struct encapsulation){
        .frame = frame, .start = bytes, .next = (uint8_t)first_step[layer], .is_cut = captured_bytes < original_bytes};
    cursor_init(&walk->in, bytes, captured_bytes);
    if (original_bytes == FRAME_BYTES_UNKNOWN) {
        walk->end_bytes = UNBOUNDED;
    } else {
        walk->end_bytes = original_bytes < captured_bytes ? captured_bytes : original_bytes;
        walk->frame_end = walk->end_bytes;
    }
    while (verdict == TALLY_FRAMES_ROCE && walk->next != STEP_BTH)
        verdict = take_step[walk->next](walk);
    size_t frame_end = walk->frame_end == 0 ? walk->outermost_end : walk->frame_end;
    frame->wire_bytes = (uint32_t)(frame_end - walk->frame_begin);
    return verdict;
}

bool encapsulation_may_answer(const struct flow_key *flow, const struct flow_key *other)
{
    uint64_t differs = flow->tunnel ^ other->tunnel;

    if (flow->tunnel >> KEY_KIND_SHIFT == TUNNEL_MPLS)
        differs &= ~((uint64_t)UINT32_MAX << KEY_ID_SHIFT);
    return differs == 0 && flow->mirror == other->mirror;
}

void encapsulation_describe(const struct flow_key *key, struct record_flow *record)
{
    record->vlans = key->tunnel & KEY_VLANS_MASK;
    record->tunnel = (uint32_t)(key->tunnel >> KEY_ID_SHIFT);
    record->tunnel_kind = (uint8_t)(key->tunnel >> KEY_KIND_SHIFT);
    record->mirror_address = (uint32_t)key->mirror;
    record->mirror_session = (uint16_t)(key->mirror >> KEY_SESSION_SHIFT & KEY_SESSION_MASK);
    record->mirror_kind = (uint8_t)(key->mirror >> KEY_MIRROR_SHIFT);
}
